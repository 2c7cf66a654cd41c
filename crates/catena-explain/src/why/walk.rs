//! One walk over edges, from an object to the leaf at which the cause of its state lies: the first of its neighbours that
//! leads to an obstacle, or else to mere progress, or else its own words.

use std::collections::HashMap;

use catena_cluster::{Identity, State, text};

use super::{
    Cause, Facts, Finding, Step, command, contest, controllers, deletion, edges, leaf, objects, placement,
    settings, unreported, updates,
};
use crate::Node;

/// Reasons of an object whose spec is not followed at all: whatever its present pods suffer from, no correction reaches them.
const NOT_FOLLOWED: [&str; 3] = ["Paused", "ChangedWhilePaused", "KindNotListed"];
/// The most probable neighbours explain the others.
const MAX_WAYS: usize = 16;

/// Finds the root cause of the state of an object, if it is not well.
pub fn explain<'n>(asked: &'n Node, facts: &Facts<'n>) -> Option<Finding<'n>> {
    let Finding { cause, path } = walk(asked, &mut HashMap::new(), facts)?;
    let cause = updates::instead_of(cause, path.last().copied().unwrap_or(asked), facts);
    Some(Finding { cause, path })
}

/// What was found from each object, by its uid.
type Walked<'n> = HashMap<&'n str, Option<Finding<'n>>>;

/// Each object is walked once, because the ways to it can be many, and those from it as well.
fn walk<'n>(node: &'n Node, walked: &mut Walked<'n>, facts: &Facts<'n>) -> Option<Finding<'n>> {
    let uid = node.identity.uid.as_str();
    if let Some(known) = walked.get(uid) {
        return known.clone();
    }
    // Objects may name each other.
    walked.insert(uid, None);
    let Step { ways, only_obstacles, own } = step(node, facts);
    let mut found = own.map(|cause| Finding { cause, path: vec![node] });
    let mut takes_progress = !only_obstacles;
    for way in ways.into_iter().take(MAX_WAYS) {
        let Some((end, between)) = way.split_last() else { continue };
        let Some(Finding { cause, path }) = walk(end, walked, facts) else { continue };
        let is_obstacle = !cause.is_progress;
        if is_obstacle || takes_progress {
            found = Some(Finding { cause, path: [&[node], between, &path].concat() });
            takes_progress = false;
        }
        if is_obstacle {
            break;
        }
    }
    walked.insert(uid, found.clone());
    found
}

/// The most fundamental facts decide first.
fn step<'n>(node: &'n Node, facts: &Facts<'n>) -> Step<'n> {
    deletion::step(node, facts)
        .or_else(|| deletion::in_terminating_namespace(node, facts).map(Step::own))
        .or_else(|| command::step(node, facts))
        .or_else(|| settings::cause(node, facts).map(Step::own))
        .or_else(|| unreported::step(node, facts))
        .unwrap_or_else(|| neighbours(node, facts))
}

/// The neighbours of an object in which the cause may lie if it is not as it should be.
fn neighbours<'n>(node: &'n Node, facts: &Facts<'n>) -> Step<'n> {
    if objects::is_well(node, facts) {
        // A Job of a schedule runs for a time: only what keeps its pod from running is news.
        let runs = |pod: &Node| text(&pod.object, "/status/phase") == Some("Running");
        let is_starting = |below: &Node| {
            let is_job = below.identity.group() == "batch" && below.health.state == State::Moving;
            is_job && !below.children.iter().any(runs)
        };
        let has_jobs = |child: &&Node| child.all().any(is_starting);
        let jobs = node.children.iter().filter(|_| node.health.state == State::Present).filter(has_jobs);
        return Step { only_obstacles: true, ..Step::to(jobs, None) };
    }
    if is_not_followed(node) {
        return Step::own(leaf::own(node, facts));
    }
    let (named, missing) = edges::follow(node, facts);
    let mut step = Step::to(named, missing);
    if let Some(named) = edges::blocker(node)
        && add_blocker(&mut step, node, named, facts)
    {
        return step;
    }
    step.ways.extend(objects::unhealthy_children(node, facts).map(|child| vec![child]));
    let is_late = |pod: &Node| objects::is_kept_pod(pod) || placement::hangs(pod, facts.now);
    step.ways.extend(objects::way_to(node, &is_late));
    step.own = step.own.or_else(|| own(node, facts));
    step
}

/// The cause that lies with an object itself, if not only with those below it.
fn own(node: &Node, facts: &Facts) -> Option<Cause> {
    if let Some(doubt) = objects::contradiction(node, facts) {
        let stale = controllers::controller_of(&node.identity);
        let stale = stale.and_then(|controller| facts.not_running(&node.identity, controller));
        let usual = || Cause::with(&node.identity, "StatusContradictory").meaning(&*doubt);
        return Some(stale.map_or_else(usual, |stale| stale.message(format!("it {doubt}"))));
    }
    if !objects::reports_well(node) {
        return Some(leaf::own(node, facts));
    }
    let (blocker, cause) = edges::blocker(node)?;
    let cause = Cause { object: node.identity.clone(), ..cause };
    Some(cause.meaning(format!("reports that {blocker} blocks it")))
}

/// Whether what an object asks for is not followed at all.
pub fn is_not_followed(node: &Node) -> bool {
    NOT_FOLLOWED.contains(&node.health.reason.as_str())
}

/// Adds the blocker that a status names. Returns whether it decides alone.
fn add_blocker<'n>(step: &mut Step<'n>, node: &'n Node, named: (Identity, Cause), facts: &Facts<'n>) -> bool {
    let (blocker, cause) = named;
    if let Some(mut way) = objects::way_to(node, &|below| below.identity.is_named_by(&blocker)) {
        let paused = way.iter().position(|below| is_not_followed(below));
        way.truncate(paused.map_or(way.len(), |at| at + 1));
        let end = way[way.len() - 1];
        // Its own words are from before, or there are none.
        let says_no_more = matches!(end.health.state, State::Present | State::Moving | State::Unreported);
        let is_silent = cause.reason == "NotReported" && says_no_more;
        // It tells of a pod that has ended, and of which nothing else is left, while the next one of its name starts.
        let is_before = cause.since.is_some() && cause.since < end.created;
        let is_of_former = is_before && end.identity.kind == "Pod" && cause.reason != "NotReady";
        if is_silent || is_of_former || matches!(end.health.state, State::Present | State::Done) {
            step.own = Some(cause);
        }
        step.only_obstacles = is_of_former;
        if is_silent {
            // What is below it reports nevertheless.
            let below = objects::unhealthy_children(end, facts);
            step.ways.extend(below.map(|below| [&way[..], &[below]].concat()));
            step.only_obstacles = true;
        } else {
            step.ways.push(way);
        }
        return is_silent;
    }
    let is_itself = blocker == node.identity;
    if !is_itself && facts.surroundings.related.find(&blocker).is_some() {
        return false;
    }
    // Its controller cannot continue; or another object is gone, or may not be read.
    step.own = Some(cause);
    !is_itself || contest::told(node).is_none()
}
