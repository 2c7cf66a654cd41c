//! A command that is not finished: not bound, queued, refused, or waiting for its effect.

use catena_api::{
    command::{BOUND, SUCCEEDED},
    keys,
    reason::{DEADLINE_EXCEEDED, PAUSED},
};
use catena_cluster::{Health, State, condition, number, run_record, text};
use catena_terminal::age;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

use super::{
    BINDER, Cause, Facts, REPORT_GRACE, Step, Verdict, Warning, controllers, objects, reasons, text as words,
    unreported, walk, warnings,
};
use crate::{Node, tree};

/// The controller that carries out commands.
pub const RUNNER: &str = "command-runner";
/// The controller that deletes finished commands.
const REAPER: &str = "command-reaper";
/// The condition of an object that a controller is at work on.
const RECONCILING: &str = "Reconciling";

/// What decides about a command.
pub fn step<'n>(node: &'n Node, facts: &Facts<'n>) -> Option<Step<'n>> {
    match node.health.state {
        _ if !objects::is_command(node) => foreign(node, facts).map(Step::own),
        State::Done => None,
        State::Failed => Some(ended(node, facts)),
        _ => Some(waiting(node, facts)),
    }
}

/// The end of a command; of one whose time was over, what held it up until then, as far as that can still be seen.
fn ended<'n>(node: &'n Node, facts: &Facts<'n>) -> Step<'n> {
    let cause = own(node, "CommandFailed");
    if cause.reason != DEADLINE_EXCEEDED {
        return Step::own(cause);
    }
    let because = |why: Cause| Cause {
        meaning: format!("{}: it {}", cause.meaning, why.meaning),
        message: format!("{}\n{}", cause.message, why.message).trim().to_owned(),
        advice: format!("{}; then issue the command again", why.advice),
        ..cause.clone()
    };
    let Some(target) = objects::above(node, facts) else {
        let was_bound = condition(&node.object, BOUND).is_some_and(|bound| bound.status == "True");
        return Step::own(if was_bound { cause } else { because(unbound(node, facts)) });
    };
    let is_of_then = |since: Option<Timestamp>| since.is_some() && since <= node.health.since;
    let waited = |case: &str, names: &[_]| because(Cause::with(&node.identity, "").in_case(case, names));
    let has_run = text(&node.object, "/status/startTime").is_some()
        || run_record(&node.object).is_some_and(|record| record["startTime"].is_string());
    let (way, own) = match older(node, target) {
        Some(first) if !has_run => {
            let older = words::with_names("{object}", &first.identity);
            let names = [("{command}", &*first.identity.to_string()), ("{older}", &*older)];
            (first, waited("older command before", &names))
        }
        None if !has_run && objects::is_paused(target) && is_of_then(target.health.since) => {
            return Step::own(waited("paused target", &[]));
        }
        _ => (target, cause.clone()),
    };
    let held = walk::explain(way, facts).filter(|held| is_of_then(held.cause.since));
    Step { only_obstacles: true, ..Step::to(held.map(|_| way), Some(own)) }
}

/// The object that a command is for, as an argument of kubectl; of any other object, itself.
pub fn target_name(node: &Node, facts: &Facts) -> String {
    let bound = objects::above(node, facts).filter(|_| objects::is_command(node));
    let target = bound.map(|target| target.identity.clone()).or_else(|| tree::target(&node.object));
    words::with_names("{object}", target.as_ref().unwrap_or(&node.identity))
}

/// The cause of a command of a kind that has no room for the binder's condition: the binder does not run, or its Event names
/// the obstacle.
fn foreign(node: &Node, facts: &Facts) -> Option<Cause> {
    let is_overlooked = node.identity.uid == facts.asked.identity.uid && doubt(facts) == Some(UNBOUND);
    let down = is_overlooked.then(|| facts.not_running(&node.identity, BINDER)).flatten();
    down.or_else(|| {
        let warning = warnings::current(node, facts).find(|warning| warning.by == BINDER)?;
        let refused = Cause::refused(&node.identity, &warning.reason, &warning.message);
        let cause = refused.unwrap_or_else(|| not_bound(node, &warning.reason));
        Some(cause.message(&warning.message).since(warning.since))
    })
}

/// The doubt about an object that may be a command, and about which no warning of command-binder is left.
const UNBOUND: &str = "may be a command that is not bound";

/// The doubt about the asked object if its kind is declared as one of commands, and nobody reports on it.
pub fn doubt(facts: &Facts) -> Option<&'static str> {
    let (node, object) = (facts.asked, &facts.asked.object);
    let is_open = !objects::is_command(node) && node.deleted.is_none() && !objects::has_ended(node);
    if !facts.surroundings.is_declared_command || !is_open || unreported::is_new(node.created, facts) {
        return None;
    }
    let is_marked =
        object.annotations().contains_key(keys::BOUND_TO) || object.labels().contains_key(keys::TARGET_UID);
    if object.owner_references().is_empty() && !is_marked {
        return Some(UNBOUND);
    }
    (node.health.state == State::Present).then_some("is a command, and nobody reports that it is carried out")
}

/// What to look at if the asked object is a command that is not bound.
pub fn overlooked(facts: &Facts) -> Option<String> {
    let advice = &reasons::describe("BinderSilent").filter(|_| doubt(facts) == Some(UNBOUND))?.remedy;
    Some(format!(
        "if it is a command, it is not bound, and no warning of {BINDER} tells why: {advice}; with mode: Observe, an Event WouldBind tells that it is only observed"
    ))
}

/// A finished command that is still there although its TTL is over.
pub fn outlived(facts: &Facts) -> Option<String> {
    let node = Some(facts.asked).filter(|node| objects::is_command(node) && node.deleted.is_none())?;
    let ttl = number(&node.object, "/spec/ttlSecondsAfterFinished")?;
    let finished: Timestamp = text(&node.object, "/status/completionTime")?.parse().ok()?;
    let over = finished.checked_add(SignedDuration::from_secs(ttl)).ok();
    let over = over.filter(|over| facts.now.duration_since(*over) >= REPORT_GRACE)?;
    let warning = warnings::current(node, facts).find(|warning| warning.by == REAPER);
    let why = match (facts.verdict(REAPER), warning) {
        (Verdict::Down(down), _) => down,
        (_, Some(Warning { reason, message, .. })) => format!("{REAPER} warns of {reason}: {message}"),
        (Verdict::Unknown(why), None) => format!("whether {REAPER} is running is unknown ({why})"),
        (Verdict::Runs, None) => format!(
            "{REAPER} keeps it, as a command that a tool declares or that was created again (its labels, annotations and Events tell), or its values have no entry for the kind"
        ),
    };
    Some(format!("its TTL has been over for {}: {why}", age(facts.now, over)))
}

fn not_bound(node: &Node, reason: &str) -> Cause {
    let row = reasons::describe_binding(reason).or_else(|| reasons::describe("NotBound"));
    Cause::described(&node.identity, reason, row)
}

/// The obstacle of a command that has not ended.
fn waiting<'n>(node: &'n Node, facts: &Facts<'n>) -> Step<'n> {
    let find = |type_: &str| condition(&node.object, type_);
    let Some(target) = objects::above(node, facts) else { return Step::own(unbound(node, facts)) };
    // A command with another reason does not wait for its turn.
    let may_be_queued =
        find(SUCCEEDED).is_none_or(|succeeded| matches!(&*succeeded.reason, "Queued" | "Pending"));
    if let Some(first) = older(node, target).filter(|_| may_be_queued) {
        let queued = Cause::with(&node.identity, "Queued").message(&first.health.message).since(node.created);
        let queued = queued.in_case("older command", &[("{command}", &first.identity.to_string())]);
        // That the first one goes on is no news.
        return Step { only_obstacles: true, ..Step::to([first], Some(queued)) };
    }
    // What is of another group may be carried out by its own operator.
    let runner = (node.identity.group() == keys::GROUP || objects::is_by_runner(node)).then_some(RUNNER);
    let mut responsible = runner.into_iter().chain(controllers::controller_of(&target.identity));
    if let Some(cause) = responsible.find_map(|controller| facts.not_running(&node.identity, controller)) {
        return Step::own(cause);
    }
    // It is in progress: the blocker of its target blocks it.
    let report = find(SUCCEEDED).or_else(|| find(RECONCILING));
    let is_reported = report.is_some() && node.health.state != State::Unreported;
    let is_new = unreported::is_new(node.created, facts);
    let mut current = warnings::current(node, facts);
    let refused = current.find(|warning| warning.by == RUNNER && warning.reason == "StatusRefused");
    let cause = if let Some(refused) = refused {
        let usual = || Cause::with(&node.identity, &refused.reason);
        let cause = Cause::refused(&node.identity, &refused.reason, &refused.message);
        cause.unwrap_or_else(usual).message(&refused.message).since(refused.since)
    } else if is_reported || is_new {
        let own = own(node, "UnderWay");
        if own.reason == PAUSED && (runner.is_some() || objects::is_paused(target)) {
            // Whatever its pods suffer from, the command waits for that.
            return Step::own(own.in_case("paused target", &[]));
        }
        let says_nothing = target.object.data["status"].is_null() && !is_new;
        if says_nothing && own.advice.is_empty() && runner.is_some() {
            let own = own.in_case("silent target", &[("{silent}", &target.identity.to_string())]);
            Cause { is_progress: false, ..own }
        } else {
            own
        }
    } else {
        let runs = runner.is_some_and(|runner| facts.verdict(runner) == Verdict::Runs);
        let variant = if runs { "not reconciled" } else { "" };
        let cause =
            Cause::with(&node.identity, "NotCarriedOut").in_case(variant, &[("{controller}", RUNNER)]);
        cause.message(warnings::after("", node, facts)).since(node.created)
    };
    Step::to([target], Some(cause))
}

fn own(node: &Node, fallback: &str) -> Cause {
    let Node { identity, health, .. } = node;
    let reason = if health.reason.is_empty() { fallback } else { &health.reason };
    let of_runner = || reasons::describe_command(reason).filter(|_| objects::is_by_runner(node));
    let row = reasons::describe_of(identity, reason).or_else(of_runner);
    let said = Some(health.message.clone()).filter(|said| !said.is_empty());
    let done = || Some(format!("{} done", text(&node.object, "/status/progress")?));
    let message = said.or_else(done).unwrap_or_default();
    let mut cause = Cause::described(identity, reason, row.or_else(|| reasons::describe(fallback)));
    if health.state != State::Failed {
        let refused = Cause::refused(identity, reason, &message);
        cause = refused.unwrap_or_else(|| if row.is_none() { cause.advice("") } else { cause });
    }
    cause.message(message).since(health.since.or(node.created))
}

fn unbound(node: &Node, facts: &Facts) -> Cause {
    let bound = condition(&node.object, BOUND).map(|bound| Health::said(State::Moving, &bound));
    let Health { reason, message: said, since, .. } =
        bound.unwrap_or_else(|| Health::new(State::Moving, "", ""));
    let told = |cause: Cause| cause.message(warnings::after(&said, node, facts)).since(since);
    // Whatever stands in the way of a command that is over, its condition has what did then.
    let is_over = objects::has_ended(node) && !reason.is_empty();
    if let Some(target) = &facts.surroundings.missing_target
        && (!is_over || reason == "TargetNotFound")
    {
        let cause = not_bound(node, "TargetNotFound");
        return told(cause.in_case("missing target", &[("{target}", &target.to_string())]));
    }
    if let Some(cause) = facts.not_running(&node.identity, BINDER).filter(|_| !is_over) {
        return cause;
    }
    let runs = facts.verdict(BINDER) == Verdict::Runs;
    let silent = if runs && !unreported::is_new(node.created, facts) { "BinderSilent" } else { "NotBound" };
    match &*reason {
        // It has not been bound for as long as it exists.
        "" => foreign(node, facts).unwrap_or_else(|| told(not_bound(node, silent)).since(node.created)),
        reason => told(not_bound(node, reason)),
    }
}

/// The oldest command before this one that was not finished when this one ended, if it has: they run one at a time.
fn older<'n>(node: &Node, target: &'n Node) -> Option<&'n Node> {
    let order = |node: &Node| (node.created, node.identity.uid.clone());
    let was_open = |other: &Node| {
        let is_later = objects::has_ended(node) && other.health.since > node.health.since;
        objects::is_command(other) && (is_later || !objects::has_ended(other))
    };
    let is_before = |other: &&Node| was_open(other) && !other.unbound && order(other) < order(node);
    target.children.iter().filter(is_before).min_by_key(|other| order(other))
}
