//! Defaults of the specs, and the adjustments that the generated definitions need before an API server accepts them.

use std::collections::BTreeMap;

use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::{
        CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
    },
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::core::Rule;
use serde_json::{Value, json};

use crate::command::SUCCEEDED;

pub(crate) fn one_replica() -> i32 {
    1
}

pub(crate) fn default_template() -> String {
    "default".into()
}

/// As for a Deployment: ten minutes.
pub(crate) fn progress_deadline() -> i32 {
    600
}

/// As for a Deployment: ten old revisions.
pub(crate) fn revision_history_limit() -> i32 {
    10
}

/// As for a Deployment: a quarter of the replicas.
pub(crate) fn quarter() -> IntOrString {
    IntOrString::String("25%".into())
}

/// As for a Deployment: a budget that is written as zero on both sides lets nothing be replaced.
pub(crate) fn budget_is_not_zero() -> Rule {
    let is_zero = |field: &str| format!("(self.{field} == 0 || self.{field} == '0%')");
    Rule::new(format!("!({} && {})", is_zero("maxSurge"), is_zero("maxUnavailable")))
        .message("may not be 0 while maxSurge is 0, because nothing could be replaced: set one of them to 1 or more")
        .field_path(".maxUnavailable")
}

/// As for a Deployment: a rollout would be late before its first replica can be available. A null counts as missing.
pub(crate) fn deadline_is_above_min_ready() -> Rule {
    Rule::new("!has(self.minReadySeconds) || self.progressDeadlineSeconds > self.minReadySeconds")
        .message("must be greater than minReadySeconds, because no replica is available sooner: set a larger progressDeadlineSeconds or a smaller minReadySeconds")
        .field_path(".progressDeadlineSeconds")
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

/// The conditions of an object before the first report of its controller.
#[derive(Clone, Copy)]
pub(crate) enum Unreported {
    /// `Ready` is unknown, which kstatus reads as being in progress.
    Workload,
    /// `Succeeded` is unknown. kstatus does not know it, so that the command is also `Reconciling`.
    Command,
}

/// Adds the parts of a definition that the derive cannot express.
pub(crate) fn finish(mut crd: CustomResourceDefinition, unreported: Unreported) -> CustomResourceDefinition {
    let schemas = crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut());
    for root in schemas.filter_map(|schema| schema.open_api_v3_schema.as_mut()) {
        let fields = root.properties.get_or_insert_default();
        if let Some(spec) = fields.get_mut("spec") {
            for field in spec.properties.iter_mut().flat_map(BTreeMap::values_mut) {
                bound_values(field);
                default_replaces_null(field);
            }
        }
        if let Some(status) = fields.get_mut("status") {
            status.default = Some(JSON(unreported.status()));
        }
        join_lines(root);
    }
    crd
}

impl Unreported {
    /// The status of an object before the first report of its controller. Without it, a missing report could be mistaken
    /// for readiness or success, and ruling that out would cost one more write per object. The Gateway API does the same.
    fn status(self) -> Value {
        let condition = |type_: &str, status: &str| {
            json!({
                "type": type_,
                "status": status,
                "reason": "Pending",
                "message": "the controller has not reported yet",
                "lastTransitionTime": "1970-01-01T00:00:00Z",
            })
        };
        let conditions = match self {
            Self::Workload => vec![condition("Ready", "Unknown")],
            Self::Command => vec![condition(SUCCEEDED, "Unknown"), condition("Reconciling", "True")],
        };
        json!({ "conditions": conditions })
    }
}

/// `kubectl explain` wraps texts itself; line breaks of the source would end up in the middle of its lines.
fn join_lines(field: &mut JSONSchemaProps) {
    if let Some(description) = &mut field.description {
        *description =
            description.split("\n\n").map(|part| part.replace('\n', " ")).collect::<Vec<_>>().join("\n\n");
    }
    field.properties.iter_mut().flat_map(BTreeMap::values_mut).for_each(join_lines);
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut field.items {
        join_lines(items);
    }
}

/// A parameter holds at most 32 KiB, so that an object with a few of them stays below the size limit of etcd.
fn bound_values(field: &mut JSONSchemaProps) {
    if let Some(JSONSchemaPropsOrBool::Schema(value)) = field.additional_properties.as_mut() {
        value.max_length = Some(32 * 1024);
    }
}

/// The API server replaces a null with the default only where null is not allowed.
fn default_replaces_null(field: &mut JSONSchemaProps) {
    if field.default.is_some() {
        field.nullable = None;
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{JSON, ValidationRule};
    use serde_json::json;

    use crate::{BasicDeploymentSpec, crds};

    /// A default of the parent would override what a template says.
    #[test]
    fn what_is_handed_down_has_a_default_only_in_the_set() {
        let policies = ["TerminationStarted", "TerminationComplete"].map(|policy| JSON(json!(policy)));
        for (at, defaults) in [(0, [None, None]), (3, [Some(json!(0)), Some(json!("TerminationStarted"))])] {
            let schema =
                crds()[at].spec.versions[0].schema.clone().and_then(|schema| schema.open_api_v3_schema);
            let spec = schema.unwrap().properties.unwrap().remove("spec").unwrap().properties.unwrap();
            let fields = ["minReadySeconds", "podReplacementPolicy"].map(|name| &spec[name]);
            assert_eq!(fields.map(|field| field.default.clone().map(|default| default.0)), defaults, "{at}");
            assert_eq!((fields[0].minimum, fields[1].enum_.as_deref()), (Some(0.0), Some(&policies[..])));
        }
        let unset = serde_json::to_value(BasicDeploymentSpec::default()).unwrap();
        assert!(unset.get("minReadySeconds").is_none() && unset.get("podReplacementPolicy").is_none());
    }

    /// The rules of the specs that have some: of the parent, and of the set.
    fn rules() -> Vec<Vec<ValidationRule>> {
        let rules = crds().into_iter().filter_map(|crd| {
            let schema = crd.spec.versions[0].schema.clone()?.open_api_v3_schema?;
            schema.properties?["spec"].x_kubernetes_validations.clone()
        });
        rules.collect()
    }

    #[test]
    fn the_restart_token_of_a_parent_is_a_time_in_utc_that_only_increases() {
        let schema = crds()[0].spec.versions[0].schema.clone().and_then(|schema| schema.open_api_v3_schema);
        let spec = schema.unwrap().properties.unwrap().remove("spec").unwrap().properties.unwrap();
        let token = &spec["restartedAt"];
        assert_eq!((token.type_.as_deref(), token.format.as_deref()), (Some("string"), Some("date-time")));
        assert!(token.pattern.as_ref().is_some_and(|pattern| pattern.ends_with("Z$")), "{token:?}");
        // The texts of one time differ in length.
        let rules = token.x_kubernetes_validations.as_ref().unwrap();
        assert_eq!(rules[0].rule, "timestamp(self) >= timestamp(oldSelf)");
        assert_eq!(token.default, None, "a default would restart everything");
    }

    #[test]
    fn parent_and_set_refuse_an_empty_budget_in_the_same_words() {
        let rules = rules();
        let [parent, set] = &rules[..] else { panic!("{rules:?}") };
        assert_eq!(parent[0], set[0]);
        assert_eq!(set[0].field_path.as_deref(), Some(".maxUnavailable"));
        assert!(set[0].rule.contains("self.maxSurge == '0%'"), "{}", set[0].rule);
    }

    #[test]
    fn a_deadline_that_passes_before_a_replica_can_be_available_is_refused_and_the_defaults_are_not() {
        let rules = rules();
        let [parent, set] = &rules[..] else { panic!("{rules:?}") };
        let [_, rule] = &parent[..] else { panic!("{parent:?}") };
        assert_eq!((set.len(), rule.field_path.as_deref()), (1, Some(".progressDeadlineSeconds")));
        assert_eq!(
            rule.rule,
            "!has(self.minReadySeconds) || self.progressDeadlineSeconds > self.minReadySeconds"
        );
        // Without a default, the rule would read a missing field.
        let spec = BasicDeploymentSpec::default();
        assert_eq!((spec.progress_deadline_seconds, spec.min_ready_seconds), (600, None));
    }
}
