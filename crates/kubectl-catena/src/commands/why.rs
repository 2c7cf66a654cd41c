//! `kubectl catena why`

use anyhow::{Context, Result};
use clap::Args;
use jiff::Timestamp;

use crate::{
    chain::{Scope, State, fetch, grow},
    connection::{Cluster, Options},
    output::Output,
    paint::Paint,
    target::{ObjectArgument, Target},
    why::{Answer, Around, Facts, diagnose, gather, judge, kept_for, tell},
};

/// What is asked about.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    object: ObjectArgument,
    #[command(flatten)]
    output: Output,
}

/// Says why the object is not as it should be.
pub async fn run(options: &Options, arguments: &Arguments) -> Result<()> {
    let target = arguments.object.target()?;
    let cluster = options.connect().await?;
    let answer = explanation(&cluster, &target).await?;
    arguments.output.print(&answer, || tell(&answer, Timestamp::now(), Paint::for_stdout()))
}

/// Finds out why an object is not as it should be.
pub async fn explanation(cluster: &Cluster, target: &Target) -> Result<Answer> {
    let is_namespaced = cluster.kinds.find(&target.kind)?.is_namespaced;
    let namespace = is_namespaced.then_some(cluster.namespace.as_str());
    let scope = Scope { whole: true, all_kinds: false };
    let (fetched, around) =
        futures::join!(Box::pin(fetch(cluster, target, scope)), Box::pin(gather(cluster, namespace)));
    let fetched = fetched?;
    let gone = "the object was deleted just now";
    let top = grow(&fetched.top, &fetched.objects).context(gone)?;
    let asked = top.find(&fetched.asked).context(gone)?;
    let mut gaps = fetched.gaps;
    gaps.extend(around.gaps.iter().cloned());
    let unbound = judge(cluster, &asked.object).await.unwrap_or_else(|gap| {
        gaps.push(gap);
        None
    });
    let kept_for = match asked.health.state {
        State::Done | State::Failed => kept_for(cluster, &asked.object).await,
        _ => None,
    };
    let lost = fetched.lost_owners.into_iter().find(|(uid, _)| *uid == fetched.asked);
    let around = Around {
        gaps,
        lost_owner: lost.map(|(_, owner)| owner),
        missing_target: fetched.missing_target,
        unbound,
        kept_for,
        ..around
    };
    Ok(diagnose(&Facts { asked, top: &top, around: &around, now: Timestamp::now() }))
}
