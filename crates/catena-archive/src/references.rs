//! The objects that the specs of others name: those of a backup, and the Secrets, `ConfigMaps` and claims that pods need. Pure.

use std::collections::{BTreeSet, HashMap};

use catena_cluster::Identity;
use serde_json::Value;

use super::Manifest;

/// The endings of fields that hold the name of an object.
const ENDINGS: [&str; 3] = ["Reference", "Ref", "Name"];

/// The uids of the objects that the spec of each object names: by `kind` and `name`, or by a name in a field that is called after
/// the kind, such as `issuerRef` or `clusterName`. An object in another namespace is not looked for.
pub fn references(manifests: &[Manifest]) -> HashMap<String, Vec<String>> {
    let mut by_name: HashMap<String, Vec<Identity>> = HashMap::new();
    for identity in manifests.iter().map(Manifest::identity) {
        by_name.entry(identity.name.clone()).or_default().push(identity);
    }
    let named = |manifest: &Manifest| {
        let (own, mut uids) = (manifest.identity(), Vec::new());
        let is_near = |object: &&Identity| object.namespace.is_none() || object.namespace == own.namespace;
        each_name("", &Value::Null, "", &manifest.object()["spec"], &mut |within, object, field, name| {
            let kind = object["kind"].as_str().unwrap_or(within);
            let field = if field == "name" { kind } else { field };
            let called = by_name.get(name).into_iter().flatten().filter(is_near);
            let meant = called.filter(|object| is_after(&object.kind, field) && object.uid != own.uid);
            uids.extend(meant.map(|object| object.uid.clone()));
        });
        (own.uid, uids)
    };
    manifests.iter().map(named).collect()
}

/// Gives each text that may name an object, with its field, the object that has this, and the field of that object.
fn each_name(
    within: &str,
    object: &Value,
    field: &str,
    value: &Value,
    see: &mut impl FnMut(&str, &Value, &str, &str),
) {
    match value {
        Value::String(name) => see(within, object, field, name),
        Value::Array(items) => items.iter().for_each(|item| each_name(within, object, field, item, see)),
        Value::Object(fields) => {
            fields.iter().for_each(|(inner, inside)| each_name(field, value, inner, inside, see));
        }
        _ => {}
    }
}

/// Whether a field is called after a kind, or is a kind itself.
fn is_after(kind: &str, field: &str) -> bool {
    let called = ENDINGS.iter().find_map(|ending| field.strip_suffix(ending)).unwrap_or(field);
    called.to_lowercase().ends_with(&kind.to_lowercase())
}

/// An object that pods need: the plural of its kind, and its name.
pub type Use = (&'static str, String);

/// The objects that pods need by what a value names.
pub fn uses(value: &Value) -> BTreeSet<Use> {
    let mut uses = BTreeSet::new();
    each_name("", &Value::Null, "", value, &mut |within, _, field, name| {
        if let Some(kind) = kind_of(within).filter(|_| ["secretName", "claimName", "name"].contains(&field)) {
            uses.insert((kind, name.to_owned()));
        }
    });
    uses
}

/// The kind that a field of a volume, of a container or of a pod is for.
fn kind_of(field: &str) -> Option<&'static str> {
    match field {
        "secret" | "secretRef" | "secretKeyRef" | "imagePullSecrets" => Some("secrets"),
        "configMap" | "configMapRef" | "configMapKeyRef" => Some("configmaps"),
        "persistentVolumeClaim" => Some("persistentvolumeclaims"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::manifest::tests::manifest;

    #[test]
    fn an_object_is_named_by_its_kind_or_by_a_field_that_is_called_after_it() {
        let cluster = manifest("Cluster", "db", &json!({}));
        let elsewhere = manifest("Cluster", "far", &json!({"namespace": "other"}));
        let names = |spec: Value| {
            let asked = manifest("Pooler", "pooler", &json!({"spec": spec}));
            let found = references(&[cluster.clone(), elsewhere.clone(), asked]);
            found["uid-of-pooler"].iter().any(|uid| uid == "uid-of-db" || uid == "uid-of-far")
        };
        for spec in [
            json!({"target": {"kind": "Cluster", "name": "db"}}),
            json!({"poolerRef": {"kind": "Cluster", "name": "db"}}),
            json!({"clusterRef": {"name": "db"}}),
            json!({"sources": [{"sourceClusterName": "db"}]}),
            json!({"cluster": "db"}),
        ] {
            assert!(names(spec.clone()), "{spec}");
        }
        for spec in [
            json!({"target": {"kind": "Pooler", "name": "db"}}),
            json!({"secretName": "db", "labels": {"app": "db"}}),
            json!({"clusterRef": {"name": "far"}}),
        ] {
            assert!(!names(spec.clone()), "{spec}");
        }
    }

    #[test]
    fn what_volumes_variables_and_pulls_need_is_found_at_any_depth() {
        let pod = json!({
            "volumes": [
                {"name": "tls", "secret": {"secretName": "tls"}},
                {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "all", "projected": {"sources": [{"configMap": {"name": "part"}}, {"secret": {"name": "token"}}]}},
            ],
            "imagePullSecrets": [{"name": "registry"}],
            "containers": [{
                "name": "web", "envFrom": [{"configMapRef": {"name": "env"}}, {"secretRef": {"kind": "Any", "name": "keys"}}],
                "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}],
            }],
        });
        let uses = uses(&json!({"spec": {"template": {"spec": pod}}}));
        let of = |kind: &str| -> Vec<&str> {
            uses.iter().filter(|(of, _)| *of == kind).map(|(_, name)| &**name).collect()
        };
        assert_eq!(of("secrets"), ["db", "keys", "registry", "tls", "token"]);
        assert_eq!(of("configmaps"), ["env", "part"]);
        assert_eq!(of("persistentvolumeclaims"), ["data"]);
    }
}
