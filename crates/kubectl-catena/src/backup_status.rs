//! The report of backup-controller on an object that it holds.

use catena_api::keys::BACKUP_STATUS;
use kube::core::ObjectMeta;
use serde_json::Value;

/// The reason of a held object that backup-controller has not reported on yet.
pub const HELD_FOR_BACKUP: &str = "HeldForBackup";
/// The reason of a held object whose kind has no entry in backup-controller's settings any more.
pub const NO_ENTRY: &str = "NoEntry";

/// The report on an object; null if there is none. One that a copy brought along is about another object.
pub fn report(metadata: &ObjectMeta) -> Value {
    let text = metadata.annotations.as_ref().and_then(|annotations| annotations.get(BACKUP_STATUS));
    let report: Value = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let is_own = report["uid"].as_str().is_some_and(|uid| metadata.uid.as_deref() == Some(uid));
    if is_own { report } else { Value::Null }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_report_of_another_object_is_ignored() {
        let message = |uid: Value| {
            let status = json!({"uid": uid, "message": "waiting"}).to_string();
            let metadata = json!({"uid": "u", "annotations": {BACKUP_STATUS: status}});
            report(&serde_json::from_value(metadata).unwrap())["message"].clone()
        };
        assert_eq!(message("u".into()), "waiting");
        assert_eq!(message("v".into()), Value::Null);
        assert_eq!(message(Value::Null), Value::Null);
    }
}
