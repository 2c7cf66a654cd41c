//! Whether tools that decide by kstatus, such as Flux and kpt, can wait for a command of a kind. Pure.
//!
//! kstatus calls an object of any kind `Current` unless a condition says otherwise: `Reconciling` (true) or `Ready` (not
//! true) is `InProgress`, and `Stalled` (true) is `Failed`. So a command has to say from its creation that it is not
//! done, which only a default of its schema can.

use catena_api::contract::ReplicaContract;
use kube::discovery::ApiResource;
use serde_json::Value;

use super::{Field, Fields, Report, Schema};

/// Checks a kind of commands.
pub fn check_command(kind: &ApiResource, schema: &Schema) -> Report<Fields> {
    // By the conventions of the API, all kinds have them at the same place.
    let path = ReplicaContract::default().conditions;
    let (ok, note) = schema.judge(&path, "array");
    let conditions = Field { name: "conditions", path: path.to_string(), required: true, ok, note };
    let ok = is_in_progress(&schema.status()["default"]);
    let note = if ok {
        String::new()
    } else {
        "a new command counts as done until somebody reports on it: give the status a default with a condition Reconciling \
         (\"True\"), set it to \"False\" when the command has finished, and report a failure by Stalled (\"True\")"
            .to_owned()
    };
    let default = Field { name: "inProgress", path: "status (default)".to_owned(), required: true, ok, note };
    let fields = vec![conditions, default];
    Report::new(kind, Fields { contract: "what tools need to wait for a command", fields })
}

/// Whether kstatus takes an object with this status for one in progress.
fn is_in_progress(status: &Value) -> bool {
    let conditions = status["conditions"].as_array();
    conditions.into_iter().flatten().any(|condition| {
        let is = |status: &str| condition["status"] == status;
        match condition["type"].as_str() {
            Some("Reconciling") => is("True"),
            Some("Ready") => !is("True"),
            _ => false,
        }
    })
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
        assert_eq!(
            report.honours,
            report.results.fields.iter().all(|field| field.ok && field.note.is_empty())
        );
        report.results.fields.into_iter().filter(|field| !field.ok).map(|field| field.name).collect()
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
    fn our_own_commands_are_as_it_asks() {
        for crd in catena_api::crds().iter().filter(|crd| crd.spec.names.kind.starts_with("BasicDeploymentR"))
        {
            let version = &crd.spec.versions[0];
            let root = json!(version.schema.as_ref().unwrap().open_api_v3_schema);
            assert_eq!(wrong(&root["properties"]["status"]), [""; 0], "{}", crd.spec.names.kind);
        }
    }
}
