//! The namespaces in which the controllers are installed.

use std::collections::HashSet;

use k8s_openapi::api::{core::v1::ConfigMap, rbac::v1::ClusterRoleBinding};
use kube::{ResourceExt, api::ListParams, core::ObjectMeta};

use crate::{
    Cluster,
    protection::{COMPONENT, NAME, OURS},
};

/// The controllers with the namespaces of their service accounts, as `ClusterRoleBindings` tell them: only administrators write
/// these, while anybody can label a `ConfigMap`, a Lease or a Deployment.
#[derive(Debug, Default)]
pub struct Homes(HashSet<(String, String)>);

impl Homes {
    /// Those that may be read.
    pub async fn read(cluster: &Cluster) -> Self {
        let bindings = cluster.all::<ClusterRoleBinding>(None, ListParams::default().labels(OURS)).await;
        // Helm leaves that of a failed hook behind.
        let is_installed = |binding: &ClusterRoleBinding| !binding.annotations().contains_key("helm.sh/hook");
        let installed = bindings.unwrap_or_default().into_iter().filter(is_installed);
        let homes = installed.flat_map(|binding| {
            let controller = binding.labels().get(COMPONENT).cloned().unwrap_or_default();
            let subjects = binding.subjects.into_iter().flatten();
            subjects.filter_map(move |subject| Some((controller.clone(), subject.namespace?)))
        });
        Self(homes.collect())
    }

    /// The `ConfigMaps` with these labels, without those that belong to no installation.
    pub async fn config_maps(cluster: &Cluster, labels: &str) -> kube::Result<Vec<ConfigMap>> {
        let labelled = cluster.all::<ConfigMap>(None, ListParams::default().labels(labels));
        let (maps, homes) = futures::join!(labelled, Self::read(cluster));
        Ok(maps?.into_iter().filter(|map| homes.may_have(&map.metadata)).collect())
    }

    /// Whether an object with the labels of our charts may belong to an installation. Any may if none is known.
    #[must_use]
    pub fn may_have(&self, metadata: &ObjectMeta) -> bool {
        let label = |key: &str| metadata.labels.as_ref()?.get(key);
        let Some(controller) = label(COMPONENT).or_else(|| label(NAME)) else { return true };
        let mut homes = self.0.iter().filter(|(known, _)| known == controller).peekable();
        homes.peek().is_none() || homes.any(|(_, home)| metadata.namespace.as_ref() == Some(home))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_only_has_the_labels_of_a_controller_that_is_at_home_elsewhere_is_none_of_its_objects() {
        let object = |labels, namespace: &str| {
            serde_json::from_value(json!({"labels": labels, "namespace": namespace})).unwrap()
        };
        let binder = json!({COMPONENT: "command-binder", NAME: "binder"});
        let homes = Homes([("command-binder".to_owned(), "catena-system".to_owned())].into());
        assert!(homes.may_have(&object(binder.clone(), "catena-system")));
        for labels in [&binder, &json!({NAME: "command-binder"})] {
            assert!(!homes.may_have(&object(labels.clone(), "tenant")));
            assert!(Homes::default().may_have(&object(labels.clone(), "tenant")), "they may not be read");
        }
        assert!(homes.may_have(&object(json!({COMPONENT: "command-reaper"}), "another")));
    }
}
