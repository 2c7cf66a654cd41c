//! A template that never serves: the kind tries it, never says that it is ready, and returns to the one before.

use std::collections::BTreeSet;

use anyhow::Result;
use kube::core::SelectorExt;
use tokio::time::sleep;

use super::parsed;
use crate::contract::live::{Observed, Replica, Requirement, Run};

/// Rolls the template out and back.
pub async fn is_told(run: &Run<'_>, replicas: i32) -> Result<()> {
    let before = run.observed.borrow().uids();
    let (bad, name) = (&run.subject.bad, run.subject.bad.name());
    let is_beside = name != run.subject.good.name();
    let generation = run.change(bad, replicas, None, &before, Requirement::BadTemplate).await?;
    let is_new = |replica: &Replica| !before.contains(&replica.uid);
    let is_tried =
        run.until(Requirement::Replacement, |observed| observed.replicas.values().any(is_new)).await;
    if !is_tried {
        let late = run.in_time(Requirement::Replacement);
        run.ledger
            .fail(Requirement::Replacement, format!("{late}: no pod of a changed template was created"));
    }
    run.judge_generation(name, generation).await;
    sleep(run.limits.window).await;
    // By now, a child that counts pods of the bad template has reported them.
    if !is_beside {
        run.judge_active(name).await;
    }
    let is_bad = |replica: &&Replica| is_new(replica) && replica.serves;
    let serve = run.observed.borrow().replicas.values().filter(is_bad).count();
    if !is_tried || run.ledger.has_failed(Requirement::ObservedGeneration) {
        run.ledger
            .leave_open(Requirement::BadTemplate, "no replica of it was tried under a known generation");
    } else if serve > 0 {
        let why = format!("{serve} of its pods serve: give one that never does with --bad-template");
        run.ledger.leave_open(Requirement::BadTemplate, why);
    } else {
        let seconds = run.limits.window.as_secs();
        run.ledger.pass(
            Requirement::BadTemplate,
            format!("not ready while its pods did not serve, for {seconds} s"),
        );
    }
    names_its_blocker(run, name).await;
    goes_back(run, replicas, is_tried, is_beside, &before).await
}

/// Waits for the blocker: a kubelet may take long to find out that an image is missing.
async fn names_its_blocker(run: &Run<'_>, name: &str) {
    let mut seen = None;
    let is_named = |observed: &Observed| {
        seen = blocker(observed, name);
        seen.is_some()
    };
    run.until(Requirement::BlockedBy, is_named).await;
    if let Some(blocker) = seen {
        run.ledger.pass(Requirement::BlockedBy, blocker);
    } else {
        let late = run.in_time(Requirement::BlockedBy);
        let why = format!("{late}: nothing was named while a pod could not serve");
        run.ledger.fail(Requirement::BlockedBy, why);
    }
}

/// The blocker that the child names, or that its parent finds among the pods that the contract selects.
fn blocker(observed: &Observed, name: &str) -> Option<String> {
    let outputs = &observed.children.get(name)?.outputs;
    if let Some(blocker) = &outputs.blocked_by {
        return Some(format!("{}/{}: {}", blocker.kind, blocker.name, blocker.reason));
    }
    let selector = outputs.pods.as_deref().and_then(parsed)?;
    let is_it = |replica: &&Replica| replica.is_alive && !replica.serves && selector.matches(&replica.labels);
    let pod = observed.replicas.values().find(is_it)?;
    Some(format!("Pod/{}, by the selector of pods", pod.name))
}

async fn goes_back(
    run: &Run<'_>,
    replicas: i32,
    is_tried: bool,
    is_beside: bool,
    before: &BTreeSet<String>,
) -> Result<()> {
    let bad: BTreeSet<String> = run.observed.borrow().uids().difference(before).cloned().collect();
    if is_beside {
        run.stage.delete(run.subject.bad.name()).await?;
        // Those of another child are no replaced ones of this, which is ready all the time.
        let is_left = |replica: &Replica| replica.is_alive && bad.contains(&replica.uid);
        let is_gone = |observed: &Observed| !observed.replicas.values().any(is_left);
        if !run.until(Requirement::Deletion, is_gone).await {
            let late = run.in_time(Requirement::Deletion);
            run.ledger.fail(Requirement::Deletion, format!("{late}: pods of the deleted child were left"));
        }
    }
    let generation = run.change(&run.subject.good, replicas, None, &bad, Requirement::BadTemplate).await?;
    let is_back = run.settle(replicas, generation, &bad, Requirement::Replacement).await;
    if is_tried && is_back {
        let how = if is_beside { "by another child beside it" } else { "to another template, and back" };
        run.ledger.pass(Requirement::Replacement, how);
    }
    Ok(())
}
