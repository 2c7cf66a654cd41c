//! The trials, in their order: each begins where the one before it ended.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use catena_terminal::until;
use jiff::Timestamp;
use kube::{
    ResourceExt,
    core::{Expression, Selector, SelectorExt},
};
use tokio::time::{Duration, Instant, sleep, timeout};

use super::{Child, Observed, Replica, Requirement, Run, Seen};

/// Time between two looks at what is deleted.
const DELETION_INTERVAL: Duration = Duration::from_millis(200);

/// Makes all of them.
pub async fn all(run: &Run<'_>) -> Result<()> {
    run.step(0, "creating a child with one replica");
    if !scales(run, 1).await? {
        return Ok(());
    }
    run.stage.mark(run.subject.good.name()).await?;
    run.step(1, "a template that never serves, with one replica");
    tries_bad_template(run, 1).await?;
    // Alone, the first pod to go is also the last: whoever calls that the end of the restart is seen to do so in each run.
    run.step(3, "another restart token, with one replica");
    restarts(run, 1).await?;
    run.step(4, "scaling up");
    scales(run, 3).await?;
    run.observed.send_modify(|observed| observed.least_serving = Some(observed.serving()));
    run.step(5, "scaling down");
    if scales(run, 2).await? {
        run.ledger.pass(Requirement::Scaling, "from 1 to 3 and back to 2 pods");
    }
    run.ledger.conclude(Requirement::Selector, selects(run));
    run.step(6, "a template that never serves, with two replicas");
    tries_bad_template(run, 2).await?;
    run.step(8, "another restart token, with two replicas");
    restarts(run, 2).await?;
    run.ledger.conclude(Requirement::Budget, holds_its_budget(run));
    run.step(9, "waiting for the steady state");
    run.ledger.conclude(Requirement::SteadyState, is_silent(run).await);
    run.ledger.conclude(Requirement::ForeignFields, leaves_foreign_fields(run).await?);
    run.step(11, "deleting the child");
    run.ledger.conclude(Requirement::Deletion, takes_all_replicas(run).await?);
    run.ledger.pass(Requirement::Outputs, "each had its type or was missing, also before the first status");
    Ok(())
}

/// Creates the child with a number of replicas, or gives it another number. `false` if they never serve.
async fn scales(run: &Run<'_>, replicas: usize) -> Result<bool> {
    let none = BTreeSet::new();
    let expected = run.change(&run.subject.good, replicas, &none, Requirement::Ready).await?;
    Ok(run.settle(&expected, Requirement::Scaling).await)
}

/// Applies the selector, which selects the replicas and nothing else, to the pods of the namespace.
fn selects(run: &Run<'_>) -> Seen {
    let text = run.child(run.subject.good.name()).and_then(|child| child.outputs.selector);
    let text = text.ok_or("it is not reported, so that a HorizontalPodAutoscaler finds no pods")?;
    let selector = parsed(&text).ok_or_else(|| format!("{text:?} is no list of labels with values"))?;
    let is_missed = |replica: &&Replica| replica.is_alive && !selector.matches(&replica.labels);
    match run.observed.borrow().replicas.values().filter(is_missed).count() {
        0 => Ok(text),
        missed => Err(format!("{text} misses {missed} pods")),
    }
}

/// Labels with values, the form in which selectors of pods are reported.
fn parsed(text: &str) -> Option<Selector> {
    let of_label = |part: &str| {
        let (key, value) = part.split_once('=')?;
        Some(Expression::Equal(key.to_owned(), value.trim_start_matches('=').to_owned()))
    };
    let labels: Option<Vec<Expression>> = text.split(',').map(of_label).collect();
    labels.map(Selector::from_iter)
}

/// Sets another restart token: all replicas are replaced.
async fn restarts(run: &Run<'_>, replicas: usize) -> Result<()> {
    if run.contract().restarted_at.is_none() {
        run.ledger.skip(Requirement::Restart, "the kind has no restart token");
        run.ledger.skip(Requirement::Updated, "the kind has no restart token");
        return Ok(());
    }
    if run.ledger.has_failed(Requirement::Restart) {
        return Ok(());
    }
    let before = run.observed.borrow().uids();
    run.token.replace(Some(Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()));
    let expected = run.change(&run.subject.good, replicas, &before, Requirement::Ready).await?;
    if !run.settle(&expected, Requirement::Restart).await {
        run.ledger.skip(Requirement::Updated, "nothing was replaced");
        // What follows is judged by itself.
        run.token.take();
        return Ok(());
    }
    run.ledger.pass(Requirement::Restart, format!("all {replicas} pods were replaced"));
    let name = run.subject.good.name();
    let Some(updated) = run.child(name).and_then(|child| child.outputs.updated) else {
        run.ledger.fail(Requirement::Updated, "it is not reported");
        return Ok(());
    };
    let is_right = |child: &Child| child.outputs.updated.map(usize::try_from) == Some(Ok(replicas));
    let seen = if run.until_child(name, Requirement::Updated, is_right).await {
        Ok("it was the number of new pods".to_owned())
    } else {
        Err(format!("it stays {updated} with {replicas} new pods"))
    };
    run.ledger.conclude(Requirement::Updated, seen);
    Ok(())
}

/// Whether some pods served at any time since they are counted.
fn holds_its_budget(run: &Run<'_>) -> Seen {
    match run.observed.borrow().least_serving.unwrap_or_default() {
        0 => Err("at some time no pod served, although two or more were desired".to_owned()),
        least => Ok(format!("{least} or more pods served at any time")),
    }
}

/// Waits until nothing is written for a while, because nothing changes.
async fn is_silent(run: &Run<'_>) -> Seen {
    let deadline = Instant::now() + run.limits.of(Requirement::SteadyState);
    let mut changes = run.observed.subscribe();
    let mut last = changes.borrow_and_update().versions();
    let mut writes: BTreeMap<String, usize> = BTreeMap::new();
    while timeout(run.limits.window, changes.changed()).await.is_ok() {
        let now = changes.borrow_and_update().versions();
        for (name, _) in now.iter().filter(|(name, version)| last.get(*name) != Some(version)) {
            *writes.entry(name.clone()).or_default() += 1;
        }
        last = now;
        if Instant::now() > deadline {
            let most = writes.iter().max_by_key(|(_, count)| **count);
            let most = most.map(|(name, count)| format!("; {name} changed {count} times"));
            let late = run.in_time(Requirement::SteadyState);
            return Err(format!("no rest {late}{}", most.unwrap_or_default()));
        }
    }
    Ok(format!("no write to the child or its pods for {} s", run.limits.window.as_secs()))
}

/// Looks for the label and the annotation that somebody else has set before all other trials.
async fn leaves_foreign_fields(run: &Run<'_>) -> Result<Seen> {
    let lost = run.stage.lost_marks(run.subject.good.name()).await?;
    Ok(match lost.join(" and the ") {
        none if none.is_empty() => Ok("a label and an annotation of another field manager stayed".to_owned()),
        lost => Err(format!("the {lost} of another field manager is gone")),
    })
}

/// Deletes the child in the background: all its replicas go with it.
async fn takes_all_replicas(run: &Run<'_>) -> Result<Seen> {
    let (name, started) = (run.subject.good.name(), Instant::now());
    run.expect(None).await;
    run.stage.delete(name).await?;
    let gone = until(DELETION_INTERVAL, run.limits.of(Requirement::Deletion), async || {
        let (child, replicas) = (run.stage.find(name).await?, run.stage.replicas().await?);
        Ok(child.is_none() && replicas.is_empty())
    });
    if gone.await? {
        let seconds = started.elapsed().as_secs_f64();
        return Ok(Ok(format!("the child and its pods were gone after {seconds:.0} s")));
    }
    let left = match run.stage.find(name).await? {
        Some(child) => format!("the child is kept by its finalizers: {}", child.finalizers().join(", ")),
        None => format!(
            "{} pods are left, although the child is gone: do they have its owner reference?",
            run.stage.replicas().await?.len()
        ),
    };
    Ok(Err(format!("{}: {left}", run.in_time(Requirement::Deletion))))
}

/// Rolls a template that never serves out and back: the kind tries it, never says that it is ready, and returns to the one
/// before.
async fn tries_bad_template(run: &Run<'_>, replicas: usize) -> Result<()> {
    let before = run.observed.borrow().uids();
    let (bad, name) = (&run.subject.bad, run.subject.bad.name());
    let is_beside = name != run.subject.good.name();
    let expected = run.change(bad, replicas, &before, Requirement::BadTemplate).await?;
    let is_new = |replica: &Replica| !before.contains(&replica.uid);
    let tried = |observed: &Observed| observed.replicas.values().any(is_new);
    let is_tried = run.saw(Requirement::Replacement, tried, "no pod of a changed template was created").await;
    run.judge_generation(&expected).await;
    sleep(run.limits.window).await;
    // By now, a child that counts pods of the bad template has reported them.
    if !is_beside {
        run.judge_active(name).await;
    }
    let is_bad = |replica: &&Replica| is_new(replica) && replica.serves;
    let serve = run.observed.borrow().replicas.values().filter(is_bad).count();
    if !is_tried || run.ledger.has_failed(Requirement::ObservedGeneration) {
        let why = "no replica of it was tried under a known generation";
        run.ledger.leave_open(Requirement::BadTemplate, why);
    } else if serve > 0 {
        let why = format!("{serve} of its pods serve: give one that never does with --bad-template");
        run.ledger.leave_open(Requirement::BadTemplate, why);
    } else {
        let seen = format!("not ready while its pods did not serve, for {} s", run.limits.window.as_secs());
        run.ledger.pass(Requirement::BadTemplate, seen);
    }
    names_its_blocker(run, name).await;
    goes_back(run, replicas, is_tried, &before).await
}

/// Waits for the blocker: a kubelet may take long to find out that an image is missing.
async fn names_its_blocker(run: &Run<'_>, name: &str) {
    let mut seen = None;
    let is_named = |observed: &Observed| {
        seen = blocker(observed, name);
        seen.is_some()
    };
    run.saw(Requirement::BlockedBy, is_named, "nothing was named while a pod could not serve").await;
    if let Some(blocker) = seen {
        run.ledger.pass(Requirement::BlockedBy, blocker);
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

/// Returns to the good template, from the bad one or from another child beside it.
async fn goes_back(run: &Run<'_>, replicas: usize, is_tried: bool, before: &BTreeSet<String>) -> Result<()> {
    let bad: BTreeSet<String> = run.observed.borrow().uids().difference(before).cloned().collect();
    let mut how = "to another template, and back";
    if run.subject.bad.name() != run.subject.good.name() {
        how = "by another child beside it";
        run.stage.delete(run.subject.bad.name()).await?;
        // Those of another child are no replaced ones of this, which is ready all the time.
        let is_left = |replica: &Replica| replica.is_alive && bad.contains(&replica.uid);
        let is_gone = |observed: &Observed| !observed.replicas.values().any(is_left);
        run.saw(Requirement::Deletion, is_gone, "pods of the deleted child were left").await;
    }
    let expected = run.change(&run.subject.good, replicas, &bad, Requirement::BadTemplate).await?;
    if run.settle(&expected, Requirement::Replacement).await && is_tried {
        run.ledger.pass(Requirement::Replacement, how);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_a_list_of_labels_with_values() {
        let labels = [("app".to_owned(), "web".to_owned()), ("tier".to_owned(), "gold".to_owned())].into();
        assert!(parsed("app=web,tier==gold").unwrap().matches(&labels));
        assert!(!parsed("app=shop").unwrap().matches(&labels));
        assert!(parsed("app").is_none());
    }
}
