//! Whether a kind honours the replica contract: here by the fields of its schema (pure), in [`live`] by its behaviour.

mod command;
pub mod live;
mod schema;

use std::collections::BTreeMap;

use catena_api::contract::{FieldPath, Output, REPLICAS_LABEL, REPLICAS_VERSION, ReplicaContract};
use catena_terminal::{Cell, Table, Tone};
use kube::discovery::ApiResource;
use serde::Serialize;

use self::live::Line;
pub use self::{
    command::check_command,
    schema::{Schema, is_command, labels},
};

/// The report on a kind: field by field, or requirement by requirement.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// API version of the kind.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// Whether it has all that is required.
    pub honours: bool,
    /// Field by field, if these were compared with the contract.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
    /// Requirement by requirement, if these were tried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<Line>,
    /// The sentence about the kind.
    #[serde(skip)]
    verdict: String,
    /// The items.
    #[serde(skip)]
    table: Table,
}

impl Report {
    /// The report on a kind, without the items.
    fn new(kind: &ApiResource, honours: bool, verdict: String, table: Table) -> Self {
        let (api_version, kind) = (kind.api_version.clone(), kind.kind.clone());
        Self { api_version, kind, honours, fields: Vec::new(), requirements: Vec::new(), verdict, table }
    }

    /// The report for people.
    #[must_use]
    pub fn text(&self) -> String {
        self.table.render_under(&self.verdict, self.honours)
    }
}

/// A field of the contract.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Field {
    /// Its name in the contract.
    pub name: &'static str,
    /// Its path in the kind.
    pub path: String,
    /// Whether a kind without it does not honour the contract.
    pub required: bool,
    /// Whether it is as it should be.
    pub ok: bool,
    /// The deviation, and the remedy.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Compares a kind with the contract. `labels` are those of its CRD, if there is one that can be read; the label of the
/// contract is optional where the paths are not the contract's own.
#[must_use]
pub fn check(
    kind: &ApiResource,
    schema: &Schema,
    labels: Option<&BTreeMap<String, String>>,
    is_mapped: bool,
    contract: &ReplicaContract,
) -> Report {
    let field = |name: &'static str, place: Option<Output>, type_: &str, required: bool| {
        let place = place?;
        let (ok, note) = match &place {
            Output::Field(path) => schema.judge(path, type_),
            Output::Computed(_) => {
                (true, "it is computed, so that only a live object shows whether it is right".to_owned())
            }
        };
        Some(Field { name, path: place.to_string(), required, ok, note })
    };
    let at = |path: &FieldPath| Some(Output::Field(path.clone()));
    let of = |output: &Output| Some(output.clone());
    let ready = match &contract.ready {
        Some(ready) => field("ready", of(ready), "boolean", true),
        None if contract.says_ready() => {
            let mut by_condition = field("ready", at(&contract.conditions), "array", true);
            for told in by_condition.iter_mut().map(|found| &mut found.note).filter(|note| note.is_empty()) {
                "by the condition Ready, which only a live object shows".clone_into(told);
            }
            by_condition
        }
        None => Some(Field {
            name: "ready",
            path: String::new(),
            required: true,
            ok: false,
            note: "other numbers do not tell whether an old replica is counted for a new one; say when all are new and serve: --path ready=status.ready, or --cel 'ready=…'".to_owned(),
        }),
    };
    // Whoever names another field expects that restarts reach it.
    let is_named = contract.restarted_at != ReplicaContract::default().restarted_at;
    let clauses = [
        field("replicas", at(&contract.replicas), "integer", true),
        field("active", of(&contract.active), "integer", true),
        field("observedGeneration", of(&contract.observed_generation), "integer", true),
        ready,
        field("restartedAt", contract.restarted_at.as_ref().and_then(at), "string", is_named),
        field("minReadySeconds", contract.min_ready_seconds.as_ref().and_then(at), "integer", false),
        field("podReplacementPolicy", contract.pod_replacement_policy.as_ref().and_then(at), "string", false),
        field("updated", of(&contract.updated), "integer", false),
        field("available", contract.available.clone(), "integer", false),
        field("terminating", contract.terminating.clone(), "integer", false),
        field("blockedBy", of(&contract.blocked_by), "object", false),
        field("stalled", contract.stalled.clone(), "object", false),
        field("paused", contract.paused.clone(), "object", false),
        field("selector", of(&contract.selector), "string", false),
    ];
    let mut fields: Vec<Field> = clauses.into_iter().flatten().collect();
    let (ok, note) = match labels.map(|labels| labels.get(REPLICAS_LABEL)) {
        Some(Some(version)) if version == REPLICAS_VERSION => (true, String::new()),
        Some(Some(version)) => {
            (false, format!("its value is {version:?}, but this plugin checks {REPLICAS_VERSION}"))
        }
        Some(None) => (false, format!("label the CRD: {REPLICAS_LABEL}={REPLICAS_VERSION}")),
        None => (false, "there is no readable CRD for the label".to_owned()),
    };
    let required = !is_mapped && labels.is_some();
    fields.push(Field { name: "label", path: REPLICAS_LABEL.to_owned(), required, ok, note });
    report(kind, "the replica contract v1", fields)
}

/// The report on the fields of a kind, compared with a contract of this name.
fn report(kind: &ApiResource, contract: &str, fields: Vec<Field>) -> Report {
    let (of, lacking) = (&kind.kind, fields.iter().filter(|field| field.required && !field.ok).count());
    let verdict = match lacking {
        0 => format!("{of} honours {contract}"),
        1 => format!("{of} does not honour {contract}: 1 required item is missing"),
        many => format!("{of} does not honour {contract}: {many} required items are missing"),
    };
    let mut table = Table::of(["", "FIELD", "PATH", "NOTE"]);
    for Field { name, path, required, ok, note } in &fields {
        let (sign, tone, level) = match (ok, required) {
            (true, _) => ("✓", Tone::Good, ""),
            (false, true) => ("✗", Tone::Bad, ""),
            (false, false) => ("–", Tone::Quiet, "optional: "),
        };
        let note = format!("{level}{note}").into();
        table.push([Cell::toned(tone, sign), (*name).into(), path.as_str().into(), note]);
    }
    Report { fields, ..Report::new(kind, lacking == 0, verdict, table) }
}

#[cfg(test)]
mod tests {
    use kube::core::GroupVersionKind;
    use serde_json::{Value, json};

    use super::*;

    type Labels = BTreeMap<String, String>;

    /// The labels of a CRD that says that its kind honours the contract.
    fn labelled() -> Labels {
        Labels::from([(REPLICAS_LABEL.to_owned(), "v1".to_owned())])
    }

    fn report(
        fields: &Value,
        labels: Option<&Labels>,
        contract: &ReplicaContract,
        is_mapped: bool,
    ) -> Report {
        let properties = json!({
            "spec": {"allOf": [{"$ref": "#/components/schemas/x.Spec"}]},
            "status": {"type": "object", "properties": fields},
        });
        report_on(&json!({"properties": properties}), labels, contract, is_mapped)
    }

    fn report_on(
        root: &Value,
        labels: Option<&Labels>,
        contract: &ReplicaContract,
        is_mapped: bool,
    ) -> Report {
        let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
        let mut document = json!({"components": {"schemas": {
            "x.Set": root,
            "x.Spec": {"type": "object", "properties": {"replicas": {"type": "integer"}, "annotations": texts}},
        }}});
        document["components"]["schemas"]["x.Set"]["x-kubernetes-group-version-kind"] =
            json!([{"group": "x.dev", "version": "v1", "kind": "Set"}]);
        let schema = Schema::of(&document, "x.dev", "v1", "Set").unwrap();
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("x.dev", "v1", "Set"));
        check(&kind, &schema, labels, is_mapped, contract)
    }

    fn wrong(report: &Report) -> Vec<&str> {
        report.fields.iter().filter(|field| !field.ok && field.required).map(|field| field.name).collect()
    }

    #[test]
    fn a_kind_with_all_fields_and_the_label_honours_the_contract() {
        let mut fields = json!({
            "active": {"type": "integer"}, "observedGeneration": {"type": "integer"}, "conditions": {"type": "array"},
        });
        assert!(report(&fields, Some(&labelled()), &ReplicaContract::default(), false).honours);
        fields.as_object_mut().unwrap().remove("conditions");
        assert_eq!(wrong(&report(&fields, Some(&labelled()), &ReplicaContract::default(), false)), ["ready"]);
    }

    #[test]
    fn each_missing_field_is_named_with_its_probable_synonym() {
        let fields = json!({"readyReplicas": {"type": "integer"}, "observedGeneration": {"type": "string"}});
        let report = report(&fields, Some(&Labels::new()), &ReplicaContract::default(), false);
        assert_eq!(wrong(&report), ["active", "observedGeneration", "ready", "label"]);
        let note = &report.fields[1].note;
        assert!(note.contains("status.readyReplicas") && note.contains("--path active="), "{note}");
    }

    #[test]
    fn a_kind_is_used_by_its_own_paths_without_the_label() {
        let fields = json!({"readyReplicas": {"type": "integer"}, "observedGeneration": {"type": "integer"}});
        let read = |contract| serde_json::from_value::<ReplicaContract>(contract).unwrap();
        let numbers = read(json!({"active": "status.readyReplicas"}));
        assert_eq!(wrong(&report(&fields, Some(&Labels::new()), &numbers, true)), ["ready"]);
        let whole = read(json!({"active": "status.readyReplicas", "ready": {"cel": "true"}}));
        assert!(report(&fields, Some(&Labels::new()), &whole, true).honours);
        let misspelt = ReplicaContract { restarted_at: Some("spec.restratedAt".parse().unwrap()), ..whole };
        assert_eq!(wrong(&report(&fields, Some(&Labels::new()), &misspelt, true)), ["restartedAt"]);
    }

    #[test]
    fn what_is_optional_is_checked_where_the_contract_names_it_and_never_required() {
        let found = |contract: Value| {
            let contract = serde_json::from_value(contract).unwrap();
            let fields = json!({"available": {"type": "integer"}, "ends": {"type": "string"}});
            let all = report(&fields, Some(&Labels::new()), &contract, true).fields;
            let of = ["minReadySeconds", "podReplacementPolicy", "available", "terminating"];
            let optional: Vec<_> = all.into_iter().filter(|field| of.contains(&field.name)).collect();
            assert!(!optional.iter().any(|field| field.required));
            optional.into_iter().map(|field| (field.name, field.ok)).collect::<Vec<_>>()
        };
        assert!(found(json!({"active": "status.active"})).is_empty());
        let named = json!({
            "minReadySeconds": "spec.replicas", "podReplacementPolicy": "spec.replicas",
            "available": "status.available", "terminating": "status.ends",
        });
        let judged = [
            ("minReadySeconds", true),
            ("podReplacementPolicy", false),
            ("available", true),
            ("terminating", false),
        ];
        assert_eq!(found(named), judged);
    }

    #[test]
    fn a_field_that_the_schema_leaves_open_counts_as_present() {
        let open = json!({"active": {"type": "integer"}, "observedGeneration": {"x-kubernetes-preserve-unknown-fields": true}, "conditions": {"type": "array"}});
        assert!(report(&open, None, &ReplicaContract::default(), false).honours);
    }

    #[test]
    fn a_schema_that_is_open_at_any_level_lets_unknown_fields_count_as_present() {
        let open = |properties: Value| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": properties});
        let honours = |root: &Value| report_on(root, None, &ReplicaContract::default(), false).honours;
        assert!(honours(&open(json!({"metadata": {"type": "object"}}))));
        let replicas = json!({"replicas": {"type": "integer"}});
        let both = |spec: Value, status: Value| json!({"properties": {"spec": spec, "status": status}});
        assert!(honours(&both(open(replicas.clone()), open(json!({"phase": {"type": "string"}})))));
        // Below a field with properties of its own, the server drops others again.
        let closed = json!({"type": "object", "properties": {"phase": {"type": "string"}}});
        assert!(!honours(&open(json!({"status": closed}))));
        // A known field is checked as ever.
        assert!(!honours(&both(open(json!({"replicas": {"type": "string"}})), open(json!({})))));
    }

    #[test]
    fn a_path_with_a_quoted_name_is_read_as_one_name() {
        let judged = |path: &str| {
            let contract = serde_json::from_value(json!({"restartedAt": path})).unwrap();
            let fields = report(&json!({}), Some(&Labels::new()), &contract, true).fields;
            let field = fields.into_iter().find(|field| field.name == "restartedAt").unwrap();
            assert_eq!(field.path, path);
            (field.ok, field.note)
        };
        assert_eq!(judged("spec.annotations['example.org/restarted.at']"), (true, String::new()));
        assert_eq!(judged("spec.replicas['a.b']"), (false, "spec.replicas has no such field".to_owned()));
    }

    #[test]
    fn a_report_for_scripts_names_the_kind_beside_its_fields() {
        let report = report(&json!({}), Some(&Labels::new()), &ReplicaContract::default(), false);
        let document = serde_json::to_value(&report).unwrap();
        let names: Vec<_> = document.as_object().unwrap().keys().collect();
        assert_eq!(names, ["apiVersion", "fields", "honours", "kind"]);
        assert_eq!((&document["kind"], &document["honours"]), (&json!("Set"), &json!(false)));
        assert_eq!(document["fields"][1]["name"], "active");
    }
}
