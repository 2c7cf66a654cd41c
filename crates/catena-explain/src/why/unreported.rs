//! An object whose controller has not reported on its current spec.

use std::collections::BTreeSet;

use catena_api::keys;
use catena_cluster::State;
use jiff::{SignedDuration, Timestamp};

use super::{
    BINDER, Cause, Facts, Step, Verdict, Warning, command::RUNNER, controllers, edges, objects, reasons,
    warnings,
};
use crate::Node;

/// How long after a change the silence of a controller is normal.
pub const REPORT_GRACE: SignedDuration = SignedDuration::from_secs(5);
/// How long basic-deployment-controller waits for the first news of a child, and some time for writing the status.
const FIRST_REPORT_GRACE: SignedDuration = SignedDuration::from_secs(30);

/// What decides while the controller has yet to report on the current spec.
pub fn step<'n>(node: &'n Node, facts: &Facts<'n>) -> Option<Step<'n>> {
    if node.health.state != State::Unreported {
        return None;
    }
    let since = node.health.since.or(node.created);
    let is_new = is_new(since, facts);
    let controller = controllers::controller_of(&node.identity);
    let (variant, why) = match controller.map(|controller| facts.verdict(controller)) {
        Some(Verdict::Down(_)) => return facts.not_running(&node.identity, controller?).map(Step::own),
        Some(Verdict::Runs) if is_held_back(node, since, facts) => {
            let (old, _) = edges::follow(node, facts);
            let next = old.into_iter().chain(objects::unhealthy_children(node, facts));
            return Some(Step::to(next, Some(Cause::with(&node.identity, "Progressing").since(since))));
        }
        Some(Verdict::Unknown(why)) => ("perhaps not reconciled", why),
        Some(Verdict::Runs) => (if is_new { "just changed" } else { "not reconciled" }, String::new()),
        None => (if is_new { "status from before" } else { "outdated status" }, String::new()),
    };
    // It may not be able to report.
    let refused = warnings::current(node, facts).find(|warning| {
        let row = reasons::describe(&warning.reason);
        controller == Some(&*warning.by) && row.is_some_and(|row| !row.is_progress)
    });
    if let Some(Warning { reason, message, since, .. }) = refused {
        return Some(Step::own(Cause::reported(&node.identity, reason, message).since(*since)));
    }
    let names = [("{controller}", controller.unwrap_or_default()), ("{why}", &why)];
    let cause = Cause::with(&node.identity, "NotObserved").in_case(variant, &names).since(since);
    Some(Step::own(cause.message(warnings::after(&node.health.message, node, facts))))
}

/// The controller that should have reported what a cause lacks; if it runs, its log may tell why it has not.
pub fn silent(cause: &Cause) -> Option<&'static str> {
    match &*cause.reason {
        "NotObserved" => controllers::controller_of(&cause.object),
        "NotCarriedOut" if cause.object.group() == keys::GROUP => Some(RUNNER),
        "BinderSilent" => Some(BINDER),
        _ => None,
    }
}

/// Whether the silence of a controller since then is normal.
pub fn is_new(since: Option<Timestamp>, facts: &Facts) -> bool {
    since.is_some_and(|since| facts.now.duration_since(since) < REPORT_GRACE)
}

/// Whether a controller that runs may be waiting for the first news: it has made a child, or waits for a former one.
fn is_held_back(node: &Node, since: Option<Timestamp>, facts: &Facts) -> bool {
    let is_first = node.identity.kind == "BasicDeployment" && node.health.reason != "Behind";
    let is_new = since.is_some_and(|since| facts.now.duration_since(since) < FIRST_REPORT_GRACE);
    let has_child = node.children.iter().any(|child| !objects::is_command(child) && child.serving.is_some());
    is_first && is_new && (has_child || !edges::follow(node, facts).0.is_empty())
}

/// The controllers of the chain.
pub fn controllers(facts: &Facts) -> BTreeSet<&'static str> {
    facts.asked.all().filter_map(|node| controllers::controller_of(&node.identity)).collect()
}

/// Controllers of the chain whose new pods do not start, while the old ones do the work.
pub fn updating(facts: &Facts) -> impl Iterator<Item = String> {
    let runs = |name: &&str| facts.verdict(name) == Verdict::Runs;
    controllers(facts).into_iter().filter(runs).flat_map(|name| {
        let updating = facts.surroundings.controllers.of(name).filter(|seen| seen.is_updating);
        let trouble = updating.filter_map(|seen| seen.trouble.as_ref()).filter(|trouble| trouble.is_stuck);
        trouble.map(move |trouble| format!("the update of {name} does not finish: {}", trouble.told))
    })
}

/// Controllers of the chain that are not running, so that their last reports still stand.
pub fn remarks(facts: &Facts) -> impl Iterator<Item = String> {
    controllers(facts).into_iter().filter_map(|name| match facts.verdict(name) {
        Verdict::Down(down) => Some(format!("this may be out of date, because {down}")),
        Verdict::Runs | Verdict::Unknown(_) => None,
    })
}
