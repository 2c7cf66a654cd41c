//! The target revision of a rollback, and the pin that holds it.

use std::sync::Arc;

use catena_api::{Pin, reason};
use operator_watch::ObjectId;

use crate::{command::Impossible, observed::Observed, revision::Revision};

/// The revision that a rollback requests.
pub fn target(to: i64, observed: &Observed) -> Result<&Arc<Revision>, Impossible> {
    let not_found = |message| Impossible { reason: reason::REVISION_NOT_FOUND, message };
    if to == 0 {
        let wanted = observed.wanted_hash();
        let earlier = observed.revisions.iter().rev().find(|revision| Some(revision.hash.as_str()) != wanted);
        let found = earlier.ok_or_else(|| not_found("there is no previous revision".to_owned()))?;
        return listed(found, observed);
    }
    let Some(found) = observed.revisions.iter().find(|revision| revision.number == to) else {
        let numbers: Vec<_> = observed.revisions.iter().map(|revision| revision.number.to_string()).collect();
        let numbers = if numbers.is_empty() { "none".to_owned() } else { numbers.join(", ") };
        return Err(not_found(format!("there is no revision {to}; existing ones: {numbers}")));
    };
    listed(found, observed)
}

fn listed<'r>(found: &'r Arc<Revision>, observed: &Observed) -> Result<&'r Arc<Revision>, Impossible> {
    if observed.lists(&found.kind) {
        return Ok(found);
    }
    let (number, (api_version, kind)) = (found.number, &found.kind);
    Err(Impossible {
        reason: reason::KIND_NOT_LISTED,
        message: format!(
            "revision {number} is a {kind} of {api_version}, which children in the controller's settings does not list; list the kind there"
        ),
    })
}

/// The pin of a rollback to a revision. While the template cannot be rendered, what was rendered last is rejected.
#[must_use]
pub fn pin(target: &Revision, observed: &Observed) -> Pin {
    let held = observed.pin.as_ref().map(|pin| pin.rejects.as_str());
    let rejected = match &observed.rendered {
        Ok(rendered) => Some(rendered.hash.as_str()),
        Err(_) => held.or_else(|| observed.wanted_hash()),
    };
    Pin {
        uid: ObjectId::of(&*observed.deployment).uid.to_owned(),
        hash: target.hash.clone(),
        rejects: rejected.unwrap_or_default().to_owned(),
    }
}

/// The pin that holds a `BasicDeployment` on an older revision than spec and template give.
#[must_use]
pub fn held(observed: &Observed) -> Option<&Pin> {
    observed.pin.as_ref().filter(|pin| pin.is_rejection())
}
