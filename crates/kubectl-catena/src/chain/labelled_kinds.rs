//! Finds the kinds that a label on their definition names.

use anyhow::Result;
use catena_api::{
    contract::{REPLICAS_LABEL, REPLICAS_VERSION},
    keys::{self, COMMAND_KIND},
};
use kube::{api::ListParams, core::DynamicObject};

use crate::{connection::Cluster, errors::Gap, kinds::Kind, pages};

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
    let of = async |label: &str, value: &str| match cluster.kinds.definitions() {
        Ok(definitions) => with_label(cluster, definitions, label, value).await,
        Err(_) => Ok(Vec::new()),
    };
    let (commands, children) = futures::join!(of(COMMAND_KIND, "true"), of(REPLICAS_LABEL, REPLICAS_VERSION));
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
    let definitions = cluster.kinds.definitions()?;
    let commands = with_label(cluster, definitions, COMMAND_KIND, "true").await;
    commands.map_err(|error| cluster.refused(definitions, "", "list", error))
}

async fn with_label(
    cluster: &Cluster,
    definitions: &Kind,
    label: &str,
    value: &str,
) -> kube::Result<Vec<Kind>> {
    let definitions = cluster.api::<DynamicObject>(definitions, None);
    let labelled = ListParams::default().labels(&format!("{label}={value}"));
    let names = pages::metadata(&definitions, labelled).await?.into_iter().filter_map(|found| found.name);
    let kinds = names.filter_map(|name| {
        let (plural, group) = name.split_once('.')?;
        cluster.kinds.named(group, plural).cloned()
    });
    Ok(kinds.collect())
}

/// Whether it is a kind of our commands, which are named after their target.
pub fn is_our_command(kind: &Kind) -> bool {
    kind.resource.group == keys::GROUP
        && kind.resource.kind.strip_prefix("BasicDeployment").is_some_and(|rest| !rest.is_empty())
}
