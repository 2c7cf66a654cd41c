//! Which entry of the settings a held object belongs to.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    annotation::BackupStatus,
    settings::{Entries, ProtectedKind},
};

/// The entry in the status of a held object, whatever its labels are by now; otherwise the given one. An annotation
/// that may come from another object never makes the release easier.
#[must_use]
pub fn recorded(
    entries: &Entries,
    object: &Value,
    status: Option<&BackupStatus>,
    otherwise: Arc<ProtectedKind>,
) -> Arc<ProtectedKind> {
    let said = status.and_then(|status| entries.named(&status.entry));
    let said = said.or_else(|| {
        let former = entries.named(&BackupStatus::former(object)?.entry)?;
        (former.always_holds() && !otherwise.always_holds()).then_some(former)
    });
    said.cloned().unwrap_or(otherwise)
}

#[cfg(test)]
mod tests {
    use catena_api::keys::BACKUP_STATUS;
    use serde_json::json;

    use super::*;
    use crate::Settings;

    #[test]
    fn a_status_that_names_no_object_counts_only_where_it_holds_more_strictly() {
        let entry = |policy: &str| format!("{{apiVersion: v1, kind: A, resource: as, backup: b, {policy}}}");
        let settings: Settings = serde_saphyr::from_str(&format!(
            "kinds: {{hold: {0}, other: {0}, release: {1}, none: {2}}}\nbackups: {{b: {{apiVersion: v1, kind: B, resource: bs, \
             template: x, succeeded: 'true'}}}}",
            entry("onFailure: Hold"),
            entry("onFailure: Release"),
            entry("protect: false"),
        ))
        .unwrap();
        let entries = &settings.by_resource["as"];
        let by = |uid: &str, said: &str, otherwise: &str| {
            let status = json!({
                "uid": uid, "state": "Failed", "entry": said, "attempt": 1, "since": "2026-01-01T00:00:00Z",
                "reason": "BackupFailed", "message": "",
            });
            let annotations = json!({BACKUP_STATUS: status.to_string()});
            let object = json!({"metadata": {"uid": "u", "annotations": annotations}});
            let status = BackupStatus::of(&object);
            recorded(entries, &object, status.as_ref(), entries.named(otherwise).unwrap().clone()).id.clone()
        };
        assert_eq!(
            (by("u", "release", "hold"), by("v", "hold", "release")),
            ("release".into(), "release".into())
        );
        assert_eq!((by("", "hold", "release"), by("", "hold", "none")), ("hold".into(), "hold".into()));
        for (said, otherwise) in [
            ("other", "hold"),
            ("release", "hold"),
            ("release", "none"),
            ("none", "release"),
            ("lost", "release"),
        ] {
            assert_eq!(by("", said, otherwise), otherwise, "{said}");
        }
    }
}
