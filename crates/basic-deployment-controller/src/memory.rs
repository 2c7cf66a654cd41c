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
    /// By the uid of the child.
    replicas: HashMap<String, i32>,
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
    /// The replicas that each child was given last, by its uid.
    pub replicas: HashMap<String, i32>,
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
            replicas: self.replicas.clone(),
            undone: undone.collect(),
            since_told: self.told.map(|told| told.elapsed()),
            unheard: self.unheard.clone(),
        }
    }

    /// A rendering was applied, and this is what the server made of it.
    pub fn applied(&mut self, hash: &str, settled_as: Value) {
        self.applied = Some(Applied { hash: hash.to_owned(), settled_as });
    }

    /// A child was given so many replicas; nothing is kept of children that are not known any more.
    pub fn scaled(&mut self, child: &str, replicas: i32, is_known: impl Fn(&str) -> bool) {
        self.replicas.retain(|child, _| is_known(child));
        self.replicas.insert(child.to_owned(), replicas);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_child_was_given_is_known_while_the_child_is() {
        let mut memory = Memory::default();
        memory.scaled("former", 3, |_| true);
        memory.scaled("wanted", 4, |_| true);
        let given = |memory: &Memory| memory.recall(None).replicas;
        assert_eq!(given(&memory), HashMap::from([("former".to_owned(), 3), ("wanted".to_owned(), 4)]));
        memory.scaled("wanted", 5, |child| child == "wanted");
        assert_eq!(given(&memory), HashMap::from([("wanted".to_owned(), 5)]));
    }
}
