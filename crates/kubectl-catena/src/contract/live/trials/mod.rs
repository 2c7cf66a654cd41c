//! The trials, in their order: each begins where the one before it ended.

mod bad_template;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use jiff::Timestamp;
use kube::{
    ResourceExt,
    core::{Expression, Selector, SelectorExt},
};
use tokio::time::{Duration, Instant, timeout};

use super::{Child, Replica, Requirement, Run};
use crate::screen::until;

/// Time between two looks at what is deleted.
const DELETION_INTERVAL: Duration = Duration::from_millis(200);

/// Makes all of them.
pub async fn all(run: &Run<'_>) -> Result<()> {
    run.step(0, "creating a child with one replica");
    if !starts(run).await? {
        return Ok(());
    }
    run.stage.mark(run.subject.good.name()).await?;
    run.step(1, "a template that never serves, with one replica");
    bad_template::is_told(run, 1).await?;
    run.step(3, "scaling up");
    scales(run, 1, 3).await?;
    run.observed.send_modify(|observed| observed.least_serving = Some(observed.serving()));
    run.step(4, "scaling down");
    scales(run, 3, 2).await?;
    selects(run);
    run.step(5, "a template that never serves, with two replicas");
    bad_template::is_told(run, 2).await?;
    run.step(7, "another restart token");
    restarts(run, 2).await?;
    holds_its_budget(run);
    run.step(8, "waiting for the steady state");
    is_silent(run).await;
    leaves_foreign_fields(run).await?;
    run.step(10, "deleting the child");
    takes_all_replicas(run).await?;
    run.ledger.pass(Requirement::Outputs, "each had its type or was missing, also before the first status");
    Ok(())
}

/// Creates the child with one replica. `false` if it never serves.
async fn starts(run: &Run<'_>) -> Result<bool> {
    let none = BTreeSet::new();
    let generation = run.change(&run.subject.good, 1, None, &none, Requirement::Ready).await?;
    Ok(run.settle(1, generation, &none, Requirement::Scaling).await)
}

/// Changes the number of replicas.
async fn scales(run: &Run<'_>, from: i32, to: i32) -> Result<()> {
    let none = BTreeSet::new();
    let generation = run.change(&run.subject.good, to, None, &none, Requirement::Ready).await?;
    if run.settle(to, generation, &none, Requirement::Scaling).await {
        let (low, high) = (from.min(to), from.max(to));
        run.ledger.pass(Requirement::Scaling, format!("from 1 to {high} and back to {low} pods"));
    }
    Ok(())
}

/// Applies the selector, which selects the replicas and nothing else, to the pods of the namespace.
fn selects(run: &Run<'_>) {
    let child = run.child(run.subject.good.name());
    let Some(text) = child.and_then(|child| child.outputs.selector) else {
        let seen = "it is not reported, so that a HorizontalPodAutoscaler finds no pods";
        return run.ledger.fail(Requirement::Selector, seen);
    };
    let Some(selector) = parsed(&text) else {
        return run.ledger.fail(Requirement::Selector, format!("{text:?} is no list of labels with values"));
    };
    let is_missed = |replica: &&Replica| replica.is_alive && !selector.matches(&replica.labels);
    let missed = run.observed.borrow().replicas.values().filter(is_missed).count();
    match missed {
        0 => run.ledger.pass(Requirement::Selector, text),
        missed => run.ledger.fail(Requirement::Selector, format!("{text} misses {missed} pods")),
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
async fn restarts(run: &Run<'_>, replicas: i32) -> Result<()> {
    if run.contract().restarted_at.is_none() {
        run.ledger.skip(Requirement::Restart, "the kind has no restart token");
        run.ledger.skip(Requirement::Updated, "the kind has no restart token");
        return Ok(());
    }
    let before = run.observed.borrow().uids();
    let token = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let generation =
        run.change(&run.subject.good, replicas, Some(&token), &before, Requirement::Ready).await?;
    if !run.settle(replicas, generation, &before, Requirement::Restart).await {
        run.ledger.skip(Requirement::Updated, "nothing was replaced");
        return Ok(());
    }
    run.ledger.pass(Requirement::Restart, format!("all {replicas} pods were replaced"));
    let name = run.subject.good.name();
    let Some(updated) = run.child(name).and_then(|child| child.outputs.updated) else {
        run.ledger.fail(Requirement::Updated, "it is not reported");
        return Ok(());
    };
    let is_right = |child: &Child| child.outputs.updated == Some(replicas);
    if run.until_child(name, Requirement::Updated, is_right).await {
        run.ledger.pass(Requirement::Updated, "it was the number of new pods");
    } else {
        run.ledger.fail(Requirement::Updated, format!("it stays {updated} with {replicas} new pods"));
    }
    Ok(())
}

fn holds_its_budget(run: &Run<'_>) {
    let least = run.observed.borrow().least_serving;
    match least {
        Some(0) => {
            let seen = "at some time no pod served, although two or more were desired";
            run.ledger.fail(Requirement::Budget, seen);
        }
        Some(least) => {
            run.ledger.pass(Requirement::Budget, format!("{least} or more pods served at any time"));
        }
        None => {}
    }
}

/// Waits until nothing is written for a while, because nothing changes.
async fn is_silent(run: &Run<'_>) {
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
            let most =
                most.map_or_else(String::new, |(name, count)| format!("; {name} changed {count} times"));
            let late = run.in_time(Requirement::SteadyState);
            return run.ledger.fail(Requirement::SteadyState, format!("no rest {late}{most}"));
        }
    }
    let seconds = run.limits.window.as_secs();
    run.ledger.pass(Requirement::SteadyState, format!("no write to the child or its pods for {seconds} s"));
}

/// Looks for the label and the annotation that somebody else has set before all other trials.
async fn leaves_foreign_fields(run: &Run<'_>) -> Result<()> {
    let lost = run.stage.lost_marks(run.subject.good.name()).await?;
    if lost.is_empty() {
        let seen = "a label and an annotation of another field manager stayed";
        run.ledger.pass(Requirement::ForeignFields, seen);
    } else {
        let lost = lost.join(" and the ");
        run.ledger.fail(Requirement::ForeignFields, format!("the {lost} of another field manager is gone"));
    }
    Ok(())
}

/// Deletes the child in the background: all its replicas go with it.
async fn takes_all_replicas(run: &Run<'_>) -> Result<()> {
    let (name, started) = (run.subject.good.name(), Instant::now());
    run.expect(None).await;
    run.stage.delete(name).await?;
    let gone = until(DELETION_INTERVAL, run.limits.of(Requirement::Deletion), async || {
        let (child, replicas) = (run.stage.find(name).await?, run.stage.replicas().await?);
        Ok(child.is_none() && replicas.is_empty())
    });
    if gone.await? {
        let seconds = started.elapsed().as_secs_f64();
        run.ledger
            .pass(Requirement::Deletion, format!("the child and its pods were gone after {seconds:.0} s"));
        return Ok(());
    }
    let left = match run.stage.find(name).await? {
        Some(child) => format!("the child is kept by its finalizers: {}", child.finalizers().join(", ")),
        None => format!(
            "{} pods are left, although the child is gone: do they have its owner reference?",
            run.stage.replicas().await?.len()
        ),
    };
    let late = run.in_time(Requirement::Deletion);
    run.ledger.fail(Requirement::Deletion, format!("{late}: {left}"));
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
