//! The order of commands: one at a time, the oldest first, but rollbacks before restarts.

use std::sync::Arc;

use catena_api::{deletion::TERMINATING, reason};

use crate::{
    command::{Command, Impossible, Order},
    observed::Observed,
    restarts, rollback,
};

/// The standing of each command of a `BasicDeployment` whose status may still change.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandQueue {
    /// The oldest first.
    standings: Vec<(Arc<Command>, Standing)>,
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
    /// It can never be carried out, or another one has replaced its effect.
    Impossible(Impossible),
    /// Something has to change first: a reason and a message.
    Hindered(&'static str, String),
    /// It is its turn, as far as the caches show.
    Next,
    /// Others come first.
    Queued,
}

impl CommandQueue {
    /// The standing of each command in an observation, without the live read of the next one.
    #[must_use]
    pub fn of(observed: &Observed) -> Self {
        let line = Line::of(observed);
        let turn = line.turn();
        let of_interest = line.commands.iter().filter(|command| observed.may_tell(command));
        let standings = of_interest.map(|command| (command.clone(), line.standing(command, turn)));
        Self { standings: standings.collect() }
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

/// All commands, and the newest rollback among those that were carried out: it ends all that are older.
struct Line<'o> {
    observed: &'o Observed,
    commands: &'o [Arc<Command>],
    rollback: Option<&'o Command>,
}

impl<'o> Line<'o> {
    fn of(observed: &'o Observed) -> Self {
        let commands = observed.commands.as_deref().unwrap_or_default();
        let is_it = |command: &&Command| {
            command.is_rollback()
                && command.is_directed_at(&observed.deployment)
                && observed.is_carried_out(command)
        };
        let rollback = commands.iter().rev().map(AsRef::as_ref).find(is_it);
        Self { observed, commands, rollback }
    }

    /// The command whose turn it is. A rollback does not wait for older commands, because it ends them.
    fn turn(&self) -> Option<&'o Command> {
        let observed = self.observed;
        let may_run = |command: &&Command| {
            observed.is_open(command) && !command.is_expired(observed.now) && self.replaced(command).is_none()
        };
        let open = || self.commands.iter().map(AsRef::as_ref).filter(may_run);
        let newest_running = open().rfind(|command| observed.is_carried_out(command));
        let mut waiting = open().filter(|command| !observed.is_carried_out(command));
        let ends_all =
            |rollback: &&Command| newest_running.is_none_or(|running| running.order() < rollback.order());
        let rollback = waiting.clone().filter(|command| command.is_rollback()).find(ends_all);
        rollback.or_else(|| waiting.next().filter(|_| newest_running.is_none()))
    }

    fn standing(&self, command: &Command, turn: Option<&Command>) -> Standing {
        let observed = self.observed;
        if command.deletion.is_some() {
            return Standing::Leaving;
        }
        let asks = match &command.asks {
            Ok(asks) => asks,
            Err(why) => return Standing::Malformed(why.clone()),
        };
        let is_ours = command.is_directed_at(&observed.deployment);
        // An effect that was replaced is told even after the deadline.
        if let Some(replaced) = self.replaced(command).filter(|_| is_ours) {
            return Standing::Impossible(replaced);
        }
        if command.is_expired(observed.now) {
            return Standing::Expired;
        }
        if !is_ours {
            return Standing::Misdirected;
        }
        if let Some(leaving) = self.leaving_with_its_target(command) {
            return leaving;
        }
        if observed.is_carried_out(command) {
            return Standing::Running;
        }
        // Nothing is concluded from children and revisions that are not seen.
        if let Some(failure) = observed.held_up().filter(|_| observed.is_blind) {
            return Standing::Hindered(failure.reason, failure.message.clone());
        }
        if turn.is_none_or(|turn| turn.uid != command.uid) {
            return Standing::Queued;
        }
        if observed.deployment.spec.paused {
            let message = "the BasicDeployment is paused, so that no command changes its child; set its spec.paused to false";
            return Standing::Hindered(reason::PAUSED, message.to_owned());
        }
        if let Some(refusal) = &observed.unlisted {
            return Standing::Hindered(refusal.reason(), refusal.to_string());
        }
        let no_child =
            || Standing::Hindered(reason::NO_CHILD, "the BasicDeployment has no child yet".to_owned());
        let child = observed.child.ours().filter(|child| !child.is_deleting);
        let obstacle = match asks.order {
            Order::Restart => match child {
                None => return no_child(),
                Some(child) if child.kind.fields().restarted_at.is_none() => {
                    Some(restarts::unsupported(&child.kind))
                }
                Some(_) => restarts::token(command, observed).err(),
            },
            // It can return to a former child before the wanted one exists.
            Order::Rollback(_) if child.or(observed.former_children().next()).is_none() => return no_child(),
            Order::Rollback(to) => rollback::target(to, observed).err(),
        };
        obstacle.map_or(Standing::Next, Standing::Impossible)
    }

    /// The reason why a command has no effect of its own any more, or never will.
    fn replaced(&self, command: &Command) -> Option<Impossible> {
        let superseded = |message: String| Some(Impossible { reason: reason::SUPERSEDED, message });
        if let Some(rollback) = self.rollback.filter(|rollback| rollback.order() > command.order()) {
            let name = &rollback.name;
            return superseded(format!("it had not ended, and the rollback {name:?} replaces its replicas"));
        }
        let is_carried_out = self.observed.is_carried_out(command);
        if !is_carried_out && self.observed.recent.may_have_forgotten(&command.recent()) {
            let message = "so many newer commands have been carried out that nobody knows whether it was one of those before them";
            return superseded(message.to_owned());
        }
        if !is_carried_out {
            return None;
        }
        let (is_gone, message) = if command.is_rollback() {
            (self.observed.pin.is_none(), "the spec or the template has changed to another rendering")
        } else {
            let is_known = !self.observed.is_blind;
            let is_gone = is_known && !restarts::is_covered(command, self.observed);
            (is_gone, "the restart token was changed to another value, or removed")
        };
        superseded(message.to_owned()).filter(|_| is_gone)
    }

    /// The standing of a command whose target is being deleted, unless it is carried out on a child that stays for now.
    fn leaving_with_its_target(&self, command: &Command) -> Option<Standing> {
        self.observed.deployment.metadata.deletion_timestamp.as_ref()?;
        let stays = self.observed.child.ours().is_some_and(|child| !child.is_deleting);
        let what = match self.observed.is_carried_out(command) {
            true if stays => return None,
            true => "it was carried out, and nobody waits for its outcome",
            false => "it is not carried out",
        };
        Some(Standing::Hindered(TERMINATING, format!("the BasicDeployment is being deleted: {what}")))
    }
}
