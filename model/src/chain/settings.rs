//! The settings of the controllers, as their charts have them.

use std::sync::{Arc, LazyLock};

use command_kinds::{CommandKind, definition::describe, expiry::Expiry, run::Run};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

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

/// Of command-binder: the kind of restarts.
pub static BOUND: LazyLock<Arc<CommandKind>> = LazyLock::new(|| {
    let file = json!({
        "id": "restarts", "group": "catena.dev", "version": "v1alpha1",
        "resource": "basicdeploymentrestarts", "kind": "BasicDeploymentRestart", "reportsBound": true,
        "target": {
            "name": "object.spec.targetRef.name",
            "kinds": [{
                "group": "catena.dev", "version": "v1alpha1", "resource": "basicdeployments",
                "kind": "BasicDeployment",
            }],
        },
    });
    let kind = CommandKind::compile(read(file));
    Arc::new(kind.unwrap_or_else(|problem| panic!("the model's settings are valid: {problem}")))
});

/// Of command-runner: the kind of restarts, as its definition describes it.
pub static CARRIED_OUT: LazyLock<(Arc<CommandKind>, Arc<Run>)> = LazyLock::new(|| {
    let mut definitions = catena_api::crds().into_iter();
    let restarts = definitions.find(|definition| definition.spec.names.kind == "BasicDeploymentRestart");
    let definition = json!(restarts.expect("restarts have a definition"));
    let kind = describe(&read(definition)).unwrap_or_else(|problem| panic!("it is described: {problem}"));
    let run = kind.run.clone().expect("its commands are carried out");
    (Arc::new(kind), run)
});

/// Of command-reaper: the kind of restarts.
pub static REAPED: LazyLock<(Arc<CommandKind>, Expiry)> = LazyLock::new(|| {
    let settings: command_reaper::Settings = read(json!({
        "declaredBy": {"labels": [DECLARED]},
        "kinds": [{
            "id": "restarts", "group": "catena.dev", "version": "v1alpha1",
            "resource": "basicdeploymentrestarts", "kind": "BasicDeploymentRestart",
            "expire": {
                "finishedAt": "object.status.conditions.exists(condition, condition.type == 'Succeeded' && condition.status != 'Unknown') ? object.status.completionTime : null",
                "ttlSeconds": "object.spec.ttlSecondsAfterFinished",
            },
        }],
    }));
    let kind = settings.kinds.listed.first().expect("the model's settings have a kind");
    (kind.clone(), settings.expiry(kind).expect("its commands expire"))
});

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
