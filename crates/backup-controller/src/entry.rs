//! Which entry of the settings a held object belongs to.

use std::sync::Arc;

use crate::{
    annotation::BackupStatus,
    settings::{Entries, ProtectedKind},
};

/// The entry in the status of a held object, whatever its labels are by now; otherwise the given one.
#[must_use]
pub fn recorded(
    entries: &Entries,
    status: Option<&BackupStatus>,
    otherwise: Arc<ProtectedKind>,
) -> Arc<ProtectedKind> {
    let said = status.and_then(|status| entries.named(&status.entry));
    said.cloned().unwrap_or(otherwise)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Settings, fixtures::failed};

    #[test]
    fn the_entry_that_was_reported_stays_as_long_as_it_exists() {
        let entry = "{apiVersion: v1, kind: A, resource: as, backup: b}";
        let settings: Settings = serde_saphyr::from_str(&format!(
            "kinds: {{one: {entry}, two: {entry}}}\nbackups: {{b: {{apiVersion: v1, kind: B, resource: bs, template: x, \
             succeeded: 'true'}}}}"
        ))
        .unwrap();
        let entries = &settings.by_resource["as"];
        let by = |said: Option<&str>| {
            let status = said.map(|said| BackupStatus { entry: said.into(), ..failed(1) });
            recorded(entries, status.as_ref(), entries.named("two").unwrap().clone()).id.clone()
        };
        assert_eq!((by(Some("one")), by(Some("lost")), by(None)), ("one".into(), "two".into(), "two".into()));
    }
}
