//! The answer as text.

use catena_cluster::{Identity, State, replicas};
use catena_terminal::{Cell, Table, Tone, age, sanitized};
use jiff::Timestamp;

use super::{Answer, Cause, TERMINATING, contest, objects};
use crate::Node;

/// So many objects or Events of one sort are named: more would hide the rest.
pub const MAX_NAMED: usize = 3;

/// The sentence for an object without a finding.
pub fn well(node: &Node) -> String {
    match node.health.state {
        State::Done => format!("{} has succeeded.", node.identity),
        State::Present => format!("{} exists; its kind does not report whether it is ready.", node.identity),
        _ => format!("{} is ready{}.", node.identity, serving(node)),
    }
}

/// The end of a sentence, with the numbers that an object reports.
fn serving(node: &Node) -> String {
    match replicas(&node.object) {
        Some((Some(serving), wanted)) => format!(": {serving}/{wanted} serve"),
        _ => String::new(),
    }
}

/// The sentence for an object without a finding that cannot be called well for this reason.
pub fn doubtful(node: &Node, why: &str) -> String {
    let says = match node.health.state {
        State::Ready => format!("reports that it is ready{}", serving(node)),
        _ => "exists".to_owned(),
    };
    format!("{} {says}, but {why}: whether it is well is unknown.", node.identity)
}

/// The sentence for an object without a finding, whose last reports nobody keeps up to date.
pub fn outdated(node: &Node) -> String {
    format!("{} had no problem when it was last reported: whether it is well now is unknown.", node.identity)
}

/// The root cause in one sentence.
pub fn sentence(asked: &Node, cause: &Cause, now: Timestamp) -> String {
    let for_how_long = cause.since.map_or_else(String::new, |since| format!(" for {}", age(now, since)));
    let details = format!("{}{for_how_long}", cause.reason);
    if cause.object.uid == asked.identity.uid {
        return format!("{} {} ({details}).", asked.identity, cause.meaning);
    }
    let verb = match asked.health.state {
        State::Terminating => "is not gone",
        _ if cause.reason == contest::REASON => "does not come to rest",
        state if cause.reason == TERMINATING && state != State::Moving && !objects::is_command(asked) => {
            "will be deleted"
        }
        State::Failed if objects::is_command(asked) => "did not finish in time",
        _ if objects::is_command(asked) => "is not finished",
        _ => "is not ready",
    };
    let object = name_beside(&cause.object, &asked.identity);
    format!("{} {verb}: {object} {} ({details}).", asked.identity, cause.meaning)
}

/// An advice with the names of its object, so that its commands can be copied.
pub fn with_names(advice: &str, object: &Identity) -> String {
    let namespace =
        object.namespace.as_ref().map_or_else(String::new, |namespace| format!(" -n {namespace}"));
    let group = object.group();
    let dot = if group.is_empty() { "" } else { "." };
    let whole = format!("{}{dot}{group}/{}", object.kind.to_lowercase(), object.name);
    let advice = advice.replace("{node}", "node/NODE");
    advice.replace("{namespace}", &namespace).replace("{object}", &whole).replace("{name}", &object.name)
}

/// The name of an object, with its namespace if that is not the one of the asked object.
pub fn name_beside(object: &Identity, asked: &Identity) -> String {
    let here = asked.namespace.as_ref().or((asked.kind == "Namespace").then_some(&asked.name));
    match &object.namespace {
        Some(there) if here != Some(there) => format!("{object} in namespace {there}"),
        _ => object.to_string(),
    }
}

/// The whole answer.
#[must_use]
pub fn text(answer: &Answer, now: Timestamp) -> String {
    let mut paragraphs = vec![Tone::Strong.paint(&sanitized(&answer.sentence))];
    if let Some(cause) = &answer.root_cause {
        let message = sanitized(&cause.message);
        paragraphs.push(message.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n"));
        paragraphs.push(evidence(answer, now).trim_end().to_owned());
        if !cause.advice.is_empty() {
            paragraphs.push(format!("What to do: {}.", sanitized(&cause.advice)));
        }
    }
    paragraphs.extend(answer.remarks.iter().map(|remark| format!("Note: {}.", sanitized(remark))));
    let unseen = answer.not_seen.iter().map(|gap| format!("not read: {gap}"));
    paragraphs.push(Tone::Quiet.paint(&unseen.collect::<Vec<_>>().join("\n")));
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs.join("\n\n") + "\n"
}

fn evidence(answer: &Answer, now: Timestamp) -> String {
    let mut table = Table::of(["EVIDENCE", "STATE", "FOR", "SAYS"]);
    let cause = answer.root_cause.as_ref();
    for evidence in &answer.evidence {
        let health = &evidence.health;
        let state =
            if health.reason.is_empty() { format!("{:?}", health.state) } else { health.reason.clone() };
        let since = health.since.map(|since| age(now, since)).unwrap_or_default();
        let says = unprinted(&health.message, cause.map_or("", |cause| &cause.message));
        table.push([
            name_beside(&evidence.object, &answer.object).into(),
            Cell::toned(health.state.tone(), state),
            since.into(),
            says.into(),
        ]);
    }
    table.render()
}

/// The part of a message that is not printed above it.
fn unprinted<'m>(message: &'m str, said: &str) -> &'m str {
    let line = message.lines().next().unwrap_or_default();
    match message.find(said).filter(|_| !said.is_empty()) {
        Some(at) => line.get(..at).unwrap_or(line).trim_end_matches([':', ' ']),
        None if said.contains(line) => "",
        None => line,
    }
}
