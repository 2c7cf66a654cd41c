//! What backup-controller says on an object that it holds.

use catena_api::keys::BACKUP_STATUS;
use kube::core::ObjectMeta;
use serde_json::Value;

/// What an object says of its waiting; null if it says nothing. What a copy brought along is said of another object.
pub fn said(metadata: &ObjectMeta) -> Value {
    let text = metadata.annotations.as_ref().and_then(|annotations| annotations.get(BACKUP_STATUS));
    let said: Value = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let is_own = said["uid"].as_str().is_none_or(|uid| metadata.uid.as_deref() == Some(uid));
    if is_own { said } else { Value::Null }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_another_object_said_is_not_told() {
        let message = |uid: Value| {
            let status = json!({"uid": uid, "message": "waiting"}).to_string();
            let metadata = json!({"uid": "u", "annotations": {BACKUP_STATUS: status}});
            said(&serde_json::from_value(metadata).unwrap())["message"].clone()
        };
        assert_eq!(message("u".into()), "waiting");
        assert_eq!(message("v".into()), Value::Null);
        // Earlier versions of the controller do not say it.
        assert_eq!(message(Value::Null), "waiting");
    }
}
