//! Whether command-reaper keeps a command because it is declared elsewhere: the Event that reports it expires.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{ListParams, ObjectMeta},
    core::DynamicObject,
};
use serde::Deserialize;

use crate::{connection::Cluster, object::Identity, pages};

/// Its settings, in each of its installations.
const SETTINGS: &str = "app.kubernetes.io/part-of=catena,app.kubernetes.io/component=command-reaper";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Settings {
    #[serde(default)]
    declared_by: Marks,
    #[serde(default)]
    kinds: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(default)]
    group: String,
    kind: String,
    #[serde(default)]
    declared_by: Marks,
}

/// Labels and annotations of tools that recreate missing objects.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Marks {
    labels: Vec<String>,
    annotations: Vec<String>,
}

/// The label or annotation for which command-reaper keeps an object; none also where its settings may not be read.
pub async fn kept_for(cluster: &Cluster, object: &DynamicObject) -> Option<String> {
    let found = Api::<ConfigMap>::all(cluster.client.clone());
    let found = pages::all(&found, ListParams::default().labels(SETTINGS)).await.ok()?;
    let texts = found.into_iter().filter_map(|settings| settings.data?.remove("settings.yaml"));
    let identity = Identity::of(object);
    texts.into_iter().find_map(|settings| mark(&settings, &identity, &object.metadata))
}

fn mark(settings: &str, identity: &Identity, metadata: &ObjectMeta) -> Option<String> {
    let Settings { declared_by, kinds } = serde_saphyr::from_str(settings).ok()?;
    let is_of = |entry: &&Entry| (&*entry.group, &entry.kind) == (identity.group(), &identity.kind);
    let entry = kinds.iter().find(is_of)?;
    [&declared_by, &entry.declared_by].into_iter().find_map(|marks| marks.on(metadata)).cloned()
}

impl Marks {
    fn on(&self, ObjectMeta { labels, annotations, .. }: &ObjectMeta) -> Option<&String> {
        let found = |keys: &'_ [String], map: &Option<BTreeMap<String, String>>| {
            keys.iter().position(|key| map.as_ref().is_some_and(|map| map.contains_key(key)))
        };
        let annotation = found(&self.annotations, annotations).map(|at| &self.annotations[at]);
        annotation.or_else(|| found(&self.labels, labels).map(|at| &self.labels[at]))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const TEXT: &str = "{declaredBy: {annotations: [tool/tracks]}, kinds: [
        {id: r, group: catena.dev, version: v1alpha1, resource: rs, kind: Restart, finishedAt: '', ttlSeconds: '', declaredBy: {labels: [tool/instance]}},
        {id: j, group: batch, version: v1, resource: jobs, kind: Job, finishedAt: '', ttlSeconds: ''}]}";

    #[test]
    fn an_object_with_a_mark_of_its_kind_is_kept() {
        let mark = |api_version: &str, kind: &str, metadata: Value| {
            let identity =
                Identity { api_version: api_version.into(), kind: kind.into(), ..Identity::default() };
            mark(TEXT, &identity, &serde_json::from_value(metadata).unwrap())
        };
        let (labelled, annotated) =
            (json!({"labels": {"tool/instance": "x"}}), json!({"annotations": {"tool/tracks": "x"}}));
        let ours = "catena.dev/v1alpha1";
        assert_eq!(mark(ours, "Restart", labelled.clone()), Some("tool/instance".into()));
        assert_eq!(mark(ours, "Restart", annotated.clone()), Some("tool/tracks".into()));
        assert_eq!(mark("batch/v1", "Job", labelled), None);
        assert_eq!(mark("batch/v1", "Job", annotated.clone()), Some("tool/tracks".into()));
        assert_eq!(mark("v1", "ConfigMap", annotated), None);
        assert_eq!(mark(ours, "Restart", json!({})), None);
    }
}
