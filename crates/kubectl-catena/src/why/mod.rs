//! Why an object is not as it should be: evidence → the root cause. Pure, but for `gather`.

mod advice;
mod binding;
mod blockers;
mod command;
mod controllers;
mod deletion;
mod gather;
mod kept;
mod refusal;
mod tell;
#[cfg(test)]
mod tests;
mod warnings;

use command_binder::verdict::Verdict;
use jiff::Timestamp;
use serde::Serialize;

pub use binding::judge;
pub use controllers::Controllers;
pub use gather::gather;
pub use kept::kept_for;
pub use tell::tell;

use crate::{
    chain::{Gap, Health, Node, State},
    object::{Identity, conditions},
    protected_kinds::ProtectedKinds,
};

/// All that is known.
#[derive(Debug)]
pub struct Facts<'c> {
    /// The object that is asked about.
    pub asked: &'c Node,
    /// The top of the chain that it belongs to.
    pub top: &'c Node,
    /// What is around the chain.
    pub around: &'c Around,
    /// What time it is.
    pub now: Timestamp,
}

/// What is around a chain.
#[derive(Debug, Default)]
pub struct Around {
    /// The controllers of Catena.
    pub controllers: Controllers,
    /// Since when the namespace is being deleted.
    pub namespace_deleted: Option<Timestamp>,
    /// Warnings about objects of the namespace, the newest last.
    pub warnings: Vec<Warning>,
    /// The owner of the asked object that is not there.
    pub lost_owner: Option<Identity>,
    /// The target of the asked command that is not there.
    pub missing_target: Option<Identity>,
    /// What keeps the asked object from being bound, by command-binder's rules.
    pub unbound: Option<Verdict>,
    /// The label or annotation for which command-reaper keeps the asked command.
    pub kept_for: Option<String>,
    /// The kinds that have an entry in backup-controller's settings, if these can be read.
    pub protected: Option<ProtectedKinds>,
    /// What could not be read.
    pub gaps: Vec<Gap>,
}

/// An Event of type Warning.
#[derive(Clone, Debug)]
pub struct Warning {
    /// The uid of the object that it is about.
    pub about: String,
    /// The controller that says it.
    pub by: String,
    /// One word.
    pub reason: String,
    /// For people.
    pub message: String,
    /// When it was last seen.
    pub at: Option<Timestamp>,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The object that was asked about.
    pub object: Identity,
    /// Whether it is as it should be.
    pub well: bool,
    /// The answer in one sentence.
    pub sentence: String,
    /// What it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_cause: Option<Cause>,
    /// What it is read from: the leaf first, the asked object last.
    pub evidence: Vec<Evidence>,
    /// What else is worth knowing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// What could not be read, so that the answer may be another.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_seen: Vec<Gap>,
}

/// What an object waits for in the end.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    /// The object that is to blame.
    pub object: Identity,
    /// One `PascalCase` word.
    pub reason: String,
    /// What is the matter with that object, to be read after its name.
    pub meaning: String,
    /// The words of whoever reported it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// What to do.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub advice: String,
}

/// What one object says.
#[derive(Clone, Debug, Serialize)]
pub struct Evidence {
    /// Who.
    #[serde(flatten)]
    pub object: Identity,
    /// What it says.
    #[serde(flatten)]
    pub health: Health,
}

/// A cause, with the objects between it and the one that was asked about: that one first.
#[derive(Clone, Debug)]
struct Finding<'n> {
    cause: Cause,
    path: Vec<&'n Node>,
}

impl<'n> Finding<'n> {
    fn at(node: &'n Node, cause: Cause) -> Self {
        Self { cause, path: vec![node] }
    }

    /// The same, seen from an object further up.
    fn below(mut self, node: &'n Node) -> Self {
        self.path.insert(0, node);
        self
    }
}

/// Finds out why the asked object is not as it should be.
pub fn diagnose(facts: &Facts) -> Answer {
    let asked = facts.asked;
    let mut finding = explain(asked, facts);
    if let Some(Finding { cause, .. }) = &mut finding {
        cause.advice = tell::filled_in(&cause.advice, &cause.object);
    }
    let well = finding.is_none();
    let sentence = match &finding {
        None => tell::well(asked),
        Some(finding) => tell::sentence(asked, &finding.cause, facts.now),
    };
    let evidence = finding.iter().flat_map(|finding| finding.path.iter().rev());
    let evidence =
        evidence.map(|node| Evidence { object: node.identity.clone(), health: node.health.clone() });
    Answer {
        object: asked.identity.clone(),
        well,
        sentence,
        evidence: evidence.collect(),
        remarks: remarks(facts, finding.as_ref()),
        root_cause: finding.map(|finding| finding.cause),
        not_seen: facts.around.gaps.clone(),
    }
}

/// The first check that has something to say: what stops others comes first.
fn explain<'n>(node: &'n Node, facts: &Facts<'n>) -> Option<Finding<'n>> {
    let checks = [deletion::check, command::check, command::foreign, controllers::check, blockers::check];
    checks.iter().find_map(|check| check(node, facts))
}

fn remarks(facts: &Facts, finding: Option<&Finding>) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(since) = facts.around.namespace_deleted {
        let for_how_long = crate::age::age(facts.now, since);
        remarks.push(format!(
            "the namespace is being deleted for {for_how_long}: nothing new can be made in it"
        ));
    }
    if let Some(owner) = &facts.around.lost_owner {
        remarks.push(format!("its owner {owner} is gone: the garbage collector will delete it"));
    }
    match finding {
        None => {
            remarks.extend(rolled_back(facts.asked).map(|says| format!("it was rolled back: {says}")));
            // Its kind does not tell how it is; others may.
            if facts.asked.health.state == State::Present {
                remarks.extend(warnings::newest(facts.asked, facts));
            }
        }
        Some(finding) => {
            let held = finding.path.iter().filter(|node| rolled_back(node).is_some());
            remarks.extend(held.map(|node| not_the_spec(&node.identity)));
        }
    }
    remarks.extend(told(facts.asked, "Contested"));
    remarks.extend(facts.around.kept_for.iter().map(|mark| {
        format!("command-reaper keeps it also after its TTL: {mark} says that it is declared elsewhere, where it would be created again and run again; delete it there")
    }));
    let waiting = facts.asked.children.iter().filter(|child| command::is_waiting(child)).count();
    if waiting > 0 {
        let word = if waiting == 1 { "command is" } else { "commands are" };
        remarks.push(format!("{waiting} {word} not done yet: `kubectl catena tree` shows them"));
    }
    let about_controller = finding.is_some_and(|finding| finding.cause.reason == controllers::NOT_RUNNING);
    if !about_controller {
        remarks.extend(controllers::remarks(facts));
    }
    remarks
}

/// What an object says that stays on an older revision than its spec gives.
fn rolled_back(node: &Node) -> Option<String> {
    told(node, "RolledBack")
}

/// What a condition says that is there only while it is true.
fn told(node: &Node, type_: &str) -> Option<String> {
    let conditions = conditions(&node.object);
    let told = conditions.into_iter().find(|told| told.type_ == type_ && told.status == "True")?;
    Some(told.message)
}

/// What blocks comes from the older revision: to mend the spec for it would be in vain.
fn not_the_spec(object: &Identity) -> String {
    let advice = "`kubectl catena{namespace} history {name}` shows the others, and `kubectl catena{namespace} rollback {name} --to-revision N` chooses one";
    let advice = tell::filled_in(advice, object);
    format!(
        "{object} was rolled back, and what blocks comes from that older revision, not from the spec: {advice}"
    )
}

/// Whether nobody has to look at an object or at anything below it.
fn is_well(node: &Node) -> bool {
    node.health.state.is_well() && node.health.state != State::Failed
}
