//! The order of commands: one at a time, the oldest first.

use std::{sync::Arc, time::Duration};

use catena_api::{deletion::TERMINATING, reason};

use crate::{
    command::{Command, Order},
    observed::Observed,
    restarts,
    rollback::{self, NoTarget},
    step,
};

/// Time without progress after which a restart is stuck, even if the child reports no blocker.
const STUCK_AFTER: Duration = Duration::from_secs(30);

/// The standing of each command of a `BasicDeployment` whose status may still change.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandQueue {
    /// The oldest first.
    standings: Vec<(Arc<Command>, Standing)>,
    /// The time until running restarts count as stuck, if a rollback waits for them.
    pub stuck_in: Option<Duration>,
}

/// The standing of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is being deleted.
    Leaving,
    /// It cannot be read.
    Malformed(String),
    /// It is bound to this `BasicDeployment`, but names another object.
    Misdirected,
    /// Its deadline has passed.
    Expired,
    /// It was carried out, and its outcome is awaited.
    Running,
    /// It was stuck, and the rollback with this name took its turn.
    Overtaken(String),
    /// It is its turn, but it can never be carried out: a reason and a message.
    Impossible(&'static str, String),
    /// Something has to change first: a reason and a message.
    Hindered(&'static str, String),
    /// It is its turn, as far as the caches show.
    Next,
    /// Others come first.
    Queued,
}

impl CommandQueue {
    /// The standing of each command in an observation, without the live reads for the next one.
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

    /// The commands and their standings, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<Command>, &Standing)> {
        self.standings.iter().map(|(command, standing)| (command, standing))
    }
}

/// All commands, with the facts about each other that their standings depend on.
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
        if command.deletion.is_some() {
            return Standing::Leaving;
        }
        let asks = match &command.asks {
            Ok(asks) => asks,
            Err(why) => return Standing::Malformed(why.clone()),
        };
        let unseen = observed.held_up().filter(|_| observed.is_blind);
        // An effect that was replaced is told even after the deadline, and never concluded from children that are not seen.
        if unseen.is_none()
            && let Some(replaced) = self.replaced(candidate)
        {
            return replaced;
        }
        if command.is_expired(observed.now) {
            return Standing::Expired;
        }
        if !command.is_directed_at(&observed.deployment) {
            return Standing::Misdirected;
        }
        if let Some(failure) = unseen {
            return Standing::Hindered(failure.reason, failure.message.clone());
        }
        if let Some(leaving) = self.leaving_with_its_target(candidate) {
            return leaving;
        }
        if candidate.is_carried_out {
            return Standing::Running;
        }
        if turn.is_none_or(|turn| turn.uid != command.uid) {
            return Standing::Queued;
        }
        let is_kept_from_children =
            observed.deployment.spec.paused || observed.attempt.holds(step::CARRY_OUT);
        // The child that was marked with it is gone, and its successor cannot be marked now.
        if is_kept_from_children && restarts::is_served_by_successor(command, observed) {
            return Standing::Running;
        }
        // One whose effect somebody took back is judged also in a pause.
        if observed.deployment.spec.paused && restarts::lost(command, observed).is_none() {
            let message = "the BasicDeployment is paused, so that no command changes its child; set its spec.paused to false";
            return Standing::Hindered(reason::PAUSED, message.to_owned());
        }
        if let Some(refusal) = &observed.unlisted {
            return Standing::Hindered(refusal.reason(), refusal.to_string());
        }
        let no_child =
            || Standing::Hindered(reason::NO_CHILD, "the BasicDeployment has no child yet".to_owned());
        let child = observed.child.ours().filter(|child| !child.is_deleting);
        match asks.order {
            Order::Restart => match child {
                None => no_child(),
                Some(child) if child.kind.fields().restarted_at.is_some() => Standing::Next,
                Some(child) => Standing::Impossible(
                    reason::CHILD_HAS_NO_RESTART,
                    format!(
                        "the replica contract maps no restartedAt for the kind {}, so that it cannot be restarted; map it in the controller's values if the kind has such a field",
                        child.kind.kind
                    ),
                ),
            },
            // It can return to a former child before the wanted one exists.
            Order::Rollback(_) if child.or(observed.former_children().next()).is_none() => no_child(),
            Order::Rollback(to) => match rollback::target(to, observed) {
                Ok(_) => Standing::Next,
                Err(NoTarget { reason, message }) => Standing::Impossible(reason, message),
            },
        }
    }

    /// The standing of a command that had begun, if another one has replaced its effect.
    fn replaced(&self, candidate: &Candidate<'_>) -> Option<Standing> {
        let command = candidate.command;
        if !command.is_directed_at(&self.observed.deployment) {
            return None;
        }
        if let Some(rollback) = self.overtaken_by(command) {
            return Some(Standing::Overtaken(rollback.name.clone()));
        }
        // It is recorded before its begin is told, so that only a later command can have taken its place.
        let has_begun = command.is_rollback() && command.status.start_time.is_some();
        (has_begun && !candidate.is_carried_out).then(|| {
            let message = "it was carried out, and another command has replaced its effect";
            Standing::Impossible(reason::SUPERSEDED, message.to_owned())
        })
    }

    /// The standing of a command whose target is being deleted, unless it is carried out on a child that stays for now.
    fn leaving_with_its_target(&self, candidate: &Candidate<'_>) -> Option<Standing> {
        self.observed.deployment.metadata.deletion_timestamp.as_ref()?;
        let stays = self.observed.child.ours().is_some_and(|child| !child.is_deleting);
        let what = match (candidate.is_carried_out, candidate.command.status.start_time.is_some()) {
            (true, _) if stays => return None,
            (true, _) | (_, true) => "it was carried out, and nobody waits for its outcome",
            _ => "it is not carried out",
        };
        Some(Standing::Hindered(TERMINATING, format!("the BasicDeployment is being deleted: {what}")))
    }

    /// The oldest waiting command, unless another one is being carried out. A rollback does not wait for stuck commands,
    /// because it is the way to repair their replicas, nor for restarts of a child that breaks the contract.
    fn turn(&self, stuck_in: Option<Duration>) -> Option<&'o Command> {
        if self.running().next().is_none() {
            let child = self.observed.child.ours();
            let is_broken = child.is_some_and(|child| self.observed.breach_of(child).is_some());
            let way_out = self.waiting_rollback().filter(|_| is_broken);
            return way_out.or_else(|| self.first(self.open()));
        }
        self.waiting_rollback().filter(|_| stuck_in.is_some_and(|left| left.is_zero()))
    }

    fn open(&self) -> impl Iterator<Item = &Candidate<'o>> {
        self.commands.iter().filter(|candidate| candidate.is_open)
    }

    fn running(&self) -> impl Iterator<Item = &Candidate<'o>> {
        self.open().filter(|candidate| candidate.is_carried_out)
    }

    /// The first one whose deadline has not passed.
    fn first<'l>(&self, mut of: impl Iterator<Item = &'l Candidate<'o>>) -> Option<&'o Command>
    where
        'o: 'l,
    {
        let first = of.find(|candidate| !candidate.command.is_expired(self.observed.now))?;
        Some(first.command)
    }

    /// The oldest rollback that waits.
    fn waiting_rollback(&self) -> Option<&'o Command> {
        let waiting = self.open().filter(|candidate| !candidate.is_carried_out);
        self.first(waiting.filter(|candidate| candidate.command.is_rollback()))
    }

    /// The time until running commands count as stuck, if a rollback waits for them.
    fn stuck_in(&self) -> Option<Duration> {
        let observed = self.observed;
        let child = observed.child.ours().filter(|child| !observed.serves_alone(child))?;
        let mut running = self.running().peekable();
        running.peek()?;
        // A command can only end after its status has reported its begin.
        if running.any(|begun| begun.command.status.start_time.is_none()) {
            return None;
        }
        self.waiting_rollback()?;
        let blocks = child.outputs.blocked_by.is_some() || child.outputs.stalled.is_some();
        let says_so = (child.is_current() && blocks) || observed.breach_of(child).is_some();
        Some(if says_so { Duration::ZERO } else { STUCK_AFTER.saturating_sub(observed.since_progress) })
    }

    /// The rollback that took the turn of a begun command.
    fn overtaken_by(&self, command: &Command) -> Option<&'o Command> {
        // Within one second, uids do not show which one took the turn of the other.
        let child = self.observed.child.ours();
        let is_last = |other: &Command| child.is_some_and(|child| child.bears(&other.uid));
        if command.status.start_time.is_none() || is_last(command) {
            return None;
        }
        let is_later = |other: &Command| {
            other.created > command.created || (other.created == command.created && is_last(other))
        };
        // A rollback only ends commands that had begun before it, whichever was created first.
        let began_later = |rollback: &Command| {
            let began = rollback.status.start_time.as_ref();
            began.is_none_or(|began| Some(began) >= command.status.start_time.as_ref())
        };
        let carried_out = self.commands.iter().filter(|candidate| candidate.is_carried_out);
        let mut rollbacks = carried_out.map(|candidate| &**candidate.command).filter(|one| one.is_rollback());
        rollbacks.find(|rollback| rollback.uid != command.uid && is_later(rollback) && began_later(rollback))
    }
}
