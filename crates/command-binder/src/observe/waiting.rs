//! The commands that wait for a missing target, or for its kind to be served.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use command_binder::command::CommandRow;
use command_kinds::TargetKind;
use operator_kit::run::Triggers;
use operator_watch::{DynamicRow, ObjectId};
use parking_lot::Mutex;

/// What a command waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The kind of its target.
    pub kind: Arc<TargetKind>,
    /// Its target; `None` while the kind is not served.
    pub target: Option<TargetName>,
}

/// A target by its name: there may be no such object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetName {
    /// Its namespace; empty for a cluster-scoped one.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

/// Wakes commands when their wait ends. By the command's uid.
#[derive(Clone, Default)]
pub struct Waiting(Arc<Mutex<HashMap<Box<str>, Waiter>>>);

/// A command that waits.
#[derive(Clone)]
struct Waiter {
    awaited: Awaited,
    kind: Arc<str>,
    namespace: Box<str>,
    name: Box<str>,
}

impl Waiting {
    /// From now on, the command is woken only by this.
    pub fn enter(&self, command: &DynamicRow<CommandRow>, awaited: Awaited) {
        let ObjectId { namespace, name, uid } = ObjectId::of(command);
        let kind = command.kind_id.clone();
        let waiter = Waiter { awaited, kind, namespace: namespace.into(), name: name.into() };
        self.0.lock().insert(uid.into(), waiter);
    }

    /// The command waits no more.
    pub fn leave(&self, uid: &str) {
        self.0.lock().remove(uid);
    }

    /// Handles a target that came or changed. Its commands keep waiting until a pass has found it.
    pub fn target_came(&self, came: &Awaited, triggers: &Triggers<CommandRow>) {
        let is_woken = |waiter: &&Waiter| waiter.awaited == *came;
        let woken: Vec<_> = self.0.lock().values().filter(is_woken).cloned().collect();
        wake(woken, triggers);
    }

    /// The kinds that commands wait for.
    pub fn kinds(&self) -> HashSet<Arc<TargetKind>> {
        let waiting = self.0.lock();
        let awaited = waiting.values().map(|waiter| &waiter.awaited);
        awaited.filter(|awaited| awaited.target.is_none()).map(|awaited| awaited.kind.clone()).collect()
    }

    /// Handles a kind that is now served. Its commands are woken once, because the next pass finds whatever else is
    /// missing.
    pub fn kind_came(&self, kind: Arc<TargetKind>, triggers: &Triggers<CommandRow>) {
        wake(self.take(&Awaited { kind, target: None }), triggers);
    }

    /// Takes the commands that waited for this.
    fn take(&self, came: &Awaited) -> Vec<Waiter> {
        let mut waiting = self.0.lock();
        waiting.extract_if(|_, waiter| waiter.awaited == *came).map(|(_, waiter)| waiter).collect()
    }
}

fn wake(waiters: Vec<Waiter>, triggers: &Triggers<CommandRow>) {
    for Waiter { kind, namespace, name, .. } in waiters {
        triggers.notify(&kind, &namespace, &name);
    }
}

#[cfg(test)]
mod tests {
    use command_kinds::CommandKind;
    use serde_json::json;

    use super::*;
    use crate::fixtures;

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

    fn command(kind: &Arc<CommandKind>, name: &str) -> DynamicRow<CommandRow> {
        let object = json!({"metadata": {"name": name, "uid": name}, "spec": {"to": "here"}});
        fixtures::command(kind, serde_json::from_value(object).unwrap())
    }

    #[test]
    fn what_waits_for_a_kind_is_woken_once_when_it_is_served_and_then_waits_for_its_target() {
        let (kind, waiting) = (kind(), Waiting::default());
        let target = kind.targets()[0].clone();
        let served = Awaited { kind: target.clone(), target: None };
        for name in ["a", "b", "gone"] {
            waiting.enter(&command(&kind, name), served.clone());
        }
        waiting.leave("gone");
        assert_eq!(waiting.kinds(), HashSet::from([target.clone()]));
        let woken = waiting.take(&served);
        let mut names: Vec<_> = woken.iter().map(|waiter| &*waiter.name).collect();
        names.sort_unstable();
        assert_eq!(names, ["a", "b"]);
        assert!(waiting.kinds().is_empty());

        let name = TargetName { namespace: "".into(), name: "here".into() };
        let here = Awaited { kind: target, target: Some(name) };
        waiting.enter(&command(&kind, "a"), served);
        waiting.enter(&command(&kind, "a"), here.clone());
        assert!(waiting.kinds().is_empty(), "it waits for one thing at a time");
        assert_eq!(waiting.take(&here).len(), 1);
    }
}
