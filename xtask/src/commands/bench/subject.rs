//! The measured subjects.

use std::{
    pin::pin,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Namespace, Pod, ServiceAccount},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, ListParams, PostParams},
    discovery::ApiResource,
    runtime::{WatchStreamExt, watcher},
};
use local_cluster::{LocalCluster, PID_ANNOTATION};
use serde_json::{Value, json};

use super::process::Process;
use crate::charts::NAMESPACE;

/// A chain from an object to its pods.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// BasicDeployment → BasicReplicaSet → pods.
    Catena,
    /// Deployment → ReplicaSet → pods, by kube-controller-manager.
    Native,
}

impl Subject {
    pub fn label(self) -> &'static str {
        match self {
            Self::Catena => "Catena's controllers",
            Self::Native => "kube-controller-manager",
        }
    }

    pub fn resource(self) -> ApiResource {
        match self {
            Self::Catena => ApiResource::erase::<catena_api::BasicDeployment>(&()),
            Self::Native => ApiResource::erase::<Deployment>(&()),
        }
    }

    /// The users whose requests count.
    pub fn users(self) -> &'static [&'static str] {
        match self {
            Self::Catena => &[
                "system:serviceaccount:catena-system:basic-deployment-controller",
                "system:serviceaccount:catena-system:basic-replicaset-controller",
            ],
            Self::Native => &[
                "system:serviceaccount:kube-system:deployment-controller",
                "system:serviceaccount:kube-system:replicaset-controller",
            ],
        }
    }

    /// A new namespace for it.
    pub async fn namespace(self, client: &Client) -> Result<String> {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let prefix = if self == Self::Catena { "bench-catena-" } else { "bench-native-" };
        let name = format!("{prefix}{}", jiff::Timestamp::now().as_millisecond());
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        namespaces.create(&PostParams::default(), &namespace).await?;
        // No pod is admitted before the namespace's service account exists.
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &name);
        while accounts.get_opt("default").await?.is_none() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(name)
    }

    /// An object whose pods have the same shape for each subject.
    pub fn object(self, name: &str, replicas: usize) -> DynamicObject {
        let data = match self {
            Self::Catena => json!({"spec": {"replicas": replicas, "parameters": {"image": "nginx:1.29"}}}),
            Self::Native => native(name, replicas),
        };
        DynamicObject::new(name, &self.resource()).data(data)
    }

    /// The processes that do its work.
    pub async fn processes(self, cluster: &LocalCluster, client: &Client) -> Result<Vec<Process>> {
        let component = |name: &str| {
            let kept = cluster.components().remove(name);
            let pid = kept.and_then(|kept| kept.pid).with_context(|| format!("{name} does not run"))?;
            anyhow::Ok(Process { name: name.to_owned(), pid })
        };
        // The cost of the requests on the server.
        let api_server = component("api-server")?;
        if self == Self::Native {
            return Ok(vec![component("controller-manager")?, api_server]);
        }
        let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
        let pods = pods.list(&ListParams::default()).await?;
        let process = |pod: Pod| {
            let pid = pod.annotations().get(PID_ANNOTATION).and_then(|pid| pid.parse().ok());
            let name = pod.labels().get("app.kubernetes.io/name").cloned().unwrap_or_else(|| pod.name_any());
            pid.map(|pid| Process { name, pid })
        };
        Ok(pods.items.into_iter().filter_map(process).chain([api_server]).collect())
    }

    /// Watches until all objects are ready.
    pub async fn all_ready(
        self,
        objects: &Api<DynamicObject>,
        count: usize,
        replicas: usize,
        patience: Duration,
    ) -> Result<()> {
        let started = Instant::now();
        let mut ready = std::collections::HashSet::new();
        let mut events =
            pin!(watcher(objects.clone(), watcher::Config::default()).default_backoff().applied_objects());
        while ready.len() < count {
            let left = patience.checked_sub(started.elapsed());
            let event = tokio::time::timeout(left.unwrap_or_default(), events.next()).await;
            match event {
                Ok(Some(Ok(object))) => {
                    if self.is_ready(&object, replicas) {
                        ready.insert(object.name_any());
                    } else {
                        ready.remove(&object.name_any());
                    }
                }
                Ok(_) => {}
                Err(_) => {
                    bail!("{} of {count} objects were ready after {} s", ready.len(), patience.as_secs())
                }
            }
        }
        Ok(())
    }

    fn is_ready(self, object: &DynamicObject, replicas: usize) -> bool {
        let status = &object.data["status"];
        let is_current = status["observedGeneration"].as_i64() == object.metadata.generation;
        is_current
            && match self {
                Self::Catena => status["ready"] == Value::Bool(true),
                Self::Native => status["availableReplicas"].as_u64() == u64::try_from(replicas).ok(),
            }
    }
}

/// The rendering of the charts' default templates, as a Deployment.
fn native(name: &str, replicas: usize) -> Value {
    let labels = json!({"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "bench"});
    json!({"spec": {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                "automountServiceAccountToken": false,
                "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [{
                    "name": "main",
                    "image": "nginx:1.29",
                    "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}},
                    "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
                }],
            },
        },
    }})
}
