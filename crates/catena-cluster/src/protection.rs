//! What backup-controller protects: the kinds that it is configured for, and its report on an object that it holds.

use std::collections::BTreeSet;

use catena_api::keys::BACKUP_STATUS;
use k8s_openapi::api::{coordination::v1::Lease, core::v1::ConfigMap};
use kube::{ResourceExt, api::ListParams, core::ObjectMeta, discovery::ApiResource};
use serde_json::Value;

use crate::{Cluster, Homes, Kind};

/// The reason of a held object that backup-controller has not reported on yet.
pub const HELD_FOR_BACKUP: &str = "HeldForBackup";
/// The reason of a held object whose kind has no entry in backup-controller's settings any more.
pub const NO_ENTRY: &str = "NoEntry";

/// The report on an object; null if there is none. One that a copy brought along is about another object.
#[must_use]
pub fn report(metadata: &ObjectMeta) -> Value {
    let text = metadata.annotations.as_ref().and_then(|annotations| annotations.get(BACKUP_STATUS));
    let report: Value = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let is_own = report["uid"].as_str().is_some_and(|uid| metadata.uid.as_deref() == Some(uid));
    if is_own { report } else { Value::Null }
}

/// The label of everything that the charts install.
pub const OURS: &str = "app.kubernetes.io/part-of=catena";
/// The label that names the controller whose object it is.
pub const COMPONENT: &str = "app.kubernetes.io/component";
/// The label with the name of a program, or of the chart if that has another name.
pub const NAME: &str = "app.kubernetes.io/name";
/// The controller that protects kinds.
pub const BACKUP_CONTROLLER: &str = "backup-controller";

/// Kinds by group and name.
pub type Kinds = BTreeSet<(String, String)>;

/// The kinds of backup-controller's settings.
#[derive(Debug, Default)]
pub struct ProtectedKinds {
    /// Those that have an entry.
    pub current: Kinds,
    /// Those that had one before an upgrade: objects that still have the finalizer wait for nobody.
    pub former: Kinds,
}

impl ProtectedKinds {
    /// All of them.
    #[must_use]
    pub fn all(&self) -> Kinds {
        self.current.union(&self.former).cloned().collect()
    }
}

/// The kinds that have or had an entry in backup-controller's settings; `None` when these cannot be read.
pub async fn protected_kinds(cluster: &Cluster) -> Option<ProtectedKinds> {
    let kind = Kind::of(ApiResource::erase::<Lease>(&()), true);
    let ours = ListParams::default().labels(OURS);
    let (maps, leases) =
        futures::join!(Homes::config_maps(cluster, OURS), cluster.metadata(&kind, None, ours));
    kinds_of(&maps.ok()?, &leases.unwrap_or_default())
}

/// The kinds that have or had an entry in backup-controller's settings, which are among these objects of our charts.
#[must_use]
pub fn kinds_of(maps: &[ConfigMap], leases: &[ObjectMeta]) -> Option<ProtectedKinds> {
    let is_of_it = |map: &&ConfigMap| map.labels().get(COMPONENT).is_some_and(|of| of == BACKUP_CONTROLLER);
    let mut kinds: Option<ProtectedKinds> = None;
    for map in installed(maps.iter().filter(is_of_it).collect(), leases) {
        let text = |name: &str| map.data.as_ref()?.get(name);
        let Some(settings) = text("settings.yaml") else { continue };
        let kinds = kinds.get_or_insert_default();
        kinds.current.extend(kinds_in(settings)?);
        // Written by the chart at an upgrade, in the same form.
        kinds.former.extend(text("former-kinds.yaml").and_then(|text| kinds_in(text)).unwrap_or_default());
    }
    kinds
}

/// The settings of installations, which have a Lease of the same name beside them: anybody can label a `ConfigMap`. Without
/// leader election there is none.
fn installed<'m>(maps: Vec<&'m ConfigMap>, leases: &[ObjectMeta]) -> Vec<&'m ConfigMap> {
    let has_lease = |map: &&ConfigMap| {
        let of = |metadata: &ObjectMeta| (metadata.namespace.clone(), metadata.name.clone());
        leases.iter().any(|lease| of(lease) == of(&map.metadata))
    };
    let (with, without): (Vec<_>, Vec<_>) = maps.into_iter().partition(has_lease);
    if with.is_empty() { without } else { with }
}

fn kinds_in(settings: &str) -> Option<Kinds> {
    let settings: Value = serde_saphyr::from_str(settings).ok()?;
    let kind = |entry: &Value| {
        let api_version = entry["apiVersion"].as_str()?;
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        Some((group.to_owned(), entry["kind"].as_str()?.to_owned()))
    };
    settings["kinds"].as_object()?.values().map(kind).collect()
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

    #[test]
    fn a_config_map_that_only_has_the_labels_answers_for_no_installation() {
        let metadata = |namespace: &str| json!({"namespace": namespace, "name": "backup-controller"});
        let map = |namespace: &str| -> ConfigMap {
            serde_json::from_value(json!({"metadata": metadata(namespace)})).unwrap()
        };
        let (ours, theirs) = (map("catena-system"), map("tenant"));
        let lease = serde_json::from_value(metadata("catena-system")).unwrap();
        assert_eq!(installed(vec![&ours, &theirs], &[lease]), [&ours]);
        assert_eq!(installed(vec![&ours, &theirs], &[]), [&ours, &theirs], "without leader election");
    }

    #[test]
    fn the_protected_kinds_are_read_from_the_settings() {
        let settings = "kinds: {db: {apiVersion: x.dev/v1, kind: Db, resource: dbs, backup: b}, cm: {apiVersion: v1, kind: ConfigMap, resource: configmaps, backup: b}}";
        let expected = [(String::new(), "ConfigMap".to_owned()), ("x.dev".to_owned(), "Db".to_owned())];
        assert_eq!(kinds_in(settings), Some(expected.into()));
        assert_eq!(kinds_in("kinds: {}"), Some(Kinds::new()));
        assert_eq!(kinds_in("kinds: {db: {kind: Db}}"), None);
    }
}
