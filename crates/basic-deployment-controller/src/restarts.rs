//! Restart tokens. A token is the creation time of a restart: pods that were created with it are newer than every
//! restart up to that time. So a token only ever rises, and setting it twice has no further effect.

use catena_api::reason::{CHILD_HAS_NO_RESTART, SUPERSEDED, TOKEN_IN_FUTURE};
use jiff::Timestamp;

use crate::{
    child_kind::ChildKind,
    command::{Command, Impossible},
    observed::Observed,
};

/// The token that a restart sets; `None` if that of another restart is as new. Nobody knows which replicas are newer than a
/// later token that no command has set, so that such a restart fails instead of succeeding without an effect.
///
/// # Errors
/// When the restart would change no token.
pub fn token(restart: &Command, observed: &Observed) -> Result<Option<String>, Impossible> {
    // A child that has kept its token loses it only to a later one, or if it is of no use.
    let kept = || on_child(observed).filter(|at| *at <= observed.now);
    let Some(at) = present(observed).or_else(kept).filter(|at| *at >= restart.created) else {
        return Ok(Some(restart.token()));
    };
    if is_set_by_command(at, observed) {
        return Ok(None);
    }
    let (reason, remedy) = if at > observed.now {
        (TOKEN_IN_FUTURE, "remove spec.restartedAt of the BasicDeployment, and restart again")
    } else {
        (SUPERSEDED, "restart again")
    };
    let message = format!(
        "the restart token is {at}, which no command has set and which is not before this restart, so that it would restart nothing: {remedy}"
    );
    Err(Impossible { reason, message })
}

/// The restart token of the child, which it keeps where the `BasicDeployment` has lost it.
fn on_child(observed: &Observed) -> Option<Timestamp> {
    observed.child.ours()?.restarted_at()?.parse().ok()
}

/// The restart token of the `BasicDeployment`. Its schema takes only times; some are later than any that this program knows.
fn present(observed: &Observed) -> Option<Timestamp> {
    let token = observed.deployment.spec.restarted_at.as_ref()?;
    Some(token.parse().unwrap_or(Timestamp::MAX))
}

/// The restart token, if its time has not come yet.
#[must_use]
pub fn token_in_future(observed: &Observed) -> Option<Timestamp> {
    // The clock of the server, by which commands are dated, may be ahead of this one.
    present(observed).filter(|at| *at > observed.now && !is_set_by_command(*at, observed))
}

/// Whether all pods that were created under the present token are newer than a restart that was carried out.
#[must_use]
pub fn is_covered(restart: &Command, observed: &Observed) -> bool {
    present(observed).or_else(|| on_child(observed)).is_some_and(|at| at >= restart.created)
}

/// The reason why children of a kind cannot be restarted.
#[must_use]
pub fn unsupported(kind: &ChildKind) -> Impossible {
    let message = format!(
        "the replica contract maps no restartedAt for the kind {}, so that it cannot be restarted; map it in the controller's values if the kind has such a field",
        kind.kind
    );
    Impossible { reason: CHILD_HAS_NO_RESTART, message }
}

fn is_set_by_command(at: Timestamp, observed: &Observed) -> bool {
    observed.recent.iter().any(|command| command.created.0 == at)
}
