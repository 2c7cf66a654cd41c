//! The commands that wait for a missing target, or for its kind to be served.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use command_binder::{command::CommandRow, kind::TargetKind};
use operator_kit::{object::ObjectId, run::Triggers, watch::Watched};
use parking_lot::Mutex;

/// A target by its name: there may be no such object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TargetName {
    /// Its kind.
    pub kind: Arc<TargetKind>,
    /// Its namespace; empty for a cluster-scoped one.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

/// The reason of a wait.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Awaited {
    /// The kind of its target is to be served.
    Kind(Arc<TargetKind>),
    /// Its target.
    Target(TargetName),
}

/// Wakes commands when their wait ends. By the command's uid.
#[derive(Clone, Default)]
pub struct Waiting(Arc<Mutex<HashMap<Box<str>, Command>>>);

#[derive(Clone, Debug)]
struct Command {
    awaited: Awaited,
    kind: Arc<str>,
    namespace: Box<str>,
    name: Box<str>,
}

impl Waiting {
    /// From now on, the command is woken only by this.
    pub fn enter(&self, command: &Watched<CommandRow>, awaited: Awaited) {
        let ObjectId { namespace, name, uid } = ObjectId::of(command);
        let kind = command.source.id.clone();
        let waiting = Command { awaited, kind, namespace: namespace.into(), name: name.into() };
        self.0.lock().insert(uid.into(), waiting);
    }

    /// The command waits no more.
    pub fn leave(&self, uid: &str) {
        self.0.lock().remove(uid);
    }

    /// Handles a target that came or changed. Its commands keep waiting until a pass has found it.
    pub fn target_came(&self, target: TargetName, triggers: &Triggers<CommandRow>) {
        let came = Awaited::Target(target);
        let commands: Vec<_> = {
            let waiting = self.0.lock();
            waiting.values().filter(|command| command.awaited == came).cloned().collect()
        };
        wake(commands, triggers);
    }

    /// The kinds that commands wait for.
    pub fn kinds(&self) -> HashSet<Arc<TargetKind>> {
        let kind = |awaited: &Awaited| match awaited {
            Awaited::Kind(kind) => Some(kind.clone()),
            Awaited::Target(_) => None,
        };
        self.0.lock().values().filter_map(|command| kind(&command.awaited)).collect()
    }

    /// Handles a kind that is now served. Its commands are woken once, because the next pass finds whatever else is
    /// missing.
    pub fn kind_came(&self, kind: Arc<TargetKind>, triggers: &Triggers<CommandRow>) {
        wake(self.take(&Awaited::Kind(kind)), triggers);
    }

    /// Takes the commands that waited for this.
    fn take(&self, came: &Awaited) -> Vec<Command> {
        let mut waiting = self.0.lock();
        waiting.extract_if(|_, command| command.awaited == *came).map(|(_, command)| command).collect()
    }
}

fn wake(commands: Vec<Command>, triggers: &Triggers<CommandRow>) {
    for Command { kind, namespace, name, .. } in commands {
        triggers.notify(&kind, &namespace, &name);
    }
}

#[cfg(test)]
mod tests {
    use command_binder::kind::CommandKind;
    use operator_kit::watch::{Source, TrimmedObject, WatchedResource};
    use serde_json::json;

    use super::*;

    fn kind() -> Arc<CommandKind> {
        let file = json!({
            "id": "moves", "group": "x.dev", "version": "v1", "resource": "moves", "kind": "Move",
            "target": {
                "name": "object.spec.to",
                "kinds": [{"group": "x.dev", "version": "v1", "resource": "places", "kind": "Place"}],
            },
        });
        Arc::new(CommandKind::compile(serde_json::from_value(file).unwrap()).unwrap())
    }

    fn command(kind: &Arc<CommandKind>, name: &str) -> Watched<CommandRow> {
        let object = json!({"metadata": {"name": name, "uid": name}, "spec": {"to": "here"}});
        let object: TrimmedObject = serde_json::from_value(object).unwrap();
        let watched = WatchedResource::unwatched(kind.resource.clone());
        Watched {
            metadata: object.metadata.clone(),
            source: Arc::new(Source { id: kind.id.clone(), watched }),
            row: CommandRow::of(kind, object),
        }
    }

    #[test]
    fn what_waits_for_a_kind_is_woken_once_when_it_is_served_and_then_waits_for_its_target() {
        let (kind, waiting) = (kind(), Waiting::default());
        let target = kind.target.kinds[0].clone();
        for name in ["a", "b", "gone"] {
            waiting.enter(&command(&kind, name), Awaited::Kind(target.clone()));
        }
        waiting.leave("gone");
        assert_eq!(waiting.kinds(), HashSet::from([target.clone()]));
        let woken = waiting.take(&Awaited::Kind(target.clone()));
        let mut names: Vec<_> = woken.iter().map(|command| &*command.name).collect();
        names.sort_unstable();
        assert_eq!(names, ["a", "b"]);
        assert!(waiting.kinds().is_empty());

        let name = TargetName { kind: target.clone(), namespace: "".into(), name: "here".into() };
        waiting.enter(&command(&kind, "a"), Awaited::Kind(target.clone()));
        waiting.enter(&command(&kind, "a"), Awaited::Target(name.clone()));
        assert!(waiting.kinds().is_empty(), "it waits for one thing at a time");
        assert_eq!(waiting.take(&Awaited::Target(name)).len(), 1);
    }
}
