//! The warning about a kind for which neither the settings nor its own definition say where the fields of the contract are.

use std::collections::BTreeMap;

use catena_api::contract::{REPLICAS_LABEL, REPLICAS_VERSION};

use crate::child_kind::ChildKind;

/// The name of the CRD that would define a kind; `None` for a kind of the core group, which no CRD defines.
#[must_use]
pub fn definition_of(kind: &ChildKind) -> Option<String> {
    let resource = kind.api_resource();
    (!resource.group.is_empty()).then(|| format!("{}.{}", resource.plural, resource.group))
}

/// The warning about a kind without a mapping, by the labels of its CRD; `labels` is `None` if no CRD defines the kind. A CRD
/// that says the known version of the contract gives no reason for one.
#[must_use]
pub fn assumption(kind: &ChildKind, labels: Option<&BTreeMap<String, String>>) -> Option<String> {
    let missing = match labels.map(|labels| labels.get(REPLICAS_LABEL)) {
        Some(Some(version)) if version == REPLICAS_VERSION => return None,
        Some(Some(version)) => format!(
            "its CRD honours the version {version} of the contract ({REPLICAS_LABEL}), which this release does not know"
        ),
        Some(None) => format!("its CRD has no label {REPLICAS_LABEL}"),
        None => format!("no CRD defines it that could have the label {REPLICAS_LABEL}"),
    };
    Some(format!(
        "children: {} {} has no contract, and {missing}: the paths of the contract {REPLICAS_VERSION} are assumed; map its fields \
         under contract, or set contract: {{}} if it has these paths",
        kind.api_version, kind.kind
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn kind(entry: Value) -> ChildKind {
        serde_json::from_value(entry).unwrap()
    }

    fn sets() -> ChildKind {
        kind(json!({"apiVersion": "example.com/v1", "kind": "Crowd"}))
    }

    fn warning(label: &str, value: &str) -> Option<String> {
        assumption(&sets(), Some(&BTreeMap::from([(label.to_owned(), value.to_owned())])))
    }

    #[test]
    fn only_a_label_with_a_known_version_says_enough() {
        assert_eq!(warning(REPLICAS_LABEL, "v1"), None);
        let unknown = warning(REPLICAS_LABEL, "v2").unwrap();
        assert!(unknown.contains("version v2 of the contract"), "{unknown}");
        let unlabelled = warning("example.com/replicas", "v1").unwrap();
        assert!(unlabelled.contains("example.com/v1 Crowd") && unlabelled.contains("its CRD has no label"));
        let built_in = assumption(&sets(), None).unwrap();
        assert!(built_in.contains("no CRD defines it"), "{built_in}");
    }

    #[test]
    fn a_kind_of_the_core_group_has_no_definition() {
        assert_eq!(definition_of(&sets()).as_deref(), Some("crowds.example.com"));
        let core = kind(json!({"apiVersion": "v1", "kind": "ReplicationController"}));
        assert_eq!(definition_of(&core), None);
    }

    #[test]
    fn an_empty_contract_is_one() {
        assert!(!sets().is_mapped);
        let mapped = kind(json!({"apiVersion": "example.com/v1", "kind": "Crowd", "contract": {}}));
        assert!(mapped.is_mapped);
        assert_eq!(mapped.contract, sets().contract);
    }
}
