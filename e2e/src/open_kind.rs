use serde_json::{Value, json};

/// The definition of a namespaced kind whose objects may hold anything. All versions are served; the first is stored.
#[must_use]
pub fn open_kind(group: &str, kind: &str, versions: &[&str]) -> Value {
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = |(index, name)| {
        json!({
            "name": name, "served": true, "storage": index == 0, "schema": {"openAPIV3Schema": schema},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": plural, "singular": singular, "kind": kind},
            "versions": versions.iter().enumerate().map(version).collect::<Vec<_>>(),
        },
    })
}
