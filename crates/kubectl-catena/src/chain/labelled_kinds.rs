//! Finds the kinds that a label on their definition names.

use anyhow::Result;
use catena_api::{
    contract::{REPLICAS_LABEL, REPLICAS_VERSION},
    keys::{self, COMMAND_KIND},
};
use kube::api::ListParams;

use crate::cluster::{Cluster, Gap, Kind};

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
    let mut or_gap = |what: &str, result: kube::Result<Vec<Kind>>| {
        result.unwrap_or_else(|error| {
            gaps.push(Gap::of(what, &error));
            Vec::new()
        })
    };
    let mut commands = or_gap("command kinds of other projects", commands);
    let children = or_gap("child kinds of other projects", children);
    for kind in cluster.kinds.in_group(keys::GROUP).filter(|kind| is_our_command(kind)) {
        if !commands.contains(kind) {
            commands.push(kind.clone());
        }
    }
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
    let kind = |name: String| {
        let (plural, group) = name.split_once('.')?;
        cluster.kinds.named(group, plural).cloned()
    };
    Ok(found.into_iter().filter_map(|found| kind(found.name?)).collect())
}

/// Whether it is a kind of our commands, which are named after their target.
pub fn is_our_command(kind: &Kind) -> bool {
    kind.resource.group == keys::GROUP
        && kind.resource.kind.strip_prefix("BasicDeployment").is_some_and(|rest| !rest.is_empty())
}
