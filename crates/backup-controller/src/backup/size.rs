//! Whether the API server can store a backup.

use catena_api::reason;
use operator_watch::Failure;
use serde_json::{Map, Value};

/// Maximum size of the data of a Secret or a `ConfigMap`, in bytes.
const MAX_DATA: usize = 1024 * 1024;
/// Maximum size of any other object, in bytes: by default, etcd takes no longer request.
const MAX_OBJECT: usize = 1536 * 1024;

/// The remedy for a backup of a kind that limits its data.
const OTHER_KIND: &str = "let its template copy the fields of the object as they are, or store {{ restorable }} in a ControllerRevision, which takes 1.5 MiB";
/// The remedy for any other backup.
const ELSEWHERE: &str = "keep the object smaller, or let a Job copy it to where there is room";

/// The reason why the API server will not store a backup by the template `name`; `None` if it is small.
#[must_use]
pub fn excess(name: &str, backup: &Value) -> Option<Failure> {
    let kind = backup["kind"].as_str().unwrap_or_default();
    let (size, limit, remedy) = match (backup["apiVersion"].as_str(), kind) {
        (Some("v1"), "Secret") => {
            (texts(&backup["stringData"]) + decoded(&backup["data"]), MAX_DATA, OTHER_KIND)
        }
        (Some("v1"), "ConfigMap") => {
            (texts(&backup["data"]) + decoded(&backup["binaryData"]), MAX_DATA, OTHER_KIND)
        }
        _ => (backup.to_string().len(), MAX_OBJECT, ELSEWHERE),
    };
    (size > limit).then(|| {
        let message = format!(
            "the backup by the template {name:?}, a {kind}, would have {size} bytes, and the API server stores at most {limit}: {remedy}; otherwise the object is held when it is deleted"
        );
        Failure::stalled(reason::BACKUP_TOO_LARGE, message)
    })
}

/// The size of all texts of a map.
fn texts(map: &Value) -> usize {
    let values = map.as_object().into_iter().flat_map(Map::values);
    values.filter_map(Value::as_str).map(str::len).sum()
}

/// The size of all texts of a map in base64, once they are decoded.
fn decoded(map: &Value) -> usize {
    texts(map) / 4 * 3
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stored(api_version: &str, kind: &str, field: &str, value: Value) -> Option<Failure> {
        let mut backup = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "it"}});
        backup[field] = value;
        excess("it", &backup)
    }

    #[test]
    fn a_backup_has_the_limit_of_its_kind() {
        let data = |size: usize| json!({"a": "x".repeat(size)});
        for (kind, plain, encoded) in [("Secret", "stringData", "data"), ("ConfigMap", "data", "binaryData")]
        {
            assert_eq!(stored("v1", kind, plain, data(MAX_DATA)), None, "{kind}");
            assert_eq!(stored("v1", kind, encoded, data(MAX_DATA / 3 * 4)), None, "{kind}");
            for (field, size) in [(plain, MAX_DATA + 1), (encoded, MAX_DATA / 3 * 4 + 8)] {
                let problem = stored("v1", kind, field, data(size)).unwrap();
                assert_eq!(problem.reason, "BackupTooLarge");
                assert!(problem.message.contains("{{ restorable }}"), "{problem}");
            }
        }
        assert_eq!(stored("apps/v1", "ControllerRevision", "data", data(MAX_DATA + 1)), None);
        let problem = stored("apps/v1", "ControllerRevision", "data", data(MAX_OBJECT)).unwrap();
        assert!(problem.message.contains("let a Job copy it"), "{problem}");
    }
}
