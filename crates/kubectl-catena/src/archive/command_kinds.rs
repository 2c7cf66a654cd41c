//! The kinds of commands, by the label on their definition and by the settings of command-binder.

use anyhow::{Context, Error, Result};
use k8s_openapi::api::{core::v1::ConfigMap, rbac::v1::ClusterRole};
use kube::{Api, api::ListParams};
use serde_json::Value;

use crate::{
    chain::declared_commands,
    cluster::{Cluster, Kind, read_failure, sanitized},
};

/// The settings of command-binder, in each of its installations.
const SETTINGS: &str = "app.kubernetes.io/part-of=catena,app.kubernetes.io/component=command-binder";
/// The `ClusterRole` that only one release of its chart can own.
const ONCE_PER_CLUSTER: &str = "catena.dev:once-per-cluster:command-binder";

/// The kinds of commands. Without the right to read the settings of command-binder, it warns, and those in them are missing.
///
/// # Errors
/// When definitions cannot be listed.
pub async fn command_kinds(cluster: &Cluster) -> Result<Vec<Kind>> {
    let mut kinds = declared_commands(cluster).await?;
    match configured_commands(cluster).await {
        Ok(configured) => kinds.extend(configured),
        Err(error) => eprintln!(
            "{}",
            sanitized(&format!(
                "the settings of command-binder cannot be read ({error:#}): commands of other projects that only these \
                 describe are restored, and would run again, unless command-binder has made their target an owner; \
                 ask for the right to list configmaps"
            ))
        ),
    }
    Ok(kinds)
}

/// The kinds that the values of command-binder describe.
///
/// # Errors
/// When they cannot be read.
pub async fn configured_commands(cluster: &Cluster) -> Result<Vec<Kind>> {
    let maps = cluster.all::<ConfigMap>(None, ListParams::default().labels(SETTINGS)).await;
    let maps = maps.map_err(|error| Error::msg(read_failure(&error)))?;
    let home = home(cluster).await;
    // Anybody can label a ConfigMap.
    let own = maps.into_iter().filter(|map| home.is_none() || map.metadata.namespace == home);
    let mut kinds = Vec::new();
    for settings in own.filter_map(|map| map.data?.remove("settings.yaml")) {
        let settings: Value = serde_saphyr::from_str(&settings).context("settings.yaml")?;
        for entry in settings["kinds"].as_array().into_iter().flatten() {
            let text = |field: &str| entry[field].as_str().unwrap_or_default();
            kinds.extend(cluster.kinds.named(text("group"), text("resource")).cloned());
        }
    }
    Ok(kinds)
}

/// The namespace of command-binder, if Helm has installed it and its `ClusterRoles` may be read: only administrators write these.
async fn home(cluster: &Cluster) -> Option<String> {
    let roles = Api::<ClusterRole>::all(cluster.client.clone());
    let role = roles.get_metadata_opt(ONCE_PER_CLUSTER).await.ok()??;
    role.metadata.annotations?.remove("meta.helm.sh/release-namespace")
}
