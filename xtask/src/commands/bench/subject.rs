//! The measured subjects.

use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    api::{DynamicObject, Patch},
    discovery::ApiResource,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{pod, requests::Callers};

/// The name of kube-controller-manager among the components of the cluster.
pub const CONTROLLER_MANAGER: &str = "controller-manager";
/// The name of the API server among the components of the cluster.
pub const API_SERVER: &str = "api-server";

/// A way from objects to pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Subject {
    /// BasicDeployment → BasicReplicaSet → pods.
    Catena,
    /// Deployment → ReplicaSet → pods, by kube-controller-manager.
    #[serde(rename = "kube-controller-manager")]
    Native,
}

impl Subject {
    pub fn label(self) -> &'static str {
        match self {
            Self::Catena => "Catena",
            Self::Native => "kube-controller-manager",
        }
    }

    /// A part of the names of its namespaces, which stand in every object: about as long as those of the others.
    pub fn short(self) -> &'static str {
        match self {
            Self::Catena => "catena",
            Self::Native => "native",
        }
    }

    pub fn resource(self) -> ApiResource {
        match self {
            Self::Catena => ApiResource::erase::<catena_api::BasicDeployment>(&()),
            Self::Native => ApiResource::erase::<Deployment>(&()),
        }
    }

    /// The controllers that work, by the names of their charts or components.
    pub fn controllers(self) -> &'static [&'static str] {
        match self {
            Self::Catena => &["basic-deployment-controller", "basic-replicaset-controller"],
            Self::Native => &[CONTROLLER_MANAGER],
        }
    }

    /// The users whose requests count.
    pub fn callers(self) -> Callers {
        let account = |namespace: &str, name: &str| format!("system:serviceaccount:{namespace}:{name}");
        match self {
            Self::Catena => Callers {
                users: self
                    .controllers()
                    .iter()
                    .map(|name| account(crate::charts::NAMESPACE, name))
                    .collect(),
                reader: None,
            },
            Self::Native => Callers {
                users: ["deployment-controller", "replicaset-controller"]
                    .map(|name| account("kube-system", name))
                    .into(),
                // All controllers of the process share the caches, which have a user of their own.
                reader: Some((
                    "system:kube-controller-manager".to_owned(),
                    vec!["deployments", "replicasets", "pods"],
                )),
            },
        }
    }

    /// An object whose pods have the same shape for each subject.
    pub fn object(self, name: &str, replicas: usize, pod_bytes: usize) -> DynamicObject {
        let data = match self {
            // Its pods come from a template of the chart.
            Self::Catena => json!({"spec": {"replicas": replicas, "parameters": {"image": pod::IMAGE}}}),
            Self::Native => {
                let labels = json!({"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "bench"});
                let template = pod::template(&labels, pod::IMAGE, pod_bytes);
                json!({"spec": {
                    "replicas": replicas, "selector": {"matchLabels": labels}, "template": template,
                }})
            }
        };
        DynamicObject::new(name, &self.resource()).data(data)
    }

    /// The change of an object's image, which is a new revision.
    pub fn roll(self, image: &str) -> Patch<Value> {
        match self {
            Self::Catena => Patch::Merge(json!({"spec": {"parameters": {"image": image}}})),
            // It merges the list of containers by name.
            Self::Native => Patch::Strategic(json!({"spec": {"template": {"spec": {
                "containers": [{"name": "main", "image": image}],
            }}}})),
        }
    }

    /// Whether all replicas of an object's present revision are ready, and no others are left.
    pub fn is_ready(self, object: &DynamicObject, replicas: usize) -> bool {
        let status = &object.data["status"];
        let is_current = || status["observedGeneration"].as_i64() == object.metadata.generation;
        let wanted = Value::from(replicas);
        match self {
            Self::Catena => is_current() && status["ready"] == Value::Bool(true),
            Self::Native => {
                let counts = ["replicas", "updatedReplicas", "availableReplicas"];
                is_current() && counts.iter().all(|key| status[key] == wanted)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(status: &Value) -> DynamicObject {
        let object = json!({"metadata": {"generation": 2}, "status": status});
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_deployment_is_ready_when_no_pod_of_an_older_revision_is_left() {
        let status =
            json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3});
        assert!(Subject::Native.is_ready(&deployment(&status), 3));
        for (key, value) in
            [("observedGeneration", 1), ("replicas", 4), ("updatedReplicas", 2), ("availableReplicas", 2)]
        {
            let mut other = status.clone();
            other[key] = value.into();
            assert!(!Subject::Native.is_ready(&deployment(&other), 3), "{other}");
        }
    }
}
