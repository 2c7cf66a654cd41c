//! The kinds that a label on their definition names, and the kinds of commands in the settings of command-binder.

use anyhow::{Context, Error, Result};
use catena_api::{
    contract::{REPLICAS_LABEL, REPLICAS_VERSION},
    keys::{self, COMMAND_KIND},
};
use catena_terminal::{sanitized, tell};
use kube::api::ListParams;
use serde_json::Value;

use crate::{Cluster, Gap, Homes, Kind, read_failure};

/// The settings of command-binder, in each of its installations.
const SETTINGS: &str = "app.kubernetes.io/part-of=catena,app.kubernetes.io/component=command-binder";

/// Kinds that are found by a label on their definition.
#[derive(Clone, Debug, Default)]
pub struct LabelledKinds {
    /// Commands, which may be bound to any object.
    pub commands: Vec<Kind>,
    /// Possible children of a BasicDeployment.
    pub children: Vec<Kind>,
}

/// Kinds whose definitions carry a label of Catena.
pub async fn labelled_kinds(cluster: &Cluster) -> (LabelledKinds, Vec<Gap>) {
    let (commands, children) = futures::join!(
        with_label(cluster, COMMAND_KIND, "true"),
        with_label(cluster, REPLICAS_LABEL, REPLICAS_VERSION)
    );
    let mut gaps = Vec::new();
    let mut commands = Gap::or_default(commands, "command kinds of other projects", &mut gaps);
    let children = Gap::or_default(children, "child kinds of other projects", &mut gaps);
    let ours = cluster.kinds.in_group(keys::GROUP).filter(|kind| is_our_command(kind));
    let unlabelled: Vec<Kind> = ours.filter(|kind| !commands.contains(kind)).cloned().collect();
    commands.extend(unlabelled);
    (LabelledKinds { commands, children }, gaps)
}

/// The kinds that are declared as commands on their definition.
///
/// # Errors
/// When definitions cannot be listed.
pub async fn declared_commands(cluster: &Cluster) -> Result<Vec<Kind>> {
    let commands = with_label(cluster, COMMAND_KIND, "true").await;
    commands.map_err(|error| cluster.refused(&Kind::definitions(), "", "list", error))
}

async fn with_label(cluster: &Cluster, label: &str, value: &str) -> kube::Result<Vec<Kind>> {
    let labelled = ListParams::default().labels(&format!("{label}={value}"));
    let found = cluster.metadata(&Kind::definitions(), None, labelled).await?;
    Ok(found.into_iter().filter_map(|found| cluster.kinds.defined_by(&found.name?).cloned()).collect())
}

/// Whether it is a kind of our commands, which are named after their target.
#[must_use]
pub fn is_our_command(kind: &Kind) -> bool {
    kind.resource.group == keys::GROUP
        && kind.resource.kind.strip_prefix("BasicDeployment").is_some_and(|rest| !rest.is_empty())
}

/// The kinds of commands. Without the right to read the settings of command-binder, it warns, and those in them are missing.
///
/// # Errors
/// When definitions cannot be listed.
pub async fn command_kinds(cluster: &Cluster) -> Result<Vec<Kind>> {
    let mut kinds = declared_commands(cluster).await?;
    match configured_commands(cluster).await {
        Ok(configured) => kinds.extend(configured),
        Err(error) => tell(&sanitized(&format!(
            "the settings of command-binder cannot be read ({error:#}): commands of other projects that only these \
                 describe are restored, and would run again, unless command-binder has made their target an owner; \
                 ask for the right to list configmaps"
        ))),
    }
    Ok(kinds)
}

/// The kinds that the values of command-binder describe.
///
/// # Errors
/// When they cannot be read.
pub async fn configured_commands(cluster: &Cluster) -> Result<Vec<Kind>> {
    let maps = Homes::config_maps(cluster, SETTINGS).await;
    let maps = maps.map_err(|error| Error::msg(read_failure(&error)))?.into_iter();
    let mut kinds = Vec::new();
    for settings in maps.filter_map(|map| map.data?.remove("settings.yaml")) {
        let settings: Value = serde_saphyr::from_str(&settings).context("settings.yaml")?;
        for entry in settings["kinds"].as_array().into_iter().flatten() {
            let text = |field: &str| entry[field].as_str().unwrap_or_default();
            kinds.extend(cluster.kinds.named(text("group"), text("resource")).cloned());
        }
    }
    Ok(kinds)
}
