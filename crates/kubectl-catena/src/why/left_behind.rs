//! An object that is gone, and the child that it left behind.

use anyhow::{Error, Result};
use catena_api::keys;
use catena_cluster::{Cluster, Identity, Target};
use jiff::Timestamp;
use kube::{api::ListParams, core::DynamicObject};

use super::{Answer, Cause, Facts, Surroundings, diagnose, gather, read, text};
use crate::chain::{Node, labelled_kinds, with_dependents};

/// The answer for an object that does not exist, if it left a child behind; else the error.
pub async fn or_left_behind(cluster: &Cluster, target: &Target, missing: Error) -> Result<Answer> {
    let Ok(kind) = cluster.kinds.find(&target.kind) else { return Err(missing) };
    let is_parent = kind.resource.group == keys::GROUP && kind.resource.kind == "BasicDeployment";
    if !is_parent {
        return Err(missing);
    }
    let (version, namespace) = (&kind.resource.api_version, Some(cluster.namespace.as_str()));
    let parent = Identity::new(version, &kind.resource.kind, namespace, &target.name);
    let Some(child) = child_of(cluster, &parent).await else { return Err(missing) };
    let (Some(top), unread) = Box::pin(with_dependents(cluster, child)).await else { return Err(missing) };
    let surroundings = Box::pin(gather::gather(cluster, parent.namespace.as_deref())).await;
    let (related, gaps) = read::related(cluster, &top, surroundings.namespace.as_ref()).await;
    let is_incomplete = !unread.is_empty();
    let gaps = [surroundings.gaps, unread, gaps].concat();
    let surroundings = Surroundings { related, gaps, is_incomplete, ..surroundings };
    Ok(answer(parent, &top, &surroundings, Timestamp::now()))
}

/// The child of a deleted object: it still names it as its owner, or lost its owner and has the name of it.
async fn child_of(cluster: &Cluster, parent: &Identity) -> Option<DynamicObject> {
    let (labelled, _) = labelled_kinds(cluster).await;
    let ours = cluster.kinds.named(keys::GROUP, "basicreplicasets");
    for kind in labelled.children.iter().chain(ours) {
        let labelled = ListParams::default().labels(keys::DEPLOYMENT_UID);
        let listed = cluster.list(kind, parent.namespace.as_deref(), labelled).await.unwrap_or_default();
        if let Some(child) = listed.into_iter().find(|child| is_left_by(parent, child)) {
            return Some(child);
        }
    }
    None
}

fn is_left_by(parent: &Identity, child: &DynamicObject) -> bool {
    let mut owners = child.metadata.owner_references.iter().flatten();
    let names_it = owners.any(|owner| owner.kind == parent.kind && owner.name == parent.name);
    let is_orphan = child.metadata.owner_references.iter().flatten().next().is_none();
    names_it || is_orphan && child.metadata.name.as_ref() == Some(&parent.name)
}

/// The answer about the deleted object, from its child.
pub fn answer(parent: Identity, child: &Node, surroundings: &Surroundings, now: Timestamp) -> Answer {
    let of_child = diagnose::diagnose(&Facts { asked: child, top: child, surroundings, now });
    let identity = &child.identity;
    let cause = of_child.root_cause.clone().filter(|_| child.deleted.is_some()).unwrap_or_else(|| {
        let left = Cause::with(identity, "LeftBehind");
        let advice = text::with_names(&left.advice, identity);
        left.advice(advice)
    });
    let why = if cause.object == *identity { "it".to_owned() } else { cause.object.to_string() };
    let sentence = format!(
        "{parent} was deleted, and left {identity} behind: {why} {} ({}).",
        cause.meaning, cause.reason
    );
    Answer { object: parent, well: false, sentence, root_cause: Some(cause), ..of_child }
}
