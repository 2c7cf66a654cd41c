//! An object whose controller has not reported on it.

use catena_api::keys;
use jiff::{SignedDuration, Timestamp};

use super::{
    advice::describe,
    answer::{Cause, Finding},
    controllers::Verdict,
    facts::Facts,
    warnings,
};
use crate::{
    chain::{Node, State},
    object::Identity,
};

/// That no controller runs.
pub const NOT_RUNNING: &str = "ControllerNotRunning";

/// How long a controller may take to speak for the first time before it is told.
const PATIENCE: SignedDuration = SignedDuration::from_secs(5);

/// Who acts on objects of a kind, if it is one of ours.
pub fn controller_of(identity: &Identity) -> Option<&'static str> {
    if identity.group() != keys::GROUP {
        return None;
    }
    match identity.kind.as_str() {
        "BasicReplicaSet" => Some("basic-replicaset-controller"),
        kind if kind.starts_with("BasicDeployment") => Some("basic-deployment-controller"),
        _ => None,
    }
}

/// Nobody has spoken about the object as it is now.
pub fn check<'n>(node: &'n Node, facts: &Facts<'n>) -> Option<Finding<'n>> {
    if node.health.state != State::Unreported {
        return None;
    }
    let since = node.health.since.or(node.created);
    let Some(controller) = controller_of(&node.identity) else {
        let meaning = "has a status that is not about its spec as it is now".to_owned();
        let cause = silence(node, meaning, since, facts)
            .with_advice("see whether the controller of this kind runs, and what it logs");
        return Some(Finding::at(node, cause));
    };
    let cause = match facts.around.controllers.verdict(controller, facts.now) {
        Verdict::Down(why) => not_running(&node.identity, controller, &why),
        Verdict::Runs => {
            let meaning = if since.is_some_and(|since| facts.now.duration_since(since) < PATIENCE) {
                format!("has just been changed, and {controller} will look at it in a moment")
            } else {
                format!("has not been looked at by {controller}, which runs")
            };
            silence(node, meaning, since, facts)
                .with_advice(&format!("see what {controller} logs, and its /readyz"))
        }
        Verdict::Unknown(why) => {
            let meaning =
                format!("has not been looked at by {controller}; whether that runs cannot be seen ({why})");
            silence(node, meaning, since, facts)
                .with_advice(&format!("ask the platform team whether {controller} runs"))
        }
    };
    Some(Finding::at(node, cause))
}

/// That the controller which would have to act does not run. Since when is not known: the object may have waited for
/// something else before.
pub fn not_running(object: &Identity, controller: &str, why: &str) -> Cause {
    let (_, advice) = describe(NOT_RUNNING);
    Cause {
        object: object.clone(),
        reason: NOT_RUNNING.to_owned(),
        meaning: format!("is not looked at, because no {controller} runs: {why}"),
        message: String::new(),
        since: None,
        advice: advice.to_owned(),
    }
}

/// The controller says nothing; others may have warned of what keeps it.
fn silence(node: &Node, meaning: String, since: Option<Timestamp>, facts: &Facts) -> Cause {
    Cause {
        object: node.identity.clone(),
        reason: "NotObserved".to_owned(),
        meaning,
        message: warnings::after(&node.health.message, node, facts),
        since,
        advice: String::new(),
    }
}

/// Controllers of the chain that do not run, while the objects still say what they said before.
pub fn remarks(facts: &Facts) -> Vec<String> {
    let mut names: Vec<&str> = facts.asked.all().filter_map(|node| controller_of(&node.identity)).collect();
    names.sort_unstable();
    names.dedup();
    let down = names.into_iter().filter_map(|name| match facts.around.controllers.verdict(name, facts.now) {
        Verdict::Down(why) => {
            Some(format!("no {name} runs, so that nothing changes and this may be old: {why}"))
        }
        Verdict::Runs | Verdict::Unknown(_) => None,
    });
    down.collect()
}
