//! The kinds of commands, by the label on their definition and by the settings of command-binder.

use anyhow::{Context, Error, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, api::ListParams};
use serde_json::Value;

use crate::{
    chain::declared_commands, connection::Cluster, errors::read_failure, kinds::Kind, pages, paint::sanitized,
};

/// The settings of command-binder, in each of its installations.
const SETTINGS: &str = "app.kubernetes.io/part-of=catena,app.kubernetes.io/component=command-binder";

/// The kinds of commands. Without the right to read the settings of command-binder, it warns, and those in them are missing.
///
/// # Errors
/// When definitions cannot be listed.
pub async fn command_kinds(cluster: &Cluster) -> Result<Vec<Kind>> {
    let mut kinds = declared_commands(cluster).await?;
    match configured(cluster).await {
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

async fn configured(cluster: &Cluster) -> Result<Vec<Kind>> {
    let maps = Api::<ConfigMap>::all(cluster.client.clone());
    let maps = pages::all(&maps, ListParams::default().labels(SETTINGS)).await;
    let maps = maps.map_err(|error| Error::msg(read_failure(&error)))?;
    let mut kinds = Vec::new();
    for settings in maps.into_iter().filter_map(|map| map.data?.remove("settings.yaml")) {
        let settings: Value = serde_saphyr::from_str(&settings).context("settings.yaml")?;
        for entry in settings["kinds"].as_array().into_iter().flatten() {
            let text = |field: &str| entry[field].as_str().unwrap_or_default();
            kinds.extend(cluster.kinds.named(text("group"), text("resource")).cloned());
        }
    }
    Ok(kinds)
}
