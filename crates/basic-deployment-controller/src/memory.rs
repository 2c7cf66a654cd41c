//! What is remembered between passes over a `BasicDeployment`.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    contest::{Part, QUIET, Undone},
    desired::Desired,
};

/// What is remembered of the writes for a `BasicDeployment`.
#[derive(Default)]
pub struct Memory {
    applied: Option<Applied>,
    replicas: Option<i32>,
    undone: HashMap<Part, UndoneAt>,
    told: Option<Instant>,
    unheard: HashSet<String>,
}

struct Applied {
    hash: String,
    settled_as: Value,
}

struct UndoneAt {
    field: String,
    at: Instant,
    times: u32,
}

/// What a decision may know of the last writes.
#[derive(Default)]
pub struct Remembered {
    /// What the server made of the rendering that is still wanted.
    pub settled_as: Option<Value>,
    /// The replicas that the child was given last.
    pub replicas: Option<i32>,
    /// What was put back lately.
    pub undone: HashMap<Part, Undone>,
    /// How long ago a command's status was written.
    pub since_told: Option<Duration>,
    /// Commands whose status the server does not take.
    pub unheard: HashSet<String>,
}

impl Memory {
    /// What is remembered, as far as it is about what is still wanted.
    pub fn recall(&self, desired: Option<&Desired>) -> Remembered {
        let still_wanted =
            self.applied.iter().find(|applied| desired.is_some_and(|desired| desired.hash == applied.hash));
        let undone = self.undone.iter().map(|(part, UndoneAt { field, at, times })| {
            (*part, Undone { field: field.clone(), since: at.elapsed(), times: *times })
        });
        Remembered {
            settled_as: still_wanted.map(|applied| applied.settled_as.clone()),
            replicas: self.replicas,
            undone: undone.collect(),
            since_told: self.told.map(|told| told.elapsed()),
            unheard: self.unheard.clone(),
        }
    }

    /// A rendering was applied, and this is what the server made of it.
    pub fn applied(&mut self, hash: &str, settled_as: Value) {
        self.applied = Some(Applied { hash: hash.to_owned(), settled_as });
    }

    /// The child was given so many replicas.
    pub fn scaled(&mut self, replicas: i32) {
        self.replicas = Some(replicas);
    }

    /// Somebody's change was put back.
    pub fn undid(&mut self, part: Part, field: String) {
        let before = self.undone.get(&part).filter(|before| before.at.elapsed() < QUIET);
        let times = before.map_or(1, |before| before.times.saturating_add(1));
        self.undone.insert(part, UndoneAt { field, at: Instant::now(), times });
    }

    /// A command's status was written.
    pub fn told(&mut self) {
        self.told = Some(Instant::now());
    }

    /// The server does not take a command's status.
    pub fn is_unheard(&mut self, command: &str) {
        self.unheard.insert(command.to_owned());
    }
}
