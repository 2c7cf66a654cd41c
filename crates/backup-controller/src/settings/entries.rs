//! The entries of the settings for one kind.

use std::sync::Arc;

use kube::core::Selector;

use super::{OnFailure, ProtectedKind};
use crate::annotation::BackupStatus;

/// The entries of one kind, in the order of their names: an object belongs to the first that selects it.
pub struct Entries {
    all: Vec<Arc<ProtectedKind>>,
    fingerprint: Arc<str>,
}

impl Entries {
    /// Takes at least one entry; all have the same kind.
    #[must_use]
    pub fn new(all: Vec<Arc<ProtectedKind>>) -> Self {
        let selectors: Vec<_> = all.iter().map(|entry| (&entry.id, &entry.selector)).collect();
        let fingerprint = format!("{selectors:?}").into();
        Self { all, fingerprint }
    }

    /// A fingerprint of the names and selectors: a selection by other entries does not apply to these.
    #[must_use]
    pub fn fingerprint(&self) -> &Arc<str> {
        &self.fingerprint
    }

    /// The names and the selectors.
    #[must_use]
    pub fn selectors(&self) -> Vec<(Arc<str>, Selector)> {
        self.all.iter().map(|entry| (entry.id.as_str().into(), entry.selector.clone())).collect()
    }

    /// Any of them, for their common fields.
    #[must_use]
    pub fn first(&self) -> Option<&Arc<ProtectedKind>> {
        self.all.first()
    }

    /// Those that protect.
    pub fn protecting(&self) -> impl Iterator<Item = &Arc<ProtectedKind>> {
        self.all.iter().filter(|entry| entry.protect)
    }

    /// The entry with a name.
    #[must_use]
    pub fn named(&self, id: &str) -> Option<&Arc<ProtectedKind>> {
        self.all.iter().find(|entry| entry.id == id)
    }

    /// The entry in the status of a held object, whatever its labels are by now; otherwise the given one.
    #[must_use]
    pub fn recorded(
        &self,
        status: Option<&BackupStatus>,
        otherwise: Arc<ProtectedKind>,
    ) -> Arc<ProtectedKind> {
        let said = status.and_then(|status| self.named(&status.entry));
        said.cloned().unwrap_or(otherwise)
    }

    /// The entry for a deleted object that belongs to none: the one with the strictest release.
    #[must_use]
    pub fn strictest(&self) -> Option<&Arc<ProtectedKind>> {
        self.all.iter().min_by_key(|entry| (!entry.protect, entry.on_failure != OnFailure::Hold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fixtures::failed, settings::Settings};

    fn entries(more: &[(&str, &str)]) -> Settings {
        let kinds = more.iter().map(|(id, more)| {
            format!("  {id}: {{apiVersion: v1, kind: A, resource: as, backup: b, {more}}}\n")
        });
        let backups = "backups: {b: {apiVersion: v1, kind: B, resource: bs, template: x, succeeded: 'true'}}";
        serde_saphyr::from_str(&format!("kinds:\n{}{backups}", kinds.collect::<String>())).unwrap()
    }

    #[test]
    fn what_belongs_to_no_entry_is_held_by_the_strictest() {
        let strictest =
            |more: &[(&str, &str)]| entries(more).by_resource["as"].strictest().unwrap().id.clone();
        let (hold, release, none) = ("onFailure: Hold", "onFailure: Release", "protect: false");
        assert_eq!(strictest(&[("a", release), ("b", hold), ("c", none)]), "b");
        assert_eq!(strictest(&[("a", none), ("b", release)]), "b");
        assert_eq!(strictest(&[("a", none)]), "a");
    }

    #[test]
    fn another_name_or_selector_is_another_fingerprint_and_another_policy_is_not() {
        let fingerprint = |more: &[(&str, &str)]| entries(more).by_resource["as"].fingerprint().to_string();
        let one = fingerprint(&[("a", "deadline: 1h")]);
        assert_eq!(fingerprint(&[("a", "protect: false")]), one);
        assert_ne!(fingerprint(&[("b", "deadline: 1h")]), one);
        assert_ne!(fingerprint(&[("a", "selector: {matchLabels: {x: y}}")]), one);
        assert_ne!(fingerprint(&[("a", "deadline: 1h"), ("b", "deadline: 1h")]), one);
    }

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
            entries.recorded(status.as_ref(), entries.named("two").unwrap().clone()).id.clone()
        };
        assert_eq!((by(Some("one")), by(Some("lost")), by(None)), ("one".into(), "two".into(), "two".into()));
    }
}
