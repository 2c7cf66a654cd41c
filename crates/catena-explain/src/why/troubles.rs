//! Several troubles at once: those beside the cause, so that none is concealed.

use std::collections::HashMap;

use catena_cluster::State;

use super::{Cause, Facts, Finding, edges, objects, text::MAX_NAMED, walk};
use crate::Node;

/// More take seconds.
const MAX_PODS: usize = 1000;

/// The troubles below an object that are others than the cause: of its pods, and of what is not followed because of the cause.
pub fn others<'n>(finding: &Finding<'n>, facts: &Facts<'n>) -> Option<String> {
    let Finding { cause, path } = finding;
    let is_stuck = |node: &&Node| node.identity.kind == "Pod" && node.health.state == State::Stuck;
    let pods = || facts.asked.all().filter(is_stuck).take(MAX_PODS);
    // Those of which the scheduler says the same wait for the same.
    let words = |pod: &'n Node| Some(pod.health.message.as_str()).filter(|_| edges::needs_nodes(pod));
    let mut alike: HashMap<&str, usize> = HashMap::new();
    pods().filter_map(words).for_each(|said| *alike.entry(said).or_default() += 1);
    for said in path.iter().filter_map(|told| words(told)) {
        alike.remove(said);
    }
    let pods = pods().filter_map(|pod| match words(pod) {
        Some(said) => Some((pod, alike.remove(said)?)),
        None => Some((pod, 1)),
    });
    let unfollowed = path.last().filter(|leaf| walk::is_not_followed(leaf)).into_iter();
    let unfollowed = unfollowed.flat_map(|leaf| objects::unhealthy_children(leaf, facts));
    let troubles = unfollowed.map(|child| (child, 1)).chain(pods);
    let is_same = |one: &Cause, other: &Cause| {
        let are_pods = one.object.kind == "Pod" && other.object.kind == "Pod";
        one.object == other.object || are_pods && one.meaning == other.meaning
    };
    let mut others: Vec<(Cause, usize)> = Vec::new();
    for (found, number) in troubles.filter_map(|(node, number)| Some((walk::explain(node, facts)?, number))) {
        // An error is that of a crash that is counted in a moment.
        let is_news = !found.cause.is_progress && found.cause.reason != "Error";
        match others.iter_mut().find(|(known, _)| is_same(known, &found.cause)) {
            Some((known, all)) if known.object != found.cause.object => *all += number,
            None if is_news && !is_same(cause, &found.cause) => others.push((found.cause, number)),
            _ => {}
        }
    }
    let told = others.iter().take(MAX_NAMED).map(|(Cause { object, meaning, reason, .. }, all)| {
        let more = if *all == 1 { String::new() } else { format!("; {} more like it", all - 1) };
        format!("{object} {meaning} ({reason}{more})")
    });
    let told = told.collect::<Vec<_>>().join(", and ");
    let number: usize = others.iter().map(|(_, all)| all).sum();
    let have = if number == 1 { "object has another trouble" } else { "objects have other troubles" };
    (number > 0).then(|| format!("beside it, {number} {have}: {told}"))
}
