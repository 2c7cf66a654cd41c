//! Whether command-reaper's rules keep a command, because it is declared elsewhere or was created again: the Event that
//! reports it expires.

use command_reaper::{
    Settings,
    command::{CommandRow, Expiry},
    notice::{because_created_again, because_declared},
    settings::Kind,
};
use jiff::Timestamp;
use kube::{api::ObjectMeta, core::DynamicObject};

use super::rules::{as_watched, settings};
use crate::{connection::Cluster, object::Identity};

/// The reason why an object is kept beyond its TTL; none also where the settings may not be read.
pub async fn kept_because(cluster: &Cluster, object: &DynamicObject, now: Timestamp) -> Option<String> {
    if object.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let settings: Vec<Settings> = settings(cluster, "command-reaper").await.ok()?;
    let identity = Identity::of(object);
    let is_of =
        |kind: &Kind| (&*kind.resource.group, &*kind.resource.kind) == (identity.group(), &*identity.kind);
    for kind in settings.into_iter().flat_map(|settings| settings.kinds).filter(is_of) {
        if let Some(reason) = kept_by(cluster, &kind, &object.metadata, now).await {
            return Some(reason);
        }
    }
    None
}

async fn kept_by(cluster: &Cluster, kind: &Kind, metadata: &ObjectMeta, now: Timestamp) -> Option<String> {
    let object = as_watched(cluster, &kind.resource, kind.selector.as_deref(), metadata).await.ok()??;
    match CommandRow::of(object, &kind.reading) {
        CommandRow { is_kept: true, .. } => Some(because_created_again()),
        CommandRow { expiry: Expiry::At(at), declared_by, .. } if at <= now => {
            declared_by.as_deref().map(because_declared)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use operator_kit::testing::{Answer, answering};
    use serde_json::{Value, json};

    use super::*;
    use crate::kinds::tests::kinds;

    const FINISHED: &str = "2026-01-01T12:00:00Z";
    const OVER: &str = "2026-01-01T12:10:00Z";

    /// The settings that the chart makes by default.
    fn shipped() -> Value {
        let values = include_str!("../../../../charts/command-reaper/values.yaml");
        let values: Value = serde_saphyr::from_str(values).unwrap();
        json!({"kinds": values["kinds"], "declaredBy": values["declaredBy"]})
    }

    /// A finished command of Argo CD with ten minutes to live.
    fn restart() -> Value {
        json!({
            "apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeploymentRestart",
            "metadata": {
                "name": "r", "namespace": "shop", "uid": "u", "creationTimestamp": "2026-01-01T11:59:00Z",
                "labels": {"tier": "batch"}, "annotations": {"argocd.argoproj.io/tracking-id": "x"},
            },
            "spec": {"targetRef": {"name": "web"}, "ttlSecondsAfterFinished": 600},
            "status": {
                "completionTime": FINISHED, "conditions": [{"type": "Succeeded", "status": "True"}],
            },
        })
    }

    /// Whether a server with these settings of command-reaper has the object kept at this time, and why.
    async fn kept(settings: Value, object: Value, now: &str) -> Option<String> {
        let asked = serde_json::from_value(object.clone()).unwrap();
        let (client, _) = answering(move |sent| {
            let items = if sent.uri.starts_with("/api/v1/configmaps?") {
                json!([{"metadata": {"name": "reaper"}, "data": {"settings.yaml": settings.to_string()}}])
            } else if selects(&sent.uri, &object["metadata"]["labels"]) {
                json!([object])
            } else {
                json!([])
            };
            Answer::Json(200, json!({"metadata": {}, "items": items}))
        });
        let cluster = Cluster { client, namespace: "shop".into(), kinds: kinds() };
        kept_because(&cluster, &asked, now.parse().unwrap()).await
    }

    /// Whether a list has objects with these labels: selectors are `key=value` here.
    fn selects(uri: &str, labels: &Value) -> bool {
        let parameters = uri.split(['?', '&']).filter_map(|parameter| parameter.split_once('='));
        let parameters: BTreeMap<_, _> = parameters.collect();
        parameters.get("labelSelector").is_none_or(|selector| {
            let (key, value) = selector.split_once("%3D").unwrap();
            labels[key] == value
        })
    }

    fn with(mut object: Value, pointer: &str, value: Value) -> Value {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[field] = value;
        object
    }

    #[tokio::test]
    async fn a_declared_command_is_kept_from_the_time_that_its_ttl_is_over() {
        let reason = kept(shipped(), restart(), OVER).await;
        assert_eq!(reason, Some(because_declared("argocd.argoproj.io/tracking-id")));
        assert_eq!(kept(shipped(), restart(), "2026-01-01T12:09:59Z").await, None);
    }

    #[tokio::test]
    async fn settings_with_a_mistake_are_not_in_force() {
        let mut mistaken = shipped()["kinds"][1].clone();
        mistaken["ttlSeconds"] = json!("object.spec.");
        let settings =
            json!({"kinds": [shipped()["kinds"][0], mistaken], "declaredBy": shipped()["declaredBy"]});
        assert_eq!(kept(settings, restart(), OVER).await, None);
    }

    #[tokio::test]
    async fn a_command_that_was_created_again_is_kept_at_any_time_and_no_copy_of_it_is() {
        let marked = |uid: &str| with(restart(), "/metadata/annotations", json!({"catena.dev/kept": uid}));
        for now in ["2026-01-01T12:00:01Z", OVER] {
            assert_eq!(kept(shipped(), marked("u"), now).await, Some(because_created_again()));
        }
        assert_eq!(kept(shipped(), marked("another"), OVER).await, None);
    }

    #[tokio::test]
    async fn only_what_command_reaper_would_delete_without_its_mark_is_kept() {
        for (field, value) in [
            ("/metadata/annotations", json!({})),
            ("/metadata/deletionTimestamp", json!(FINISHED)),
            ("/spec/ttlSecondsAfterFinished", Value::Null),
            ("/status/completionTime", Value::Null),
            ("/status/conditions", json!([])),
            ("/kind", json!("BasicReplicaSet")),
        ] {
            assert_eq!(kept(shipped(), with(restart(), field, value), OVER).await, None, "{field}");
        }
    }

    #[tokio::test]
    async fn each_entry_of_the_kind_counts_that_selects_the_object() {
        let entry = |id: &str, selector: &str, label: &str| {
            let mut entry = shipped()["kinds"][0].clone();
            for (field, value) in
                [("id", json!(id)), ("selector", json!(selector)), ("declaredBy", json!({"labels": [label]}))]
            {
                entry[field] = value;
            }
            entry
        };
        let (other, fitting) = ("tier=other", "tier=batch");
        let tier = Some(because_declared("tier"));
        for (first, second, expected) in [
            (entry("a", fitting, "tier"), entry("b", other, "none"), &tier),
            (entry("a", other, "tier"), entry("b", other, "tier"), &None),
            (entry("a", other, "none"), entry("b", fitting, "tier"), &tier),
            (entry("a", other, "tier"), entry("b", fitting, "none"), &None),
        ] {
            let settings = json!({"kinds": [first, second]});
            assert_eq!(kept(settings.clone(), restart(), OVER).await, *expected, "{settings}");
        }
    }
}
