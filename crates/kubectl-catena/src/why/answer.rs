//! The result of a diagnosis.

use jiff::Timestamp;
use serde::Serialize;

use crate::{
    chain::{Gap, Health, Node},
    object::Identity,
};

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
pub struct Finding<'n> {
    /// The root cause.
    pub cause: Cause,
    /// The asked object first.
    pub path: Vec<&'n Node>,
}

/// Where the cause of an object's state is found.
#[derive(Debug)]
pub enum Lead<'n> {
    /// Here.
    Found(Finding<'n>),
    /// At the first of these objects that has one, or else with the object itself.
    Follow {
        /// The most probable first.
        next: Vec<&'n Node>,
        /// The cause if none of them has one.
        otherwise: Option<Cause>,
    },
    /// Here, with the state of another object as further evidence.
    Because(Finding<'n>, &'n Node),
}

impl<'n> Finding<'n> {
    /// A cause that lies with an object itself.
    pub fn at(node: &'n Node, cause: Cause) -> Self {
        Self { cause, path: vec![node] }
    }

    /// The same, seen from an object further up.
    pub fn below(mut self, node: &'n Node) -> Self {
        self.path.insert(0, node);
        self
    }
}

impl Cause {
    /// What to do about it.
    pub fn with_advice(mut self, advice: &str) -> Self {
        advice.clone_into(&mut self.advice);
        self
    }
}
