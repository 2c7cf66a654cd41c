//! The settings.

use std::{collections::BTreeMap, sync::Arc};

use catena_api::{contract::PodController, keys::GROUP, reason};
use operator_kit::run::{TemplateSample, Validate};
use operator_templates::{ParameterSpec, Templates};
use operator_watch::Failure;
use serde::Deserialize;
use serde_json::Value;

use crate::child_kind::ChildKind;

/// The settings.
#[derive(Deserialize)]
#[serde(from = "File")]
pub struct Settings {
    /// The kinds of children, any of which a template may render.
    pub children: Vec<Arc<ChildKind>>,
    /// The templates of children, by the name that `spec.template` refers to.
    pub templates: Templates,
    /// Whether the Events of normal life are published; warnings always are.
    pub publishes_normal_events: bool,
    mistakes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    children: Vec<ChildKind>,
    templates: BTreeMap<String, String>,
    #[serde(default)]
    parameters: BTreeMap<String, Vec<ParameterSpec>>,
    events: Option<PublishedEvents>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedEvents {
    normal: bool,
}

impl From<File> for Settings {
    fn from(File { children, templates: sources, parameters, events }: File) -> Self {
        let mut templates = Templates::compile(&sources, GROUP);
        let mut mistakes = templates.declare(parameters);
        if sources.is_empty() {
            mistakes.push("templates: is empty; add a template, by convention under the name default".into());
        }
        let children = children.into_iter().map(Arc::new).collect();
        let publishes_normal_events = events.is_none_or(|events| events.normal);
        Self { children, templates, publishes_normal_events, mistakes }
    }
}

impl Settings {
    /// The listed kind of an object that a template rendered, possibly in an API version that was listed before.
    ///
    /// # Errors
    /// When the kind is not listed.
    pub fn kind_of(&self, rendered: &Value) -> Result<Arc<ChildKind>, Failure> {
        let text = |field: &str| rendered[field].as_str().unwrap_or_default();
        let listed = self.children.iter().find(|kind| kind.is((text("apiVersion"), text("kind"))));
        let found = || format!("{} {}", text("apiVersion"), text("kind"));
        listed.cloned().ok_or_else(|| self.not_listed("the revision", &found()))
    }

    /// The refusal of a rendered kind that is not listed.
    #[must_use]
    pub fn not_listed(&self, by: &str, found: &str) -> Failure {
        let names = self.children.iter().map(|kind| format!("{} {}", kind.api_version, kind.kind));
        let listed = names.collect::<Vec<_>>().join(", ");
        let message = format!(
            "{by} renders {found}, but children in the controller's settings lists only {listed}; list the kind there, or change the template"
        );
        Failure::stalled(reason::KIND_NOT_LISTED, message)
    }
}

impl Validate for Settings {
    fn validate(&self) -> Result<(), Vec<String>> {
        let mut problems = self.mistakes.clone();
        if self.children.is_empty() {
            problems.push(
                "children: is empty; list the kinds that the templates render, such as {apiVersion: catena.dev/v1alpha1, kind: BasicReplicaSet}"
                    .into(),
            );
        }
        for (at, kind) in self.children.iter().enumerate() {
            let field = format!("children[{at}]");
            if self.children[..at].iter().any(|earlier| earlier.is(kind.name())) {
                problems.push(format!("{field}: {} is listed twice; keep one entry of each kind", kind.kind));
            }
            problems.extend(mistakes(&field, kind));
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    fn warnings(&self) -> Vec<String> {
        let kinds: Vec<_> = self.children.iter().map(|kind| kind.name()).collect();
        let problems = self.templates.problems(&kinds);
        let unsound = self.children.iter().enumerate().filter_map(|(at, kind)| unsound_ready(at, kind));
        problems.iter().map(ToString::to_string).chain(unsound).collect()
    }

    fn samples(&self) -> Vec<TemplateSample> {
        let kinds: Vec<_> = self.children.iter().map(|kind| kind.api_resource()).collect();
        TemplateSample::of_all(&self.templates, &kinds)
    }
}

/// The warning about a readiness that cannot be sound, because it follows from nothing that the child's controller reports.
fn unsound_ready(at: usize, kind: &ChildKind) -> Option<String> {
    let ready = kind.fields().ready.as_ref()?.to_string();
    (!ready.contains("status")).then(|| {
        format!(
            "children[{at}].contract.ready: {ready} reads nothing of the child's status, so that it is the same whatever becomes of the replicas; read what its controller reports, such as object.status.updatedReplicas == object.spec.replicas"
        )
    })
}

/// The mistakes in a kind, which is configured in this field.
fn mistakes(field: &str, kind: &ChildKind) -> Vec<String> {
    let mut problems = Vec::new();
    let mut need = |name, value: &str, meaning: &str| {
        if value.is_empty() {
            problems.push(format!("{field}.{name}: is empty; set it to {meaning}"));
        }
    };
    need("apiVersion", &kind.api_version, "the API version of the child's kind, such as apps/v1");
    need("kind", &kind.kind, "the kind of the children, such as BasicReplicaSet");
    let controller = kind.fields().pods.as_ref().and_then(|pods| pods.controller.as_ref());
    if let Some(PodController { api_version, kind, resource, .. }) = controller {
        let such_as = |example| format!("that of the kind that controls the pods, such as {example}");
        need("contract.pods.controller.apiVersion", api_version, &such_as("apps/v1"));
        need("contract.pods.controller.kind", kind, &such_as("ReplicaSet"));
        need("contract.pods.controller.resource", resource, &such_as("replicasets"));
    }
    if kind.is(("catena.dev/v1alpha1", "BasicDeployment")) {
        problems.push(format!(
            "{field}.kind: a BasicDeployment whose child is a BasicDeployment would have children without end; set it to another kind, such as BasicReplicaSet"
        ));
    }
    if !kind.fields().says_ready() {
        problems.push(format!(
            "{field}.contract.ready: is missing; active and updated of another kind do not tell whether an old replica is counted for a new one, so state when all replicas are new and serve, as a path or as an expression: {{cel: …}}"
        ));
    }
    problems.extend(kind.fields().problems().map(|problem| format!("{field}.contract.{problem}")));
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings(file: Value) -> Settings {
        serde_json::from_value(file).unwrap()
    }

    fn replica_sets() -> Value {
        json!({"apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet"})
    }

    fn deployments() -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "contract": {"active": "status.readyReplicas", "ready": "status.ready"},
        })
    }

    #[test]
    fn each_kind_is_used_by_naming_its_fields() {
        let settings =
            settings(json!({"children": [replica_sets(), deployments()], "templates": {"default": "x"}}));
        assert_eq!(settings.validate(), Ok(()));
        let [sets, deployments] = &settings.children[..] else { panic!("two kinds") };
        assert_eq!(deployments.api_resource().plural, "deployments");
        assert_eq!(deployments.fields().active.to_string(), "status.readyReplicas");
        assert_eq!(deployments.fields().replicas.to_string(), "spec.replicas");
        assert_eq!(sets.fields().active.to_string(), "status.active");
        let of = |object: &Value| settings.kind_of(object).map(|kind| kind.kind.clone());
        for stored in ["apps/v1", "apps/v1beta2"] {
            assert_eq!(of(&json!({"apiVersion": stored, "kind": "Deployment"})), Ok("Deployment".into()));
        }
        let refused = of(&json!({"apiVersion": "apps/v1", "kind": "DaemonSet"})).unwrap_err();
        assert!(refused.to_string().contains("children"), "{refused}");
    }

    #[test]
    fn a_readiness_that_reads_nothing_of_the_status_is_warned_about() {
        let warnings = |ready: Value| {
            let mut child = deployments();
            child["contract"]["ready"] = ready;
            settings(json!({"children": [replica_sets(), child], "templates": {"default": "x"}})).warnings()
        };
        let of_ready = |ready: Value| -> Vec<String> {
            warnings(ready).into_iter().filter(|warning| warning.contains(".contract.ready")).collect()
        };
        assert!(of_ready(json!("status.ready")).is_empty());
        assert!(of_ready(json!({"cel": "object.status.readyReplicas == object.spec.replicas"})).is_empty());
        for ready in [json!({"cel": "true"}), json!("spec.ready")] {
            let warnings = of_ready(ready);
            assert!(warnings[0].starts_with("children[1].contract.ready: "), "{warnings:?}");
        }
    }

    #[test]
    fn a_chain_without_an_end_is_refused() {
        for version in ["v1alpha1", "v2"] {
            let child = json!({"apiVersion": format!("catena.dev/{version}"), "kind": "BasicDeployment"});
            let listed = json!({"children": [replica_sets(), child], "templates": {"default": "x"}});
            let refused = settings(listed).validate().unwrap_err().remove(0);
            assert!(refused.starts_with("children[1].kind: "), "{refused}");
        }
    }

    #[test]
    fn a_written_field_whose_change_gives_no_new_generation_is_refused() {
        for (name, path) in [("restartedAt", "metadata.annotations['a/b']"), ("replicas", "status.replicas")]
        {
            let mut child = deployments();
            child["contract"][name] = path.into();
            let settings = settings(json!({"children": [child], "templates": {"default": "x"}}));
            let problems = settings.validate().unwrap_err();
            let told = format!("children[0].contract.{name}: {path} is not a part of the spec");
            assert!(problems.len() == 1 && problems[0].starts_with(&told), "{problems:?}");
        }
    }

    #[test]
    fn a_controller_of_pods_that_is_not_named_is_refused() {
        let controller = json!({"apiVersion": "apps/v1", "kind": "", "resource": "replicasets"});
        let contract = json!({"pods": {"selector": "status.selector", "controller": controller}});
        let child = json!({"apiVersion": "apps/v1", "kind": "Deployment", "contract": contract});
        let settings = settings(json!({"children": [child], "templates": {"default": "x"}}));
        let problems = settings.validate().unwrap_err();
        assert_eq!(problems.len(), 1);
        assert!(
            problems[0].starts_with("children[0].contract.pods.controller.kind: is empty"),
            "{problems:?}"
        );
    }

    #[test]
    fn each_mistake_names_its_field() {
        let broken = json!({"apiVersion": "", "kind": "", "contract": {"active": "status.x"}});
        let problems = |children: Value| {
            settings(json!({"children": children, "templates": {}})).validate().unwrap_err()
        };
        let of_entry = problems(json!([replica_sets(), broken]));
        assert_eq!(of_entry.len(), 4);
        let is_named =
            |problem: &String| problem.starts_with("templates:") || problem.starts_with("children[1].");
        assert!(of_entry.iter().all(is_named), "{of_entry:?}");
        let twice = problems(json!([replica_sets(), replica_sets()]));
        assert!(twice.iter().any(|problem| problem.starts_with("children[1]: ")), "{twice:?}");
        assert!(problems(json!([])).iter().any(|problem| problem.starts_with("children: is empty")));
    }
}
