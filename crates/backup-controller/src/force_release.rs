//! The annotation that releases a held object without a backup, and the check that it is meant for this object.
//!
//! A copy of an object (`kubectl get --output yaml`, a restore) contains the annotation. So it counts only if it begins with
//! the object's uid.

use catena_api::keys::FORCE_RELEASE;
use serde_json::Value;

use crate::metadata;

/// The request on an object for a release without a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ForceRelease {
    /// Nothing.
    #[default]
    Unasked,
    /// A request without the object's uid or without a reason, which may belong to another object.
    Unproven,
    /// A valid request, with its reason.
    Granted(String),
}

impl ForceRelease {
    /// The request on a held object.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let text = metadata::entry(object, "annotations", FORCE_RELEASE).unwrap_or_default().trim();
        if text.is_empty() {
            return Self::Unasked;
        }
        let uid = metadata::text(object, "uid");
        let end = |character: char| character == ':' || character.is_whitespace();
        let (named, reason) = text.split_once(end).unwrap_or((text, ""));
        let reason = reason.trim_start_matches(':').trim();
        let is_meant = !uid.is_empty() && named.eq_ignore_ascii_case(uid) && !reason.is_empty();
        if is_meant { Self::Granted(reason.to_owned()) } else { Self::Unproven }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const UID: &str = "8f2a6c1e-0000-4000-8000-00000000000a";
    const OTHER: &str = "8f2a6c1e-0000-4000-8000-00000000000b";

    fn asked(text: &str) -> ForceRelease {
        ForceRelease::of(&json!({"metadata": {"uid": UID, "annotations": {FORCE_RELEASE: text}}}))
    }

    #[test]
    fn a_reason_counts_if_it_comes_with_the_uid_of_the_object() {
        let granted = ForceRelease::Granted("dumped by hand".into());
        for text in [
            format!("{UID} dumped by hand"),
            format!(" {UID}  dumped by hand "),
            format!("{}: dumped by hand", UID.to_uppercase()),
        ] {
            assert_eq!(asked(&text), granted, "{text}");
        }
        for text in ["dumped by hand", ": dumped by hand", &format!("{OTHER} dumped by hand"), UID] {
            assert_eq!(asked(text), ForceRelease::Unproven, "{text}");
        }
        let nameless = json!({"metadata": {"annotations": {FORCE_RELEASE: ": dumped by hand"}}});
        assert_eq!(ForceRelease::of(&nameless), ForceRelease::Unproven);
    }

    #[test]
    fn without_a_text_nothing_is_asked() {
        for text in ["", "  "] {
            assert_eq!(asked(text), ForceRelease::Unasked);
        }
    }
}
