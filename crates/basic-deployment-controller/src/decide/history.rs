//! Which revisions there are to be, and which one is wanted.

use std::{collections::HashSet, sync::Arc};

use super::Action;
use crate::{
    child::{Child, Marks},
    command::Order,
    decide::commands,
    desired::Desired,
    observe::Observed,
    revision::{Rejects, Revision},
};

/// What holds a `BasicDeployment` on an older revision than its spec and template give.
#[derive(Clone, Debug, PartialEq)]
pub struct Pin {
    /// The hash of the rendering that it is held on.
    pub hash: String,
    /// The revision; `None` when somebody deleted it.
    pub revision: Option<Arc<Revision>>,
    /// What was rejected, by which command.
    pub rejects: Rejects,
}

/// Whether a rollback holds the child, as it is recorded on the child itself, and if there is no child, on the
/// revision that was wanted last.
pub fn pin(rendered: &str, children: &[Arc<Child>], revisions: &[Arc<Revision>]) -> Option<Pin> {
    if children.is_empty() {
        let last = revisions.last().filter(|last| last.rejects.hash.as_deref() == Some(rendered))?;
        let rejects = last.rejects.clone();
        return Some(Pin { hash: last.hash.clone(), revision: Some(last.clone()), rejects });
    }
    children.iter().find_map(|child| {
        let Marks { rolled_back_by, rejected, .. } = child.marks();
        let rejected = rejected.filter(|rejected| rejected == rendered)?;
        let revision = find(revisions, child.hash()).cloned();
        let rejects = Rejects { hash: Some(rejected), command: rolled_back_by };
        Some(Pin { hash: child.hash().to_owned(), revision, rejects })
    })
}

/// Stores what the child is to become before it does, as the revision of the highest number.
pub fn record(desired: &Desired, observed: &Observed) -> Option<Action> {
    let last = observed.revisions.last();
    let next = last.map_or(1, |last| last.number.saturating_add(1));
    let mut rejects = observed.pin.as_ref().map(|pin| pin.rejects.clone()).unwrap_or_default();
    let Some(revision) = find(&observed.revisions, &desired.hash) else {
        // What is held by a rollback has a revision, or is refused.
        let rendered = observed.rendered.as_ref().ok().filter(|rendered| rendered.hash == desired.hash)?;
        return Some(Action::Record { rendered: rendered.clone(), number: next });
    };
    let on_child = observed.child.ours().filter(|child| child.hash() == desired.hash);
    let by = on_child.and_then(|child| child.marks().rolled_back_by);
    rejects.command = rejects.command.or(by).or_else(|| revision.rejects.command.clone());
    let is_last = last.is_some_and(|last| last.uid == revision.uid);
    (!is_last || revision.rejects != rejects).then(|| Action::Renumber {
        revision: revision.clone(),
        number: if is_last { revision.number } else { next },
        rejects,
    })
}

/// The revision that a rollback asks for, or why there is none.
pub fn target(to: i64, observed: &Observed) -> Result<&Arc<Revision>, String> {
    let is_of_kind = |revision: &&Arc<Revision>| {
        let kind = &observed.place.resource;
        (&revision.kind.0, &revision.kind.1) == (&kind.api_version, &kind.kind)
    };
    if to == 0 {
        let wanted = wanted(observed);
        let earlier = observed.revisions.iter().rev().filter(is_of_kind);
        return earlier
            .clone()
            .find(|revision| Some(revision.hash.as_str()) != wanted)
            .ok_or_else(|| "there is no previous revision".to_owned());
    }
    let Some(found) = observed.revisions.iter().find(|revision| revision.number == to) else {
        let numbers: Vec<_> = observed.revisions.iter().map(|revision| revision.number.to_string()).collect();
        let numbers = if numbers.is_empty() { "none".to_owned() } else { numbers.join(", ") };
        return Err(format!("there is no revision {to}; there are: {numbers}"));
    };
    Some(found).filter(is_of_kind).ok_or_else(|| {
        format!(
            "revision {to} is a {}, and the children are of the kind {} now",
            found.kind.1, observed.place.resource.kind
        )
    })
}

/// What stays recorded on the child when it is written again.
pub fn kept_marks(desired: &str, pin: Option<&Pin>, child: Option<&Child>) -> Marks {
    let on_child = child.map(Child::marks).unwrap_or_default();
    match pin {
        Some(Pin { rejects: Rejects { hash, command }, .. }) => Marks {
            last_command: on_child.last_command.or_else(|| command.clone()),
            rolled_back_by: command.clone(),
            rejected: hash.clone(),
        },
        None => Marks {
            rolled_back_by: on_child
                .rolled_back_by
                .filter(|_| child.is_some_and(|child| child.hash() == desired)),
            rejected: None,
            ..on_child
        },
    }
}

/// What is recorded on a child that a rollback puts on a revision.
pub fn marks(command: &str, target: &Revision, observed: &Observed) -> Marks {
    let rejected = match &observed.rendered {
        Ok(rendered) => Some(rendered.hash.as_str()),
        Err(_) => wanted(observed),
    };
    Marks {
        last_command: Some(command.to_owned()),
        rolled_back_by: Some(command.to_owned()),
        // Back to what spec and template give: then they are followed again.
        rejected: rejected.filter(|rejected| *rejected != target.hash).map(str::to_owned),
    }
}

/// Deletes the oldest revisions beyond the limit, but none that is wanted, live or asked for.
pub fn prune(observed: &Observed) -> Option<Action> {
    // What is not known may ask for any.
    let commands = observed.commands.as_ref()?;
    let mut kept: HashSet<&str> = observed.children().map(|child| child.hash()).collect();
    kept.extend(wanted(observed));
    kept.extend(observed.rendered.as_ref().ok().map(|rendered| rendered.hash.as_str()));
    for command in commands.iter().filter(|command| commands::is_open(command, observed)) {
        if let Ok(Order::Rollback(to)) = command.asks.as_ref().map(|asks| asks.order) {
            kept.extend(target(to, observed).ok().map(|revision| revision.hash.as_str()));
        }
    }
    let old: Vec<_> =
        observed.revisions.iter().filter(|revision| !kept.contains(revision.hash.as_str())).collect();
    let limit = usize::try_from(observed.deployment.spec.revision_history_limit).unwrap_or(0);
    // Those that are kept anyway and are not the wanted one count as old ones too.
    let all_old = observed.revisions.len().saturating_sub(1);
    let surplus = all_old.saturating_sub(limit).min(old.len());
    let surplus: Vec<_> =
        old.into_iter().take(surplus).filter(|revision| !revision.is_deleting).cloned().collect();
    (!surplus.is_empty()).then_some(Action::Prune(surplus))
}

/// The revision with a hash.
pub fn find<'r>(revisions: &'r [Arc<Revision>], hash: &str) -> Option<&'r Arc<Revision>> {
    revisions.iter().find(|revision| revision.hash == hash)
}

/// The hash of what the child is to be.
fn wanted(observed: &Observed) -> Option<&str> {
    match &observed.desired {
        Ok(desired) => Some(&desired.hash),
        Err(_) => observed.child.ours().map(|child| child.hash()),
    }
}
