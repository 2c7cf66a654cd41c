//! The annotation that releases a held object without a backup, and the check that it is meant for this object.
//!
//! A copy of an object (`kubectl get --output yaml`, a restore) contains the annotation. So it counts only if it names
//! the object's uid, or if it was added after the object had reported, without it, that it is held.

use catena_api::keys::FORCE_RELEASE;
use operator_kit::render::short_digest;
use serde_json::Value;

use crate::{annotation::BackupStatus, metadata};

/// The request on an object for a release without a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ForceRelease {
    /// Nothing.
    #[default]
    Unasked,
    /// A request that may belong to another object; its digest.
    Unproven(String),
    /// A valid request, with its reason.
    Granted(String),
}

impl ForceRelease {
    /// The request on a held object, judged by its former status.
    #[must_use]
    pub fn of(object: &Value, status: Option<&BackupStatus>) -> Self {
        let text = metadata::entry(object, "annotations", FORCE_RELEASE).unwrap_or_default().trim();
        if text.is_empty() {
            return Self::Unasked;
        }
        if let Some((uid, reason)) = addressed(text) {
            let is_meant = uid.eq_ignore_ascii_case(metadata::text(object, "uid")) && !reason.is_empty();
            return if is_meant { Self::Granted(reason.to_owned()) } else { Self::Unproven(digest(text)) };
        }
        match status {
            Some(status) if status.ignored_release.as_deref() != Some(&*digest(text)) => {
                Self::Granted(text.to_owned())
            }
            _ => Self::Unproven(digest(text)),
        }
    }

    /// The digest of an ignored request.
    #[must_use]
    pub fn ignored(&self) -> Option<&str> {
        match self {
            Self::Unproven(digest) => Some(digest),
            Self::Unasked | Self::Granted(_) => None,
        }
    }
}

/// The uid at the begin of a text, and the rest.
fn addressed(text: &str) -> Option<(&str, &str)> {
    const DASHES: [usize; 4] = [8, 13, 18, 23];
    let (uid, reason) = text.split_at_checked(36)?;
    let is_uid = uid
        .bytes()
        .enumerate()
        .all(|(place, byte)| if DASHES.contains(&place) { byte == b'-' } else { byte.is_ascii_hexdigit() });
    is_uid.then(|| (uid, reason.trim_start_matches(':').trim()))
}

fn digest(text: &str) -> String {
    short_digest(&[text])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures::failed;

    const UID: &str = "8f2a6c1e-0000-4000-8000-00000000000a";
    const OTHER: &str = "8f2a6c1e-0000-4000-8000-00000000000b";

    fn object(text: &str) -> Value {
        json!({"metadata": {"uid": UID, "annotations": {FORCE_RELEASE: text}}})
    }

    fn held(ignored: Option<&str>) -> BackupStatus {
        BackupStatus { uid: UID.into(), ignored_release: ignored.map(digest), ..failed(1) }
    }

    #[test]
    fn a_reason_counts_when_it_came_after_the_object_was_held_without_it() {
        let granted = ForceRelease::Granted("dumped by hand".into());
        assert_eq!(ForceRelease::of(&object(" dumped by hand "), Some(&held(None))), granted);
        assert_eq!(ForceRelease::of(&object("dumped by hand"), Some(&held(Some("another")))), granted);
        for status in [None, Some(&held(Some("dumped by hand")))] {
            let unproven = ForceRelease::of(&object("dumped by hand"), status);
            assert!(matches!(unproven, ForceRelease::Unproven(_)), "{unproven:?}");
        }
    }

    #[test]
    fn a_reason_that_names_the_object_counts_at_any_time_and_one_that_names_another_never_does() {
        let granted = ForceRelease::Granted("dumped by hand".into());
        for text in [format!("{UID} dumped by hand"), format!("{}: dumped by hand", UID.to_uppercase())] {
            assert_eq!(ForceRelease::of(&object(&text), None), granted, "{text}");
        }
        for text in [format!("{OTHER} dumped by hand"), UID.to_owned()] {
            for status in [None, Some(&held(None))] {
                let unproven = ForceRelease::of(&object(&text), status);
                assert!(matches!(unproven, ForceRelease::Unproven(_)), "{text}: {unproven:?}");
            }
        }
    }

    #[test]
    fn without_a_reason_nothing_is_asked() {
        for text in ["", "  "] {
            assert_eq!(ForceRelease::of(&object(text), Some(&held(None))), ForceRelease::Unasked);
        }
    }
}
