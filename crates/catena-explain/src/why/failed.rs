//! Pods that have ended and do not serve again: whether they tell why their successors do not serve.

use catena_cluster::{State, containers};
use catena_terminal::age;
use jiff::{SignedDuration, Timestamp};

use super::{Cause, Facts, edges, leaf, objects, text::MAX_NAMED};
use crate::Node;

/// How long a pod that failed tells something of those after it: as long as the controller of a `DaemonSet` waits at most.
const RECENT: SignedDuration = SignedDuration::from_mins(15);

/// Whether an object has failed and its owner has made another one: it can be left for weeks.
pub fn is_replaced(child: &Node, owner: &Node, facts: &Facts) -> bool {
    let of = (owner.identity.group(), owner.identity.kind.as_str());
    let has_tries = matches!(of, ("batch", "Job") | ("argoproj.io", "Rollout"));
    let is_of_apps = matches!(of, ("apps", "ReplicaSet" | "StatefulSet" | "DaemonSet"));
    // After a failure, a pod that was just created tells nothing yet.
    let starts = |pod: &Node| {
        let is_young = pod.health.state == State::Moving && leaf::is_new(pod, facts);
        is_young && is_recent(child, facts) && objects::owns_pods(&owner.identity)
    };
    // Of others, what serves may be one more, such as the pod of an operator that was scaled up.
    let is_next = |other: &Node| {
        let is_later = other.identity.kind == child.identity.kind && other.created > ended(child);
        is_later && !starts(other) && (has_tries || is_of_apps || other.health.state != State::Ready)
    };
    let is_over = || is_of_apps && (!is_recent(child, facts) || leaf::own(child, facts).is_progress);
    child.health.state == State::Failed && (owner.children.iter().any(is_next) || is_over())
}

fn ended(node: &Node) -> Option<Timestamp> {
    node.health.since.or(node.created)
}

fn is_recent(node: &Node, facts: &Facts) -> bool {
    ended(node).is_some_and(|at| facts.now.duration_since(at) < RECENT)
}

/// The number of pods that have failed like one of them lately, if it is not the only one, and their owner.
fn alike<'n>(pod: &Node, facts: &Facts<'n>) -> Option<(usize, &'n Node)> {
    let owner = objects::above(pod, facts)?;
    let is_alike = |other: &&Node| {
        let is_same = (other.health.state, &other.health.reason) == (State::Failed, &pod.health.reason);
        is_same && (is_recent(other, facts) || other.identity == pod.identity)
    };
    Some((owner.children.iter().filter(is_alike).count(), owner)).filter(|(number, _)| *number > 1)
}

/// The cause of a pod that has failed, with its node and the number of those that have failed like it: that is no progress.
pub fn among_others(mut cause: Cause, pod: &Node, facts: &Facts) -> Cause {
    if let Some(on) = edges::node_of(pod) {
        cause.advice = cause.advice.replace("{node}", &on.to_string());
    }
    let Some((number, owner)) = alike(pod, facts) else { return cause };
    let (number, owner) = (number.to_string(), owner.identity.to_string());
    let names = [("{meaning}", &*cause.meaning), ("{number}", &number), ("{owner}", &owner)];
    Cause { is_progress: false, ..cause.clone().in_case("failed again", &names) }
}

/// Pods that serve at this moment, and whose container has ended again and again until just now.
fn restarted(facts: &Facts) -> impl Iterator<Item = String> {
    let serving = facts.asked.all().filter(|pod| pod.identity.kind == "Pod");
    let serving = serving.filter(|pod| pod.health.state == State::Ready);
    let told = serving.filter_map(|pod| {
        containers(&pod.object).find_map(|container| {
            let ended = &container["lastState"]["terminated"];
            let at: Timestamp = ended["finishedAt"].as_str()?.parse().ok()?;
            let (times, reason) = (container["restartCount"].as_i64()?, ended["reason"].as_str()?);
            let is_news = times > 2 && facts.now.duration_since(at) < leaf::RECOVERY;
            let ago = age(facts.now, at);
            is_news
                .then(|| format!("{} was restarted {times} times, last {ago} ago ({reason})", pod.identity))
        })
    });
    told.take(MAX_NAMED)
}

/// Pods that fail again and again, also while others serve.
pub fn remarks(facts: &Facts, cause: Option<&Cause>) -> impl Iterator<Item = String> {
    let failed = facts.asked.all().filter_map(move |owner| {
        let is_one = |pod: &&Node| pod.identity.kind == "Pod" && pod.health.state == State::Failed;
        let failed = owner.children.iter().filter(is_one).filter(|pod| is_recent(pod, facts));
        let last = failed.max_by_key(|pod| ended(pod))?;
        alike(last, facts).filter(|_| cause.is_none_or(|cause| cause.object != last.identity))?;
        let Cause { object, reason, meaning, message, .. } = leaf::own(last, facts);
        let (since, message) = (age(facts.now, ended(last)?), message.trim_end_matches(['.', ' ']));
        Some(format!("{object} {meaning} ({reason} {since} ago): {message}"))
    });
    failed.chain(restarted(facts))
}
