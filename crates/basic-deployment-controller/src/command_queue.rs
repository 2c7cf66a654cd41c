//! Whose turn it is: one command at a time, the oldest first.

use std::{sync::Arc, time::Duration};

use operator_kit::report::conditions::STALLED;

use crate::{
    command::{Command, Order},
    observed::{Found, Observed},
    rollback,
};

/// A restart of which nothing has moved for this long is stuck, also where the child does not say what blocks it.
const STUCK_AFTER: Duration = Duration::from_secs(30);

/// Where the commands of a `BasicDeployment` stand whose status may still change.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandQueue {
    /// The oldest first.
    standings: Vec<(Arc<Command>, Standing)>,
    /// When restarts that run count as stuck, if a rollback waits for them.
    pub stuck_in: Option<Duration>,
}

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
    /// It is its turn, as far as can be told without a live look.
    Next,
    /// Others come first.
    Queued,
}

impl CommandQueue {
    /// Where each command stands by what was observed, live looks for the next one aside.
    #[must_use]
    pub fn of(observed: &Observed) -> Self {
        let line = Line::of(observed);
        let stuck_in = line.stuck_in();
        let turn = line.turn(stuck_in);
        let of_interest = line.commands.iter().filter(|candidate| observed.may_tell(candidate.command));
        let standings =
            of_interest.map(|candidate| (candidate.command.clone(), line.standing(candidate, turn)));
        Self { standings: standings.collect(), stuck_in }
    }

    /// The command that could be carried out now.
    #[must_use]
    pub fn next(&self) -> Option<&Arc<Command>> {
        self.iter().find(|(_, standing)| **standing == Standing::Next).map(|(command, _)| command)
    }

    /// The commands and where they stand, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<Command>, &Standing)> {
        self.standings.iter().map(|(command, standing)| (command, standing))
    }
}

/// All commands, with what the standing of one may ask of each other.
struct Line<'o> {
    observed: &'o Observed,
    commands: Vec<Candidate<'o>>,
}

struct Candidate<'o> {
    command: &'o Arc<Command>,
    is_open: bool,
    is_carried_out: bool,
}

impl<'o> Line<'o> {
    fn of(observed: &'o Observed) -> Self {
        let commands = observed.commands.iter().flatten().map(|command| Candidate {
            command,
            is_open: observed.is_open(command),
            is_carried_out: observed.is_carried_out(command),
        });
        Self { observed, commands: commands.collect() }
    }

    fn standing(&self, candidate: &Candidate<'_>, turn: Option<&Command>) -> Standing {
        let (command, observed) = (candidate.command, self.observed);
        let asks = match &command.asks {
            Ok(asks) => asks,
            Err(why) => return Standing::Malformed(why.clone()),
        };
        if command.is_expired(observed.now) {
            return Standing::Expired;
        }
        if !command.is_directed_at(&observed.deployment) {
            return Standing::Misdirected;
        }
        if let Some(rollback) = self.overtaken_by(command) {
            return Standing::Overtaken(rollback.name.clone());
        }
        if candidate.is_carried_out {
            return Standing::Running;
        }
        if turn.is_none_or(|turn| turn.uid != command.uid) {
            return Standing::Queued;
        }
        if observed.deployment.spec.paused {
            return Standing::Hindered(
                "Paused",
                "the BasicDeployment is paused, so that its child is not changed; set its spec.paused to false",
            );
        }
        if !matches!(&observed.child, Found::Ours(child) if !child.is_deleting) {
            return Standing::Hindered("NoChild", "the BasicDeployment has no child yet");
        }
        match asks.order {
            Order::Restart if observed.contract.restarted_at.is_none() => Standing::Impossible(
                "ChildHasNoRestart",
                format!(
                    "the replica contract maps no restartedAt for the kind {}, so that it cannot be restarted; map it in the controller's values if the kind has such a field",
                    observed.place.resource.kind
                ),
            ),
            Order::Restart => Standing::Next,
            Order::Rollback(to) => match rollback::target(to, observed) {
                Ok(_) => Standing::Next,
                Err(why) => Standing::Impossible("RevisionNotFound", why),
            },
        }
    }

    /// The oldest command that waits, unless another one is being carried out. A rollback does not wait for restarts
    /// that are stuck: it is what gets the replicas going again.
    fn turn(&self, stuck_in: Option<Duration>) -> Option<&'o Command> {
        if self.running().next().is_none() {
            return self.first(self.open());
        }
        self.waiting_rollback().filter(|_| stuck_in.is_some_and(|left| left.is_zero()))
    }

    fn open(&self) -> impl Iterator<Item = &Candidate<'o>> {
        self.commands.iter().filter(|candidate| candidate.is_open)
    }

    fn running(&self) -> impl Iterator<Item = &Candidate<'o>> {
        self.open().filter(|candidate| candidate.is_carried_out)
    }

    /// The first one whose time is not over.
    fn first<'l>(&self, mut of: impl Iterator<Item = &'l Candidate<'o>>) -> Option<&'o Command>
    where
        'o: 'l,
    {
        let first = of.find(|candidate| !candidate.command.is_expired(self.observed.now))?;
        Some(first.command)
    }

    /// The oldest rollback that waits for nothing but restarts.
    fn waiting_rollback(&self) -> Option<&'o Command> {
        let is_any_running = self.running().any(|candidate| candidate.command.is_rollback());
        let rollbacks = self.open().filter(|candidate| candidate.command.is_rollback());
        self.first(rollbacks).filter(|_| !is_any_running)
    }

    /// When restarts that run count as stuck, if a rollback waits for them.
    fn stuck_in(&self) -> Option<Duration> {
        let observed = self.observed;
        let child = observed.child.ours().filter(|child| !observed.serves(child))?;
        let mut running = self.running().peekable();
        running.peek()?;
        // A restart ends by what it was told before: that it has begun.
        if running.any(|restart| restart.command.status.start_time.is_none()) {
            return None;
        }
        self.waiting_rollback()?;
        let says_so = child.blocked_by(&observed.contract).is_some()
            || child.condition(&observed.contract, STALLED).is_some_and(|stalled| stalled.is_true);
        Some(if says_so { Duration::ZERO } else { STUCK_AFTER.saturating_sub(observed.since_progress) })
    }

    /// The rollback that took the turn of a restart which had begun.
    fn overtaken_by(&self, command: &Command) -> Option<&'o Command> {
        // Of two of one second, uids do not say which took the turn of the other.
        let child = self.observed.child.ours();
        let is_last = |other: &Command| child.is_some_and(|child| child.bears(&other.uid));
        if command.is_rollback() || command.status.start_time.is_none() || is_last(command) {
            return None;
        }
        let is_later = |other: &Command| {
            other.created > command.created || (other.created == command.created && is_last(other))
        };
        // A rollback only puts an end to what had begun before it, whichever was created first.
        let began_later = |rollback: &Command| {
            let began = rollback.status.start_time.as_ref();
            began.is_none_or(|began| Some(began) >= command.status.start_time.as_ref())
        };
        let carried_out = self.commands.iter().filter(|candidate| candidate.is_carried_out);
        let mut rollbacks = carried_out.map(|candidate| &**candidate.command).filter(|one| one.is_rollback());
        rollbacks.find(|rollback| is_later(rollback) && began_later(rollback))
    }
}
