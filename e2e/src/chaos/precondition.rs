//! The design's rule for writes: each change or deletion names the uid of its object, and each create names the object.

use axum::http::{Method, Uri};
use serde_json::Value;

/// How a write breaks the rule, if it does.
pub fn broken_by(method: &Method, uri: &Uri, media: &str, body: &[u8]) -> Option<&'static str> {
    let is_forced = uri.query().is_some_and(|query| query.contains("force=true"));
    let said = read(media, body);
    let has = |pointer| said.pointer(pointer).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    match *method {
        Method::DELETE if !has("/preconditions/uid") => Some("a delete without the uid"),
        Method::POST if !has("/metadata/name") => Some("a create without a name"),
        Method::PATCH if media.contains("json-patch") => {
            let tests_uid = said.as_array().is_some_and(|patch| patch.iter().any(is_test_of_uid));
            (!tests_uid).then_some("a JSON patch that does not test the uid")
        }
        // Without a uid, an apply is meant to create, and takes no field over from others.
        Method::PATCH if media.contains("apply-patch") && !is_forced => None,
        Method::PATCH if !has("/metadata/uid") => Some("a patch without the uid"),
        Method::PUT if !has("/metadata/uid") => Some("an update without the uid"),
        _ => None,
    }
}

fn is_test_of_uid(operation: &Value) -> bool {
    operation["op"] == "test" && operation["path"] == "/metadata/uid"
}

fn read(media: &str, body: &[u8]) -> Value {
    if media.contains("yaml") {
        return std::str::from_utf8(body)
            .ok()
            .and_then(|text| serde_saphyr::from_str(text).ok())
            .unwrap_or_default();
    }
    serde_json::from_slice(body).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_write_that_would_hit_another_object_of_the_name_is_found() {
        let merge = "application/merge-patch+json";
        let patch = "application/json-patch+json";
        let apply = "application/apply-patch+yaml";
        for (method, query, media, body, is_safe) in [
            (Method::DELETE, "", "application/json", json!({"preconditions": {"uid": "x"}}), true),
            (
                Method::DELETE,
                "",
                "application/json",
                json!({"preconditions": {"resourceVersion": "1"}}),
                false,
            ),
            (Method::POST, "", "application/json", json!({"metadata": {"name": "web"}}), true),
            (Method::POST, "", "application/json", json!({"metadata": {"generateName": "web-"}}), false),
            (Method::PATCH, "", merge, json!({"metadata": {"uid": "x"}}), true),
            (Method::PATCH, "", merge, json!({"metadata": {"name": "web"}}), false),
            (Method::PATCH, "", patch, json!([{"op": "test", "path": "/metadata/uid", "value": "x"}]), true),
            (Method::PATCH, "", patch, json!([{"op": "remove", "path": "/metadata/finalizers"}]), false),
            (Method::PATCH, "?force=true", apply, json!({"metadata": {"uid": "x"}}), true),
            (Method::PATCH, "?force=true", apply, json!({"metadata": {"name": "web"}}), false),
            (Method::PATCH, "", apply, json!({"metadata": {"name": "web"}}), true),
        ] {
            let uri: Uri = format!("/api/v1/namespaces/x/pods/web{query}").parse().unwrap();
            let broken = broken_by(&method, &uri, media, body.to_string().as_bytes());
            assert_eq!(broken.is_none(), is_safe, "{method} {media} {body}: {broken:?}");
        }
    }
}
