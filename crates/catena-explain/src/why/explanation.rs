//! The explanation of an object, or of the child that a deleted one left behind: its chain and surroundings, read and diagnosed.

use std::time::Duration;

use anyhow::{Context, Result};
use catena_api::keys;
use catena_cluster::{BASIC_DEPLOYMENTS, Cluster, Identity, NotFound, Target, labelled_kinds};
use jiff::Timestamp;
use kube::{ResourceExt, api::ListParams, core::DynamicObject};
use tokio::time::timeout;

use super::{
    Answer, Cause, Facts, Surroundings, Warning, diagnose::diagnose, gather, read::read_related, text,
};
use crate::{Node, Scope, fetch, with_dependents};

/// A command that has another answer to give waits no longer for an explanation.
const ASIDE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for the log of a controller: the API server may not reach its kubelet.
const LOG_TIMEOUT: Duration = Duration::from_secs(2);

/// The explanation for a command that has another answer to give; `None` if it cannot be found out, or not soon.
pub async fn explanation_aside(cluster: &Cluster, target: &Target) -> Option<Answer> {
    timeout(ASIDE_TIMEOUT, Box::pin(explanation(cluster, target))).await.ok()?.ok()
}

/// Finds out why an object is not as it should be.
///
/// # Errors
/// When the object does not exist and left nothing behind, or cannot be read.
pub async fn explanation(cluster: &Cluster, target: &Target) -> Result<Answer> {
    let is_namespaced = cluster.kinds.find(&target.kind)?.is_namespaced;
    let namespace = is_namespaced.then_some(cluster.namespace.as_str());
    let scope = Scope { whole: true, all_kinds: false };
    let (fetched, surroundings) =
        futures::join!(Box::pin(fetch(cluster, target, scope)), Box::pin(gather::gather(cluster, namespace)));
    let (top, fetched) = match fetched {
        Err(error) if error.is::<NotFound>() => {
            return Box::pin(left_behind(cluster, target, surroundings)).await.ok_or(error);
        }
        fetched => fetched?,
    };
    let asked = top.find(&fetched.asked).context("the object was deleted just now")?;
    let lost_owner = fetched.lost_owners.iter().find(|lost| lost.of == fetched.asked);
    let is_elsewhere =
        |told: &Warning| told.about == fetched.asked && told.reason == "OwnerRefInvalidNamespace";
    let is_elsewhere = surroundings.warnings.iter().any(is_elsewhere);
    let mut surroundings = Surroundings {
        gaps: [fetched.gaps, surroundings.gaps].concat(),
        lost_owner: lost_owner.map(|lost| lost.remark(is_elsewhere)),
        missing_target: fetched.missing_target,
        is_declared_command: fetched.is_declared_command,
        hides_dependents: fetched.hides_dependents,
        is_incomplete: fetched.is_incomplete,
        ..surroundings
    };
    read_related(cluster, asked, &top, &mut surroundings).await;
    let now = surroundings.now;
    let mut answer = diagnose(&Facts { asked, top: &top, surroundings: &surroundings, now });
    if let Some(cause) = &mut answer.root_cause
        && let said = gather::last_error_of(cluster, &surroundings, cause)
        && let Ok(Some(said)) = timeout(LOG_TIMEOUT, said).await
    {
        cause.message = if cause.message.is_empty() { said } else { format!("{}\n{said}", cause.message) };
    }
    Ok(answer)
}

/// The answer for an object that does not exist, if it left a child behind.
async fn left_behind(cluster: &Cluster, target: &Target, mut surroundings: Surroundings) -> Option<Answer> {
    let kind = cluster.kinds.find(&target.kind).ok().filter(|kind| kind.full_name() == BASIC_DEPLOYMENTS)?;
    let (version, namespace) = (&kind.resource.api_version, Some(cluster.namespace.as_str()));
    let parent = Identity::new(version, &kind.resource.kind, namespace, &target.name);
    let child = child_of(cluster, &parent).await?;
    let (top, unread) = Box::pin(with_dependents(cluster, child)).await;
    let top = top?;
    surroundings.is_incomplete = !unread.is_empty();
    surroundings.gaps.extend(unread);
    read_related(cluster, &top, &top, &mut surroundings).await;
    Some(of_child(parent, &top, &surroundings, surroundings.now))
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
    let owners = child.owner_references();
    let names_it = owners.iter().any(|owner| owner.kind == parent.kind && owner.name == parent.name);
    names_it || owners.is_empty() && child.name_any() == parent.name
}

/// The answer about the deleted object, from its child.
pub fn of_child(parent: Identity, child: &Node, surroundings: &Surroundings, now: Timestamp) -> Answer {
    let about_child = diagnose(&Facts { asked: child, top: child, surroundings, now });
    let identity = &child.identity;
    let cause = about_child.root_cause.clone().filter(|_| child.deleted.is_some()).unwrap_or_else(|| {
        let left = Cause::with(identity, "LeftBehind");
        let advice = text::with_names(&left.advice, identity);
        left.advice(advice)
    });
    let why =
        if cause.object == *identity { "it".to_owned() } else { text::name_beside(&cause.object, &parent) };
    let sentence = format!(
        "{parent} was deleted, and left {identity} behind: {why} {} ({}).",
        cause.meaning, cause.reason
    );
    Answer { object: parent, well: false, sentence, root_cause: Some(cause), ..about_child }
}
