//! Finds the kinds that a label on their definition names.

use kube::{api::ListParams, core::DynamicObject};

use super::gap::Gap;
use crate::{connection::Cluster, errors::read_failure, kinds::Kind, pages};

/// Kinds that are found by a label on their definition.
#[derive(Clone, Debug, Default)]
pub struct LabelledKinds {
    /// Commands, which may be bound to any object.
    pub commands: Vec<Kind>,
    /// Possible children of a BasicDeployment.
    pub children: Vec<Kind>,
    /// Why commands of other projects are not among them, if these could not be read.
    pub commands_unread: Option<String>,
}

/// Kinds whose definitions carry a label of Catena.
pub async fn labelled_kinds(cluster: &Cluster) -> (LabelledKinds, Vec<Gap>) {
    let of = async |selector: String| -> kube::Result<Vec<Kind>> {
        let Some(definitions) = cluster.kinds.named("apiextensions.k8s.io", "customresourcedefinitions")
        else {
            return Ok(Vec::new());
        };
        let definitions = cluster.api::<DynamicObject>(definitions, None);
        let found = pages::metadata(&definitions, ListParams::default().labels(&selector)).await?;
        let names = found.into_iter().filter_map(|definition| definition.name);
        let kinds = names.filter_map(|name| {
            let (plural, group) = name.split_once('.')?;
            cluster.kinds.named(group, plural).cloned()
        });
        Ok(kinds.collect())
    };
    let contract =
        format!("{}={}", catena_api::contract::REPLICAS_LABEL, catena_api::contract::REPLICAS_VERSION);
    let (commands, children) =
        futures::join!(of(format!("{}=true", catena_api::keys::COMMAND_KIND)), of(contract));
    let commands_unread = commands.as_ref().err().map(read_failure);
    let mut gaps = Vec::new();
    let mut or_gap = |what: &str, result: kube::Result<Vec<Kind>>| {
        result.unwrap_or_else(|error| {
            gaps.push(Gap { what: what.to_owned(), why: read_failure(&error) });
            Vec::new()
        })
    };
    let mut commands = or_gap("command kinds of other projects", commands);
    let children = or_gap("child kinds of other projects", children);
    for kind in cluster.kinds.in_group(catena_api::keys::GROUP).filter(|kind| is_our_command(kind)) {
        if !commands.contains(kind) {
            commands.push(kind.clone());
        }
    }
    (LabelledKinds { commands, children, commands_unread }, gaps)
}

/// Our commands are named after their target.
fn is_our_command(kind: &Kind) -> bool {
    kind.resource.kind.strip_prefix("BasicDeployment").is_some_and(|rest| !rest.is_empty())
}
