//! The explanation of an object: its chain and surroundings, read and diagnosed.

use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use tokio::time::timeout;

use super::{
    answer::Answer,
    diagnose::diagnose,
    facts::{Facts, Surroundings},
    gather::gather,
    left_behind::or_left_behind,
    read::related,
};
use crate::{
    chain::{LostOwner, Scope, fetch, grow},
    connection::Cluster,
    errors::NotFound,
    target::Target,
};

/// A command that has another answer to give waits no longer for an explanation.
const ASIDE_TIMEOUT: Duration = Duration::from_secs(10);

/// The explanation for a command that has another answer to give; `None` if it cannot be found out, or not soon.
pub async fn explanation_aside(cluster: &Cluster, target: &Target) -> Option<Answer> {
    timeout(ASIDE_TIMEOUT, Box::pin(explanation(cluster, target))).await.ok()?.ok()
}

/// Finds out why an object is not as it should be.
pub async fn explanation(cluster: &Cluster, target: &Target) -> Result<Answer> {
    let is_namespaced = cluster.kinds.find(&target.kind)?.is_namespaced;
    let namespace = is_namespaced.then_some(cluster.namespace.as_str());
    let scope = Scope { whole: true, all_kinds: false };
    let (fetched, surroundings) =
        futures::join!(Box::pin(fetch(cluster, target, scope)), Box::pin(gather(cluster, namespace)));
    let fetched = match fetched {
        Err(error) if error.is::<NotFound>() => {
            return Box::pin(or_left_behind(cluster, target, error)).await;
        }
        fetched => fetched?,
    };
    let gone = "the object was deleted just now";
    let top = grow(&fetched.top, &fetched.objects).context(gone)?;
    let asked = top.find(&fetched.asked).context(gone)?;
    let mut gaps = fetched.gaps;
    gaps.extend(surroundings.gaps.iter().cloned());
    let (related, unread) = related(cluster, &top, surroundings.namespace.as_ref()).await;
    gaps.extend(unread);
    let lost_owner = fetched.lost_owners.iter().find(|lost| lost.of == fetched.asked);
    let surroundings = Surroundings {
        gaps,
        lost_owner: lost_owner.map(LostOwner::remark),
        missing_target: fetched.missing_target,
        is_declared_command: fetched.is_declared_command,
        related,
        hides_dependents: fetched.hides_dependents,
        is_incomplete: fetched.is_incomplete,
        ..surroundings
    };
    Ok(diagnose(&Facts { asked, top: &top, surroundings: &surroundings, now: Timestamp::now() }))
}
