//! The target revision of a rollback, and its marks on the child.

use std::sync::Arc;

use catena_api::reason;

use crate::{child::Marks, observed::Observed, revision::Revision};

/// The reason why a rollback has no target.
#[derive(Debug)]
pub struct NoTarget {
    /// One word.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

impl NoTarget {
    fn not_found(message: String) -> Self {
        Self { reason: reason::REVISION_NOT_FOUND, message }
    }
}

/// The revision that a rollback requests.
pub fn target(to: i64, observed: &Observed) -> Result<&Arc<Revision>, NoTarget> {
    if to == 0 {
        let wanted = observed.wanted_hash();
        let earlier = observed.revisions.iter().rev().find(|revision| Some(revision.hash.as_str()) != wanted);
        let found = earlier.ok_or_else(|| NoTarget::not_found("there is no previous revision".to_owned()))?;
        return listed(found, observed);
    }
    let Some(found) = observed.revisions.iter().find(|revision| revision.number == to) else {
        let numbers: Vec<_> = observed.revisions.iter().map(|revision| revision.number.to_string()).collect();
        let numbers = if numbers.is_empty() { "none".to_owned() } else { numbers.join(", ") };
        return Err(NoTarget::not_found(format!("there is no revision {to}; existing ones: {numbers}")));
    };
    listed(found, observed)
}

fn listed<'r>(found: &'r Arc<Revision>, observed: &Observed) -> Result<&'r Arc<Revision>, NoTarget> {
    if observed.lists(&found.kind) {
        return Ok(found);
    }
    let (number, (api_version, kind)) = (found.number, &found.kind);
    Err(NoTarget {
        reason: reason::KIND_NOT_LISTED,
        message: format!(
            "revision {number} is a {kind} of {api_version}, which children in the controller's settings does not list; list the kind there"
        ),
    })
}

/// The marks on a child that a rollback puts on a revision.
pub fn marks(command: &str, target: &Revision, observed: &Observed) -> Marks {
    let rejected = match &observed.rendered {
        Ok(rendered) => Some(rendered.hash.as_str()),
        Err(_) => observed.wanted_hash(),
    };
    Marks {
        last_command: Some(command.to_owned()),
        rolled_back_by: Some(command.to_owned()),
        // The target is the rendering of spec and template, which are then followed again.
        rejected: rejected.filter(|rejected| *rejected != target.hash).map(str::to_owned),
    }
}
