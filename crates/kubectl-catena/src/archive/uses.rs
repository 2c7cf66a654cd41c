//! The Secrets, `ConfigMaps` and claims that an object names as a pod or a pod template does. Pure.

use std::collections::BTreeSet;

use serde_json::Value;

/// An object that pods need: the plural of its kind, and its name.
pub type Use = (&'static str, String);

/// Adds what a value names.
pub fn find_uses(value: &Value, uses: &mut BTreeSet<Use>) {
    visit("", value, uses);
}

fn visit(field: &str, value: &Value, uses: &mut BTreeSet<Use>) {
    match value {
        Value::Object(fields) => {
            let name =
                ["secretName", "claimName", "name"].iter().find_map(|name| fields.get(*name)?.as_str());
            if let (Some(kind), Some(name)) = (kind_of(field), name) {
                uses.insert((kind, name.to_owned()));
            }
            fields.iter().for_each(|(field, value)| visit(field, value, uses));
        }
        Value::Array(items) => items.iter().for_each(|item| visit(field, item, uses)),
        _ => {}
    }
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
                "name": "web", "envFrom": [{"configMapRef": {"name": "env"}}, {"secretRef": {"name": "keys"}}],
                "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}],
            }],
        });
        let mut uses = BTreeSet::new();
        find_uses(&json!({"spec": {"template": {"spec": pod}}}), &mut uses);
        let of = |kind: &str| -> Vec<&str> {
            uses.iter().filter(|(of, _)| *of == kind).map(|(_, name)| &**name).collect()
        };
        assert_eq!(of("secrets"), ["db", "keys", "registry", "tls", "token"]);
        assert_eq!(of("configmaps"), ["env", "part"]);
        assert_eq!(of("persistentvolumeclaims"), ["data"]);
    }
}
