//! The settings of the controllers, as their charts have them.

use std::sync::{Arc, LazyLock};

use command_kinds::{CommandKind, definition::describe, expiry::Expiry, run::Run};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::server::object::Kind;

/// Of basic-deployment-controller.
pub static DEPLOYMENTS: LazyLock<basic_deployment_controller::Settings> = LazyLock::new(|| {
    read(json!({
        "children": [
            {"apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet"},
            {"apiVersion": "example.com/v1", "kind": "Workload"},
        ],
        "templates": {
            "default": "{apiVersion: catena.dev/v1alpha1, kind: BasicReplicaSet, metadata: {name: {{ name }}}, spec: {parameters: {image: {{ parameters.image }}}}}",
            OTHER: "{apiVersion: example.com/v1, kind: Workload, metadata: {name: {{ name }}}, spec: {parameters: {image: {{ parameters.image }}}}}",
        },
    }))
});

/// A kind of commands, as its definition describes it to command-binder, command-runner and command-reaper.
pub struct Described {
    pub kind: Arc<CommandKind>,
    pub run: Arc<Run>,
    pub expiry: Expiry,
}

/// Of the controllers of commands.
pub fn commands(kind: Kind) -> &'static Described {
    if kind == Kind::Rollback { &ROLLBACKS } else { &RESTARTS }
}

static RESTARTS: LazyLock<Described> = LazyLock::new(|| Described::defined_as("BasicDeploymentRestart"));
static ROLLBACKS: LazyLock<Described> = LazyLock::new(|| Described::defined_as("BasicDeploymentRollback"));

/// Of backup-controller, where only a proven backup or a person releases an object.
pub static HOLDING: LazyLock<backup_controller::Settings> = LazyLock::new(|| backups("Hold"));

/// Of backup-controller, where an object is released after [`TRIES`] in vain.
pub static RELEASING: LazyLock<backup_controller::Settings> = LazyLock::new(|| backups("Release"));

/// The template of the other kind of children.
pub const OTHER: &str = "other";
/// The mark of commands that are declared elsewhere.
pub const DECLARED: &str = "app.kubernetes.io/instance";
/// The name of the entry of backup-controller.
pub const ENTRY: &str = "deployments";
/// Time limit of a backup, in ticks of the server's clock.
pub const DEADLINE: u8 = 2;
/// Tries before an object is released, if it is released at all.
pub const TRIES: u8 = 2;

impl Described {
    fn defined_as(name: &str) -> Self {
        let mut definitions = catena_api::crds().into_iter();
        let definition = definitions.find(|definition| definition.spec.names.kind == name);
        let definition = read(json!(definition.expect("commands have a definition")));
        let kind = describe(&definition).unwrap_or_else(|problem| panic!("it is described: {problem}"));
        let run = kind.run.clone().expect("its commands are carried out");
        let reaper: command_reaper::Settings =
            read(json!({"declaredBy": {"labels": [DECLARED]}, "kinds": []}));
        let expiry = reaper.expiry(&kind).expect("its commands expire");
        Self { kind: Arc::new(kind), run, expiry }
    }
}

fn backups(on_failure: &str) -> backup_controller::Settings {
    read(json!({
        "kinds": {ENTRY: {
            "apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment", "resource": "basicdeployments",
            "backup": "job", "deadline": format!("{DEADLINE}m"), "retryAfter": "1m", "onFailure": on_failure, "tries": TRIES,
        }},
        "backups": {"job": {
            "apiVersion": "batch/v1", "kind": "Job", "resource": "jobs",
            "template": "{apiVersion: batch/v1, kind: Job, metadata: {name: {{ name ~ '-' ~ suffix }}}, spec: {text: {{ manifest }}}}",
            "succeeded": "object.?status.?conditions.orValue([]).exists(c, c.type == 'Complete')",
            "failed": "object.?status.?conditions.orValue([]).exists(c, c.type == 'Failed')",
        }},
    }))
}

fn read<T: DeserializeOwned>(settings: Value) -> T {
    serde_json::from_value(settings)
        .unwrap_or_else(|problem| panic!("the model's settings are valid: {problem}"))
}
