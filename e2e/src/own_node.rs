use anyhow::Result;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::{Value, json};

use crate::{Cluster, Namespace, cleanup::clean_up};

/// A fake node that only pods of one test fit on, until this is dropped: they select it by a label.
pub struct OwnNode {
    /// Its name.
    pub name: String,
    namespace: String,
}

impl OwnNode {
    /// The label by which pods select it.
    pub const LABEL: &str = "e2e.catena.dev/node-of";

    /// A node that kwok simulates. Its spec has to keep the pods of other tests away.
    pub async fn fake(cluster: &Cluster, namespace: &Namespace, what: &str, spec: Value) -> Result<Self> {
        Self::create(cluster, namespace, what, spec, json!({"kwok.x-k8s.io/node": "fake"})).await
    }

    /// A node that never reports, because nobody simulates it. A `DaemonSet` of another test would tolerate that it is
    /// unschedulable, and wait for its pod there for ever.
    pub async fn silent(cluster: &Cluster, namespace: &Namespace) -> Result<Self> {
        let spec = json!({"taints": [{"key": "e2e.catena.dev/silent", "effect": "NoSchedule"}]});
        Self::create(cluster, namespace, "silent", spec, json!({})).await
    }

    async fn create(
        cluster: &Cluster,
        namespace: &Namespace,
        what: &str,
        spec: Value,
        annotations: Value,
    ) -> Result<Self> {
        let name = format!("{}-{what}", namespace.name);
        let room = json!({"cpu": "1", "memory": "1Gi", "pods": "10"});
        let node: Node = serde_json::from_value(json!({
            "metadata": {
                "name": name, "annotations": annotations,
                "labels": {Self::LABEL: namespace.name, "kubernetes.io/hostname": name},
            },
            "spec": spec, "status": {"allocatable": room, "capacity": room},
        }))?;
        cluster.all::<Node>().create(&PostParams::default(), &node).await?;
        Ok(Self { name, namespace: namespace.name.clone() })
    }
}

impl Drop for OwnNode {
    /// Nobody ends the pods of a silent node.
    fn drop(&mut self) {
        let (name, namespace) = (self.name.clone(), self.namespace.clone());
        clean_up("deleting a node", async move |client| {
            Api::<Node>::all(client.clone()).delete(&name, &DeleteParams::default()).await?;
            let pods = Api::<Pod>::namespaced(client, &namespace);
            let on_it = ListParams::default().fields(&format!("spec.nodeName={name}"));
            let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
            for pod in pods.list(&on_it).await? {
                match pods.delete(&pod.name_any(), &at_once).await {
                    Err(kube::Error::Api(status)) if status.is_not_found() => {}
                    other => drop(other?),
                }
            }
            Ok(())
        });
    }
}
