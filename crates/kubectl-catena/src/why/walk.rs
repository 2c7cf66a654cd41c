//! One walk over edges, from an object to the leaf at which the cause of its state lies: the first of its neighbours that
//! leads to an obstacle, or else to mere progress, or else its own words.

use super::{
    Cause, Facts, Finding,
    command::{self},
    contents, contest, deletion, edges, leaf, readiness, settings, unreported,
};
use crate::{
    chain::{Node, State},
    cluster::{Identity, text},
};

/// Reasons of an object whose spec is not followed at all: whatever its present pods suffer from, no correction reaches them.
const NOT_FOLLOWED: [&str; 3] = ["Paused", "ChangedWhilePaused", "KindNotListed"];
/// The most probable neighbours explain the others.
const MAX_WAYS: usize = 16;

/// Where the cause of an object's state may lie.
#[derive(Debug, Default)]
pub struct Step<'n> {
    /// The ways to other objects, the most probable first.
    pub ways: Vec<Vec<&'n Node>>,
    /// The cause if no way leads to one.
    pub own: Option<Cause>,
}

impl<'n> Step<'n> {
    /// The cause lies with the object itself, or with what it names.
    pub fn own(cause: Cause) -> Self {
        Self { ways: Vec::new(), own: Some(cause) }
    }

    /// The cause may lie with the next objects.
    pub fn to(next: impl IntoIterator<Item = &'n Node>, own: Option<Cause>) -> Self {
        Self { ways: next.into_iter().map(|next| vec![next]).collect(), own }
    }
}

/// Finds the root cause of the state of an object, if it is not well.
pub fn explain<'n>(asked: &'n Node, facts: &Facts<'n>) -> Option<Finding<'n>> {
    let mut path = vec![asked];
    let cause = walk(&mut path, facts)?;
    Some(Finding { cause, path })
}

fn walk<'n>(path: &mut Vec<&'n Node>, facts: &Facts<'n>) -> Option<Cause> {
    let Step { ways, own } = step(path.last().copied()?, facts)?;
    let length = path.len();
    let mut progress: Option<Finding> = None;
    for way in ways.into_iter().take(MAX_WAYS) {
        // Objects may name each other.
        let is_known = |next: &&Node| path.iter().any(|known| known.identity.uid == next.identity.uid);
        if way.iter().any(is_known) {
            continue;
        }
        path.extend(way);
        match walk(path, facts) {
            Some(cause) if !cause.is_progress => return Some(cause),
            Some(cause) if progress.is_none() => progress = Some(Finding { cause, path: path.clone() }),
            _ => {}
        }
        path.truncate(length);
    }
    let Some(found) = progress else { return own };
    *path = found.path;
    Some(found.cause)
}

/// The most fundamental facts decide first.
fn step<'n>(node: &'n Node, facts: &Facts<'n>) -> Option<Step<'n>> {
    deletion::step(node, facts)
        .or_else(|| contents::in_terminating_namespace(node, facts).map(Step::own))
        .or_else(|| command::step(node, facts))
        .or_else(|| unreported::step(node, facts))
        .or_else(|| neighbours(node, facts))
}

/// The neighbours of an object that is not as it should be.
fn neighbours<'n>(node: &'n Node, facts: &Facts<'n>) -> Option<Step<'n>> {
    let doubt = contradiction(node, facts);
    let blocker = edges::blocker(node);
    let is_healthy = node.health.state.is_healthy();
    let is_blocked = node.health.state == State::Present && blocker.is_some();
    if is_healthy && !has_unhealthy_dependents(node) && !is_blocked && doubt.is_none() {
        return None;
    }
    let (named, missing) = edges::follow(node, facts);
    let definition = edges::terminating_kind(node).and_then(|kind| {
        let is_it =
            |found: &&Node| found.deleted.is_some() && text(&found.object, "/spec/names/kind") == Some(kind);
        facts.surroundings.related.found.iter().find(is_it)
    });
    if let Some(cause) = settings::cause(node, facts) {
        return Some(Step::own(cause));
    }
    if NOT_FOLLOWED.contains(&node.health.reason.as_str()) {
        return Some(Step::own(leaf::own(node, facts)));
    }
    let mut step = Step::to(definition.into_iter().chain(named), missing);
    if let Some((object, cause)) = &blocker
        && add_blocker(&mut step, node, object, cause, facts)
    {
        return Some(step);
    }
    step.ways.extend(unhealthy_children(node, facts).map(|child| vec![child]));
    step.ways.extend(way_to(node, &is_kept_pod));
    let cause = || match (doubt, blocker) {
        _ if !is_healthy => Some(leaf::own(node, facts)),
        (Some(doubt), _) => Some(Cause::with(&node.identity, "StatusContradictory").meaning(doubt)),
        (None, Some((blocker, cause))) if is_blocked => {
            let meaning = format!("reports that {blocker} blocks it");
            Some(Cause { object: node.identity.clone(), ..cause }.meaning(meaning))
        }
        _ => None,
    };
    step.own = step.own.or_else(cause);
    Some(step)
}

/// Adds the blocker that a status names. Returns whether it decides alone.
fn add_blocker<'n>(
    step: &mut Step<'n>,
    node: &'n Node,
    blocker: &Identity,
    cause: &Cause,
    facts: &Facts<'n>,
) -> bool {
    let is_itself = edges::is_same(&node.identity, blocker);
    let way = way_to(node, &|below| edges::is_same(&below.identity, blocker)).filter(|_| !is_itself);
    if let Some(way) = way {
        // It may be well by now: the status is about to follow.
        let first = vec![way[0]];
        step.ways.extend([way, first]);
        return false;
    }
    if !is_itself && facts.surroundings.related.find(blocker).is_some() {
        return false;
    }
    // Its controller cannot continue; or another object is gone, or may not be read.
    let since = cause.since.or(node.health.since.filter(|_| is_itself));
    step.own = Some(cause.clone().since(since));
    !is_itself || contest::told(node).is_none()
}

/// Why an object is not ready although it reports so, as far as its pods were read.
fn contradiction(node: &Node, facts: &Facts) -> Option<String> {
    readiness::contradiction(node, !facts.surroundings.is_incomplete)
}

/// Whether an object without a status of its own has dependents that are not well. Finished ones do not count.
fn has_unhealthy_dependents(node: &Node) -> bool {
    let is_open = |child: &Node| match child.health.state {
        State::Ready | State::Done | State::Failed | State::Terminating => false,
        // A Job of a schedule runs for a time.
        State::Moving if child.identity.group() == "batch" => {
            child.children.iter().any(|pod| pod.health.state == State::Stuck)
        }
        State::Moving | State::Unreported | State::Stuck => true,
        State::Present => has_unhealthy_dependents(child),
    };
    node.health.state == State::Present
        && node.children.iter().any(|child| !command::is_command(child) && is_open(child))
}

/// Children that are not well, stuck ones first. Commands come and go beside the chain.
pub fn unhealthy_children<'n>(node: &'n Node, facts: &Facts) -> impl Iterator<Item = &'n Node> {
    let rank = |child: &&Node| match child.health.state {
        State::Stuck | State::Failed => 0,
        State::Unreported => 1,
        State::Moving => 2,
        _ => 3,
    };
    let mut children: Vec<&Node> = node
        .children
        .iter()
        .filter(|child| !command::is_command(child) && !is_replaced(child, node))
        .filter(|child| {
            let is_open = !child.health.state.is_healthy() || has_unhealthy_dependents(child);
            is_open || contradiction(child, facts).is_some()
        })
        .collect();
    children.sort_by_key(rank);
    children.into_iter()
}

/// Whether a pod has ended and its owner has made another one: it can be left for weeks.
fn is_replaced(child: &Node, owner: &Node) -> bool {
    let owner = (owner.identity.group(), owner.identity.kind.as_str());
    child.health.state == State::Failed
        && matches!(owner, ("apps", "ReplicaSet" | "StatefulSet" | "DaemonSet"))
}

/// Whether an object is a pod that was deleted and that a finalizer keeps. What is above it may count no replicas any more.
pub fn is_kept_pod(node: &Node) -> bool {
    node.identity.kind == "Pod" && node.deleted.is_some() && deletion::holders(node).next().is_some()
}

/// The objects between one and the first below it that is wanted, and that one.
pub fn way_to<'n>(node: &'n Node, is_wanted: &dyn Fn(&Node) -> bool) -> Option<Vec<&'n Node>> {
    let mut below = node.children.iter().filter(|child| !command::is_command(child));
    below.find_map(|child| path_to(child, is_wanted))
}

/// The objects from one to the first that is wanted: itself, or one below it. Commands act beside the chain.
pub fn path_to<'n>(node: &'n Node, is_wanted: &dyn Fn(&Node) -> bool) -> Option<Vec<&'n Node>> {
    if is_wanted(node) {
        return Some(vec![node]);
    }
    Some([vec![node], way_to(node, is_wanted)?].concat())
}
