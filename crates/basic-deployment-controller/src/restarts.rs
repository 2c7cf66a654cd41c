//! Restart tokens. A token is the creation time of a restart: pods that were created with it are newer than every
//! restart up to that time. So a token only ever rises, and setting it twice has no further effect.

use std::sync::Arc;

use jiff::Timestamp;

use crate::{
    child::Child,
    child_kind::ChildKind,
    command::{Command, Order},
    observed::Observed,
};

/// The message about a restart whose token is gone.
pub const TOKEN_REPLACED: &str = "the restart token of the child was changed to another value";

/// Whether all pods that were created with a token are newer than a restart.
pub fn covers(token: &str, restart: &Command, observed: &Observed) -> bool {
    // Tokens come from the server's clock, which may be ahead of this one.
    let seen = observed.commands.iter().flatten().map(|command| command.created);
    let latest = seen.fold(observed.now, Timestamp::max);
    // A future time proves nothing: somebody wrote it, and older replicas may have it.
    let is_later = |at: Timestamp| at >= restart.created && at <= latest;
    token == restart.token() || token.parse().is_ok_and(is_later)
}

/// The token that a restart sets; `None` if the child's own token already covers it.
#[must_use]
pub fn token(child: &Child, restart: &Command, observed: &Observed) -> Option<String> {
    let own = child.restarted_at();
    (!own.is_some_and(|own| covers(own, restart, observed))).then(|| restart.token())
}

/// The child that has no token any more that covers a restart which had begun.
#[must_use]
pub fn lost<'o>(restart: &Command, observed: &'o Observed) -> Option<&'o Arc<Child>> {
    unmarked(restart, observed).filter(|child| token(child, restart, observed).is_some())
}

/// Whether the child has a token that covers a restart which had begun, and no mark of it: another child had that.
#[must_use]
pub fn is_served_by_successor(restart: &Command, observed: &Observed) -> bool {
    let child = unmarked(restart, observed).filter(|child| !child.is_deleting);
    child.is_some_and(|child| token(child, restart, observed).is_none())
}

/// The child, if it is without the mark of a restart which had begun.
fn unmarked<'o>(restart: &Command, observed: &'o Observed) -> Option<&'o Arc<Child>> {
    let has_begun = !restart.is_rollback() && restart.status.start_time.is_some();
    let child = observed.child.ours().filter(|_| has_begun)?;
    (child.kind.fields().restarted_at.is_some() && !child.bears(&restart.uid)).then_some(child)
}

/// The token of a new child, all of whose replicas will be newer than every requested restart.
#[must_use]
pub fn token_of_new(kind: &ChildKind, observed: &Observed) -> Option<String> {
    kind.fields().restarted_at.as_ref()?;
    let served = restarts(observed).filter(|restart| !restart.has_failed());
    served.max_by_key(|restart| restart.created).map(|restart| restart.token())
}

/// The number of other restarts with the same token.
#[must_use]
pub fn others_of_the_same_second(restart: &Command, observed: &Observed) -> usize {
    let is_another = |other: &&Arc<Command>| {
        other.uid != restart.uid && other.created == restart.created && !other.has_failed()
    };
    restarts(observed).filter(is_another).count()
}

fn restarts(observed: &Observed) -> impl Iterator<Item = &Arc<Command>> {
    let is_restart =
        |command: &&Arc<Command>| command.asks.as_ref().is_ok_and(|asks| asks.order == Order::Restart);
    let commands = observed.commands.iter().flatten().filter(is_restart);
    commands.filter(|restart| restart.deletion.is_none() && restart.is_directed_at(&observed.deployment))
}
