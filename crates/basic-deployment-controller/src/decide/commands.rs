//! Whose turn it is: one command at a time, the oldest first.

use std::{sync::Arc, time::Duration};

use super::{Action, history};
use crate::{
    child::Child,
    command::{Command, Order},
    command_status::{self, is_progress},
    error::Refusal,
    observe::{Found, Observed, Prepared},
};

/// How often the status of a command is rewritten for its progress alone.
const PROGRESS: Duration = Duration::from_secs(5);

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
    if !is_directed(command, observed) {
        return Standing::Misdirected;
    }
    if is_expired(command, observed) {
        return Standing::Expired;
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
            Some(Action::Restart { child, command: command.clone() })
        }
        Some((desired, Found::Ours(child))) => {
            Some(Action::Apply { child: child.clone(), desired: desired.clone(), heals: false })
        }
        Some((desired, _)) => Some(Action::Create(desired.clone())),
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
    let open = observed.commands.iter().flatten().filter(|command| is_open(command, observed));
    let deadlines = open.clone().filter_map(|command| left(command, observed));
    let progress = open
        .filter(|command| command_status::news(command, observed).is_some())
        .filter_map(|_| progress_in(observed));
    deadlines.chain(progress).filter(|left| !left.is_zero()).min()
}

/// Whether a command is for this `BasicDeployment`, and has not ended.
pub fn is_open(command: &Command, observed: &Observed) -> bool {
    !command.has_ended()
        && !command.is_deleting
        && !observed.unheard.contains(&command.uid)
        && is_directed(command, observed)
}

/// Whether a command was carried out: the child bears its uid, or what is to become the child does.
pub fn is_carried_out(command: &Command, observed: &Observed) -> bool {
    carrier(command, observed).is_some()
        || observed.pin.as_ref().is_some_and(|pin| pin.rejects.command.as_ref() == Some(&command.uid))
}

/// The child that a command was carried out on.
pub fn carrier<'o>(command: &Command, observed: &'o Observed) -> Option<&'o Arc<Child>> {
    observed.child.ours().into_iter().chain(&observed.others).find(|child| child.bears(&command.uid))
}

/// The oldest command that waits, unless another one is being carried out.
fn turn(observed: &Observed) -> Option<&Arc<Command>> {
    let open = || observed.commands.iter().flatten().filter(|command| is_open(command, observed));
    if open().any(|command| is_carried_out(command, observed)) {
        return None;
    }
    open().find(|command| !is_expired(command, observed))
}

fn is_directed(command: &Command, observed: &Observed) -> bool {
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
    let age = Duration::try_from(observed.now.duration_since(command.created)).unwrap_or_default();
    Some(deadline.saturating_sub(age))
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
