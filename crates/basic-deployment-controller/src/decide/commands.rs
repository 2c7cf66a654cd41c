//! Whose turn it is: one command at a time, the oldest first.

use std::{sync::Arc, time::Duration};

use operator_kit::report::conditions::STALLED;

use super::{Action, history, restarts};
use crate::{
    child::Child,
    command::{Command, Order},
    command_status::{self, is_progress},
    error::Refusal,
    observe::{Found, Observed, Prepared},
    status::serves,
};

/// How often the status of a command is rewritten for its progress alone.
const PROGRESS: Duration = Duration::from_secs(5);

/// A restart of which nothing has moved for this long is stuck, also where the child does not say what blocks it.
const STUCK: Duration = Duration::from_secs(30);

/// Where a command stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It cannot be read.
    Malformed(String),
    /// It is bound to this `BasicDeployment` and names another object.
    Misdirected,
    /// Its time is over.
    Expired,
    /// It was carried out, and its outcome is awaited.
    Running,
    /// It is a restart that got stuck, and the rollback of this name took its turn.
    Overtaken(String),
    /// It is its turn, and it can never be carried out: a reason and a message.
    Impossible(&'static str, String),
    /// It is its turn, and something has to change first: a reason and a message.
    Hindered(&'static str, &'static str),
    /// It is its turn.
    Next,
    /// Others come first.
    Queued,
}

/// Where a command of this `BasicDeployment` stands.
pub fn standing(command: &Command, observed: &Observed) -> Standing {
    let asks = match &command.asks {
        Ok(asks) => asks,
        Err(why) => return Standing::Malformed(why.clone()),
    };
    if is_expired(command, observed) {
        return Standing::Expired;
    }
    if !is_directed(command, observed) {
        return Standing::Misdirected;
    }
    if let Some(rollback) = overtaken_by(command, observed) {
        return Standing::Overtaken(rollback.name.clone());
    }
    if is_carried_out(command, observed) {
        return Standing::Running;
    }
    if turn(observed).is_none_or(|turn| turn.uid != command.uid) {
        return Standing::Queued;
    }
    if observed.deployment.spec.paused {
        return Standing::Hindered("Paused", "spec.paused of the BasicDeployment keeps the child as it is");
    }
    if !matches!(&observed.child, Found::Ours(child) if !child.is_deleting) {
        return Standing::Hindered("NoChild", "the BasicDeployment has no child yet");
    }
    match asks.order {
        Order::Restart if observed.contract.restarted_at.is_none() => Standing::Impossible(
            "ChildHasNoRestart",
            format!("the kind {} has no restart token", observed.place.resource.kind),
        ),
        Order::Restart => Standing::Next,
        Order::Rollback(to) => match history::target(to, observed) {
            Ok(_) => match &observed.prepared {
                Some(Prepared { target: Some((desired, found)), .. }) => {
                    refusal(desired.name(), found, observed).map_or(Standing::Next, |refusal| {
                        Standing::Impossible("ChildNotOwned", refusal.to_string())
                    })
                }
                _ => Standing::Next,
            },
            Err(why) => Standing::Impossible("RevisionNotFound", why),
        },
    }
}

/// The command that could be carried out now.
pub fn next(observed: &Observed) -> Option<&Arc<Command>> {
    turn(observed).filter(|command| standing(command, observed) == Standing::Next)
}

/// Carries out the next command: the effect, and the proof that it happened, in one write.
pub fn start(observed: &Observed) -> Option<Action> {
    let (command, prepared) = (next(observed)?, observed.prepared.as_ref()?);
    if prepared.command != command.uid {
        return None;
    }
    match &prepared.target {
        None => {
            let child = observed.child.ours()?.clone();
            let token = restarts::token(&child, command, observed);
            Some(Action::Restart { child, command: command.clone(), token })
        }
        Some((desired, Found::Ours(child))) => {
            Some(Action::Apply { child: child.clone(), desired: desired.clone(), heals: false })
        }
        Some((desired, _)) => Some(Action::Create(desired.clone().under(restarts::token_of_new(observed)))),
    }
}

/// Tells each command how far it is, where that is news.
pub fn tell(observed: &Observed) -> Option<Action> {
    let commands = observed.commands.iter().flatten();
    let news: Vec<_> = commands
        .filter_map(|command| {
            let status = command_status::news(command, observed)?;
            let can_wait = is_progress(&command.status, &status) && progress_in(observed).is_some();
            (!can_wait).then(|| (command.clone(), status))
        })
        .collect();
    (!news.is_empty()).then_some(Action::Tell(news))
}

/// When commands are to be looked at again, if nothing happens before.
pub fn due_in(observed: &Observed) -> Option<Duration> {
    let told = observed.commands.iter().flatten().filter(|command| is_told(command, observed));
    let deadlines = told.clone().filter_map(|command| left(command, observed));
    let progress = told
        .filter(|command| command_status::news(command, observed).is_some())
        .filter_map(|_| progress_in(observed));
    let stuck = stuck_in(observed).into_iter();
    deadlines.chain(progress).chain(stuck).filter(|left| !left.is_zero()).min()
}

/// Whether a command is for this `BasicDeployment`, and has not ended.
pub fn is_open(command: &Command, observed: &Observed) -> bool {
    is_told(command, observed) && is_directed(command, observed)
}

/// Whether the status of a command may still change.
fn is_told(command: &Command, observed: &Observed) -> bool {
    !command.has_ended() && !command.is_deleting && !observed.unheard.contains(&command.uid)
}

/// Whether a command was carried out: the child bears its uid, or what is to become the child does, or what it once
/// became.
pub fn is_carried_out(command: &Command, observed: &Observed) -> bool {
    let is_it = |named: Option<&String>| named == Some(&command.uid);
    carrier(command, observed).is_some()
        || observed.pin.as_ref().is_some_and(|pin| is_it(pin.rejects.command.as_ref()))
        || observed.revisions.iter().any(|revision| is_it(revision.rejects.command.as_ref()))
}

/// The child that a command was carried out on.
pub fn carrier<'o>(command: &Command, observed: &'o Observed) -> Option<&'o Arc<Child>> {
    observed.children().find(|child| child.bears(&command.uid))
}

/// The oldest command that waits, unless another one is being carried out. A rollback does not wait for restarts that
/// are stuck: it is what gets the replicas going again.
fn turn(observed: &Observed) -> Option<&Arc<Command>> {
    if !is_any_running(observed) {
        return open(observed).find(|command| !is_expired(command, observed));
    }
    waiting_rollback(observed).filter(|_| stuck_in(observed).is_some_and(|left| left.is_zero()))
}

fn open(observed: &Observed) -> impl Iterator<Item = &Arc<Command>> {
    observed.commands.iter().flatten().filter(|command| is_open(command, observed))
}

fn is_any_running(observed: &Observed) -> bool {
    open(observed).any(|command| is_carried_out(command, observed))
}

/// The oldest rollback that waits for nothing but restarts.
fn waiting_rollback(observed: &Observed) -> Option<&Arc<Command>> {
    let is_rollback = |command: &&Arc<Command>| is_rollback(command);
    if open(observed).filter(is_rollback).any(|rollback| is_carried_out(rollback, observed)) {
        return None;
    }
    open(observed).filter(is_rollback).find(|rollback| !is_expired(rollback, observed))
}

/// When restarts that run count as stuck, if a rollback waits for them.
fn stuck_in(observed: &Observed) -> Option<Duration> {
    let child = observed.child.ours().filter(|child| !serves(child, observed))?;
    let mut running = open(observed).filter(|command| is_carried_out(command, observed)).peekable();
    running.peek()?;
    // A restart ends by what it was told before: that it has begun.
    if running.any(|restart| restart.status.start_time.is_none()) {
        return None;
    }
    waiting_rollback(observed)?;
    let says_so = child.blocked_by(&observed.contract).is_some()
        || child.condition(&observed.contract, STALLED).is_some_and(|stalled| stalled.is_true);
    Some(if says_so { Duration::ZERO } else { STUCK.saturating_sub(observed.since_progress) })
}

/// The rollback that took the turn of a restart which had begun.
fn overtaken_by<'o>(command: &Command, observed: &'o Observed) -> Option<&'o Arc<Command>> {
    // Of two of one second, uids do not say which took the turn of the other.
    let is_last = |other: &Command| observed.child.ours().is_some_and(|child| child.bears(&other.uid));
    if is_rollback(command) || command.status.start_time.is_none() || is_last(command) {
        return None;
    }
    let is_later = |other: &&Arc<Command>| {
        other.created > command.created || (other.created == command.created && is_last(other))
    };
    // A rollback only puts an end to what had begun before it, whichever was created first.
    let began_later = |rollback: &Command| {
        let began = rollback.status.start_time.as_ref();
        began.is_none_or(|began| Some(began) >= command.status.start_time.as_ref())
    };
    let rollbacks = observed.commands.iter().flatten().filter(|other| is_rollback(other));
    let carried_out = rollbacks.filter(|rollback| is_carried_out(rollback, observed));
    carried_out.filter(is_later).find(|rollback| began_later(rollback))
}

fn is_rollback(command: &Command) -> bool {
    command.asks.as_ref().is_ok_and(|asks| matches!(asks.order, Order::Rollback(_)))
}

/// Whether a command names the `BasicDeployment` that it is bound to.
pub fn is_directed(command: &Command, observed: &Observed) -> bool {
    let Ok(asks) = &command.asks else { return false };
    let metadata = &observed.deployment.metadata;
    let namespace = asks.target.namespace.as_ref();
    Some(&asks.target.name) == metadata.name.as_ref()
        && Some(&command.namespace) == metadata.namespace.as_ref()
        && namespace.is_none_or(|namespace| *namespace == command.namespace)
}

fn is_expired(command: &Command, observed: &Observed) -> bool {
    left(command, observed).is_some_and(|left| left.is_zero())
}

/// How much time a command has left, if it has a deadline.
fn left(command: &Command, observed: &Observed) -> Option<Duration> {
    let deadline = command.asks.as_ref().ok()?.deadline?;
    Some(deadline.saturating_sub(command.age(observed.now)))
}

fn progress_in(observed: &Observed) -> Option<Duration> {
    PROGRESS.checked_sub(observed.since_told?).filter(|left| !left.is_zero())
}

fn refusal(name: &str, found: &Found, observed: &Observed) -> Option<Refusal> {
    match found {
        Found::Nothing | Found::Ours(_) => None,
        Found::Orphan(_) | Found::Leaving(_) | Found::Foreign(_) => Some(Refusal::ChildNotOwned {
            kind: observed.place.resource.kind.clone(),
            name: name.to_owned(),
            holder: found.holder(),
        }),
    }
}
