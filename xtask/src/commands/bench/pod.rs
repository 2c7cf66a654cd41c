//! The pod of all subjects.

use serde_json::{Value, json};

/// The image at first.
pub const IMAGE: &str = "nginx:1.29";
/// The image after a rolling change.
pub const NEXT_IMAGE: &str = "nginx:1.30";

/// Size of a pod without padding, as JSON, with its status and its managed fields.
const UNPADDED: usize = 4_100;
/// Size of one padding variable, with its syntax and its managed field.
const VARIABLE: usize = 1_000;
/// The part of that which is not the value.
const SYNTAX: usize = 97;

/// The `metadata` and `spec` that the default template of basic-replicaset-controller's chart renders, with an environment
/// that fills the pod up to about `bytes`.
pub fn template(labels: &Value, image: &str, bytes: usize) -> Value {
    let padding: Vec<Value> = (0..bytes.saturating_sub(UNPADDED) / VARIABLE)
        .map(|number| json!({"name": format!("PADDING_{number}"), "value": "x".repeat(VARIABLE - SYNTAX)}))
        .collect();
    json!({
        "metadata": {"labels": labels},
        "spec": {
            "automountServiceAccountToken": false,
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "main",
                "image": image,
                "env": padding,
                "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}},
                "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
            }],
        },
    })
}

/// The same pod as a template of basic-replicaset-controller.
pub fn jinja(bytes: usize) -> String {
    let labels = json!({"app.kubernetes.io/name": "@name", "app.kubernetes.io/managed-by": "bench"});
    let mut pod = template(&labels, "@image", bytes);
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"]["name"] = "@pod".into();
    // Each expression takes the place of a whole string.
    [
        ("\"@name\"", "{{ name }}"),
        ("\"@image\"", "{{ parameters.image }}"),
        ("\"@pod\"", "{{ name ~ \"-\" ~ suffix }}"),
    ]
    .iter()
    .fold(format!("{pod:#}"), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_padded_up_to_the_chosen_size() {
        let size = |bytes| template(&json!({}), IMAGE, bytes).to_string().len();
        assert_eq!(size(0), size(UNPADDED), "no padding is below the size of a plain pod");
        let variables = template(&json!({}), IMAGE, 43_000)["spec"]["containers"][0]["env"].clone();
        assert_eq!(variables.as_array().unwrap().len(), 38);
        assert!(size(43_000) - size(0) > 34_000, "{}", size(43_000));
    }

    #[test]
    fn the_template_has_an_expression_wherever_the_subjects_differ() {
        let text = jinja(6_500);
        for part in [
            "\"name\": {{ name ~ \"-\" ~ suffix }}",
            "\"app.kubernetes.io/name\": {{ name }}",
            "\"image\": {{ parameters.image }}",
            "PADDING_1",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(!text.contains('@'), "{text}");
    }
}
