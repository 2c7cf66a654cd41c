//! Pods that had to make room for others of a higher priority, from the Events of the scheduler.

use k8s_openapi::api::core::v1::Event;
use kube::{Api, api::ListParams, core::DynamicObject};

use super::{facts::Preemption, warnings::warning};
use crate::{connection::Cluster, pages};

/// The pods of a namespace that had to make room, the newest last, as far as Events tell.
pub async fn preemptions(cluster: &Cluster, namespace: Option<&str>) -> Vec<Preemption> {
    let Some(namespace) = namespace else { return Vec::new() };
    let api = Api::<Event>::namespaced(cluster.client.clone(), namespace);
    let params = ListParams::default().fields("reason=Preempted,involvedObject.kind=Pod");
    let (mut events, _) = pages::first(1, &api, params).await.unwrap_or_default();
    events.sort_by_key(|event| warning(event.clone()).at);
    let mut found: Vec<Preemption> = events.iter().map(preemption).collect();
    // Only the newest one is told.
    if let Some((newest, event)) = found.last_mut().zip(events.last())
        && newest.by.is_empty()
        && let Some((uid, node)) = place(event.message.as_deref().unwrap_or_default())
    {
        newest.by = name_of(cluster, uid, node).await.unwrap_or_default();
    }
    found
}

fn preemption(event: &Event) -> Preemption {
    let by = event.related.as_ref().map(|pod| {
        format!(
            "{}/{}",
            pod.namespace.as_deref().unwrap_or_default(),
            pod.name.as_deref().unwrap_or_default()
        )
    });
    Preemption {
        pod: event.involved_object.name.clone().unwrap_or_default(),
        by: by.unwrap_or_default(),
        at: warning(event.clone()).at,
    }
}

/// The uid of the other pod, and its node: `Preempted by pod UID on node NODE`.
fn place(message: &str) -> Option<(&str, &str)> {
    let (uid, node) = message.split_once(" by pod ")?.1.split_once(" on node ")?;
    Some((uid, node.trim_end_matches('.')))
}

/// The scheduler names the other pod by its uid alone.
async fn name_of(cluster: &Cluster, uid: &str, node: &str) -> Option<String> {
    let pods = cluster.api::<DynamicObject>(cluster.kinds.named("", "pods")?, None);
    let on_node = ListParams::default().fields(&format!("spec.nodeName={node}"));
    let pods = pages::metadata(&pods, on_node).await.ok()?;
    let pod = pods.into_iter().find(|pod| pod.uid.as_deref() == Some(uid))?;
    Some(format!("{}/{}", pod.namespace?, pod.name?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_pod_is_read_from_the_message() {
        assert_eq!(place("Preempted by pod 4711-a on node fake-1"), Some(("4711-a", "fake-1")));
        assert_eq!(place("Preempted by a pod"), None);
    }
}
