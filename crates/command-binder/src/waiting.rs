//! Which commands wait for a target that is not there.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
};

use command_binder::{command::CommandRow, kind::TargetKind};
use operator_kit::{run::Triggers, watch::Watched};

/// A target by its name: there may be no such object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TargetName {
    /// Its kind.
    pub kind: Arc<TargetKind>,
    /// Its namespace; empty outside of namespaces.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

/// Wakes commands when their target comes.
#[derive(Clone, Default)]
pub struct Waiting(Arc<Mutex<Index>>);

#[derive(Default)]
struct Index {
    by_target: HashMap<TargetName, HashSet<Command>>,
    /// By the command's uid.
    by_command: HashMap<Box<str>, (TargetName, Command)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Command {
    kind: Arc<str>,
    namespace: Box<str>,
    name: Box<str>,
}

impl Waiting {
    /// From now on the command is woken when the target comes.
    pub fn enter(&self, command: &Watched<CommandRow>, target: TargetName) {
        let metadata = &command.metadata;
        let uid = metadata.uid.as_deref().unwrap_or_default();
        let waiting = Command {
            kind: command.source.id.clone(),
            namespace: metadata.namespace.as_deref().unwrap_or_default().into(),
            name: metadata.name.as_deref().unwrap_or_default().into(),
        };
        let mut index = self.lock();
        index.leave(uid);
        index.by_target.entry(target.clone()).or_default().insert(waiting.clone());
        index.by_command.insert(uid.into(), (target, waiting));
    }

    /// The command waits no more.
    pub fn leave(&self, uid: &str) {
        self.lock().leave(uid);
    }

    /// A target came or changed.
    pub fn wake(&self, target: &TargetName, triggers: &Triggers<CommandRow>) {
        let index = self.lock();
        for Command { kind, namespace, name } in index.by_target.get(target).into_iter().flatten() {
            triggers.notify(kind, namespace, name);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Index> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Index {
    fn leave(&mut self, uid: &str) {
        let Some((target, command)) = self.by_command.remove(uid) else { return };
        if let Some(commands) = self.by_target.get_mut(&target) {
            commands.remove(&command);
            if commands.is_empty() {
                self.by_target.remove(&target);
            }
        }
    }
}
