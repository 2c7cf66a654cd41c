//! Restart tokens. A token is the time at which a restart was asked for: what was made under it is newer than every
//! restart up to that time. So a token only ever rises, and setting it twice is setting it once.

use std::sync::Arc;

use jiff::Timestamp;

use crate::{
    child::Child,
    command::{Command, Order},
    observed::Observed,
};

/// Whether everything that was made under a token is newer than a restart.
pub fn covers(token: &str, restart: &Command, observed: &Observed) -> bool {
    // Tokens are of the server's clock, which may be ahead of this one.
    let seen = observed.commands.iter().flatten().map(|command| command.created);
    let latest = seen.fold(observed.now, Timestamp::max);
    // A time that is yet to come proves nothing: somebody wrote it, and older replicas may run under it.
    let is_later = |at: Timestamp| at >= restart.created && at <= latest;
    token == restart.token() || token.parse().is_ok_and(is_later)
}

/// The token that carrying out a restart sets; `None` where the child's own does already.
#[must_use]
pub fn token(child: &Child, restart: &Command, observed: &Observed) -> Option<String> {
    let own = child.restarted_at(&observed.contract);
    (!own.is_some_and(|own| covers(own, restart, observed))).then(|| restart.token())
}

/// The token that a new child is made under: all its replicas will be newer than every restart that was asked for.
#[must_use]
pub fn token_of_new(observed: &Observed) -> Option<String> {
    observed.contract.restarted_at.as_ref()?;
    let served = restarts(observed).filter(|restart| !restart.has_failed());
    served.max_by_key(|restart| restart.created).map(|restart| restart.token())
}

/// How many others ask for the same token.
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
    commands.filter(|restart| !restart.is_deleting && restart.is_directed_at(&observed.deployment))
}
