//! Whether tools that decide by kstatus, such as Flux and kpt, can wait for a command of a kind. Pure.
//!
//! kstatus calls an object of any kind `Current` unless its status says otherwise. It is `InProgress` if
//! `observedGeneration` differs from its generation, before any condition counts; then `Reconciling` (true) or `Ready` (not
//! true) is `InProgress`, and `Stalled` (true) is `Failed`. So a command has to say from its creation that it is not
//! done, which only a default of its schema can: with such a condition, or with the `observedGeneration` -1 that
//! kubebuilder's marker gives to the kinds of Flux.

use catena_api::contract::ReplicaContract;
use catena_cluster::default_of;
use kube::discovery::ApiResource;
use serde_json::Value;

use super::{Field, Report, Schema, report};

/// Checks a kind of commands.
#[must_use]
pub fn check_command(kind: &ApiResource, schema: &Schema) -> Report {
    // By the conventions of the API, all kinds have them at the same place.
    let path = ReplicaContract::default().conditions;
    let (ok, note) = schema.judge(&path, "array");
    let conditions = Field { name: "conditions", path: path.to_string(), required: true, ok, note };
    let ok = is_in_progress(&default_of(schema.status()));
    let note = if ok {
        String::new()
    } else {
        "a new command counts as done until somebody reports on it: give the status a default with a condition Reconciling \
         (\"True\"), set it to \"False\" when the command has finished, and report a failure by Stalled (\"True\")"
            .to_owned()
    };
    let default = Field { name: "inProgress", path: "status (default)".to_owned(), required: true, ok, note };
    report(kind, "what tools need to wait for a command", vec![conditions, default])
}

/// Whether kstatus takes a new object with this status for one in progress.
fn is_in_progress(status: &Value) -> bool {
    // The first generation is 1.
    let is_unobserved = status["observedGeneration"].as_i64().is_some_and(|observed| observed < 1);
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let is_reported = conditions.any(|condition| {
        let is = |status: &str| condition["status"] == status;
        match condition["type"].as_str() {
            Some("Reconciling") => is("True"),
            Some("Ready") => !is("True"),
            _ => false,
        }
    });
    is_unobserved || is_reported
}

#[cfg(test)]
mod tests {
    use kube::core::GroupVersionKind;
    use serde_json::json;

    use super::*;

    fn wrong(status: &Value) -> Vec<&'static str> {
        let document = json!({"components": {"schemas": {"x.Drain": {
            "x-kubernetes-group-version-kind": [{"group": "x.dev", "version": "v1", "kind": "Drain"}],
            "properties": {"status": status},
        }}}});
        let schema = Schema::of(&document, "x.dev", "v1", "Drain").unwrap();
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("x.dev", "v1", "Drain"));
        let report = check_command(&kind, &schema);
        assert_eq!(report.honours, report.fields.iter().all(|field| field.ok && field.note.is_empty()));
        report.fields.into_iter().filter(|field| !field.ok).map(|field| field.name).collect()
    }

    #[test]
    fn a_command_has_to_be_in_progress_from_its_creation() {
        let with = |conditions: Value| {
            let default = json!({"conditions": conditions});
            json!({"type": "object", "properties": {"conditions": {"type": "array"}}, "default": default})
        };
        for (type_, status, expected) in [
            ("Reconciling", "True", &[][..]),
            ("Ready", "Unknown", &[]),
            ("Ready", "False", &[]),
            ("Reconciling", "False", &["inProgress"]),
            ("Ready", "True", &["inProgress"]),
            ("Succeeded", "Unknown", &["inProgress"]),
        ] {
            assert_eq!(
                wrong(&with(json!([{"type": type_, "status": status}]))),
                expected,
                "{type_}: {status}"
            );
        }
        assert_eq!(wrong(&with(json!([]))), ["inProgress"]);
        assert_eq!(wrong(&json!({"type": "object"})), ["conditions", "inProgress"]);
    }

    #[test]
    fn a_generation_that_nobody_has_observed_is_in_progress_whatever_the_conditions_say() {
        for (default, expected) in [
            (json!({"observedGeneration": -1}), &[][..]),
            (json!({"observedGeneration": 0, "conditions": [{"type": "Ready", "status": "True"}]}), &[]),
            (json!({"observedGeneration": 1}), &["inProgress"]),
            (json!({"observedGeneration": "-1"}), &["inProgress"]),
            (json!({}), &["inProgress"]),
        ] {
            let properties =
                json!({"conditions": {"type": "array"}, "observedGeneration": {"type": "integer"}});
            let status = json!({"type": "object", "properties": properties, "default": default});
            assert_eq!(wrong(&status), expected, "{default}");
        }
    }

    #[test]
    fn defaults_of_fields_count_where_the_api_server_sets_them() {
        let reconciling = json!([{"type": "Reconciling", "status": "True"}]);
        let conditions = |default: &Value| json!({"type": "array", "default": default});
        let with = |default: Value, conditions: Value, observed: Value| {
            let properties = json!({
                "conditions": conditions, "observedGeneration": {"type": "integer", "default": observed},
            });
            json!({"type": "object", "properties": properties, "default": default})
        };
        let item = json!({"properties": {"status": {"type": "string", "default": "True"}}});
        let of_items = |type_: &str| json!({"type": "array", "default": [{"type": type_}], "items": item});
        for (status, expected) in [
            (with(json!({}), conditions(&reconciling), json!(1)), &[][..]),
            (with(json!({}), conditions(&json!([])), json!(-1)), &[]),
            (with(json!({"conditions": []}), conditions(&json!([])), json!(-1)), &[]),
            (with(json!({"conditions": null}), conditions(&reconciling), json!(1)), &[]),
            (with(json!({}), of_items("Reconciling"), json!(1)), &[]),
            (with(json!({}), of_items("Ready"), json!(1)), &["inProgress"]),
            // The default of the status takes precedence, and without one there is no status to add to.
            (with(json!({"conditions": []}), conditions(&reconciling), json!(1)), &["inProgress"]),
            (with(Value::Null, conditions(&reconciling), json!(-1)), &["inProgress"]),
        ] {
            assert_eq!(wrong(&status), expected, "{status}");
        }
    }

    #[test]
    fn our_own_commands_are_as_it_asks() {
        for crd in catena_api::crds().iter().filter(|crd| crd.spec.names.kind.starts_with("BasicDeploymentR"))
        {
            let version = &crd.spec.versions[0];
            let root = json!(version.schema.as_ref().unwrap().open_api_v3_schema);
            assert_eq!(wrong(&root["properties"]["status"]), [""; 0], "{}", crd.spec.names.kind);
        }
    }
}
