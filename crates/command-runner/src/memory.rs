//! What this process remembers between passes: which commands have which target, and when it looked and reported last.

use std::{
    collections::{HashMap, HashSet},
    mem::{replace, take},
    sync::Arc,
    time::Duration,
};

use command_kinds::{CommandKind, TargetKind};
use command_runner::{
    command::{Command, CommandRow, TargetId, recent},
    line,
};
use jiff::Timestamp;
use operator_kit::run::Triggers;
use operator_watch::{ApiError, ObjectId};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Number of former targets of a command whose other commands a pass wakes: a replica that does not lead makes none.
const MAX_LEFT: usize = 16;

/// The memory of all commands. The commands themselves are in the stores of their watches: an entry here is only a hint.
#[derive(Clone)]
pub struct Memory {
    triggers: Triggers<CommandRow>,
    /// Tells why there may be kinds that are not known.
    unknown_kinds: Arc<dyn Fn() -> Option<String> + Send + Sync>,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    kinds: Vec<Arc<CommandKind>>,
    /// The uids and kinds of commands, by their target.
    by_target: HashMap<TargetId, HashMap<Box<str>, Arc<str>>>,
    /// By the uid of the command.
    commands: HashMap<Box<str>, Known>,
}

/// A command.
#[derive(Default)]
struct Known {
    target: Option<TargetId>,
    /// The targets that it had before, and whose other commands were not woken since.
    left: Vec<TargetId>,
    ran: bool,
    is_refused: bool,
    looked: Option<Instant>,
    told: Option<Instant>,
}

impl Memory {
    pub fn new(
        triggers: Triggers<CommandRow>,
        unknown_kinds: impl Fn() -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self { triggers, unknown_kinds: Arc::new(unknown_kinds), shared: Arc::default() }
    }

    /// From now on, commands are of these kinds.
    pub fn follow(&self, kinds: Vec<Arc<CommandKind>>) {
        self.shared.lock().kinds = kinds;
    }

    /// Records a command that came or changed.
    pub fn came(&self, kind: &Arc<str>, uid: &str, target: Option<&TargetId>) {
        let shared = &mut *self.shared.lock();
        if let Some(target) = target {
            shared.by_target.entry(target.clone()).or_default().insert(uid.into(), kind.clone());
        }
        let known = shared.commands.entry(uid.into()).or_default();
        let former = replace(&mut known.target, target.cloned());
        let Some(former) = former.filter(|former| target != Some(former)) else { return };
        if known.left.len() < MAX_LEFT && !known.left.contains(&former) {
            known.left.push(former.clone());
        }
        shared.leave(&former, uid);
    }

    /// Whether a command that ran has lost its owner, as by `kubectl replace`: it is still at work on its target.
    pub fn is_still_at_work(&self, uid: &str, row: &CommandRow) -> bool {
        row.target.is_some() && row.target_id().is_none() && self.has_run(uid)
    }

    /// The targets that a command has left since the last call. While it is recorded that it [came](Self::came), its store is locked,
    /// so that nobody can be woken.
    pub fn left(&self, uid: &str) -> Vec<TargetId> {
        self.known(uid, |known| take(&mut known.left)).unwrap_or_default()
    }

    /// Forgets a command that is gone, and wakes the next ones of its targets.
    pub fn gone(&self, uid: &str) {
        let Known { target, left, .. } = {
            let mut shared = self.shared.lock();
            let Some(known) = shared.commands.remove(uid) else { return };
            if let Some(target) = &known.target {
                shared.leave(target, uid);
            }
            known
        };
        for target in left.iter().chain(&target) {
            self.wake(target, None);
        }
    }

    /// Wakes the commands of a target that may be concerned by a change of it or, `by` one of them, by that alone.
    pub fn wake(&self, target: &TargetId, by: Option<&Command>) {
        let line = self.line(target);
        for command in line::concerned(&line, by, Timestamp::now()) {
            self.notify(command);
        }
    }

    fn notify(&self, command: &Command) {
        let ObjectId { namespace, name, .. } = ObjectId::of(command);
        self.triggers.notify(&command.kind_id, namespace, name);
    }

    /// The commands of a target, the oldest first.
    pub fn line(&self, target: &TargetId) -> Vec<Arc<Command>> {
        let known = self.shared.lock().by_target.get(target).cloned().unwrap_or_default();
        let mut line: Vec<_> = known
            .iter()
            .filter(|(_, kind)| self.triggers.is_served(kind) != Ok(false))
            .filter_map(|(uid, kind)| self.triggers.object(kind, uid))
            // Without an owner it is still at work.
            .filter(|command| command.row.target_id().is_none_or(|own| own == target))
            .collect();
        line.sort_by_cached_key(|command| recent(command));
        line
    }

    /// Why there may be commands of a kind of targets that are not known.
    pub fn unknown(&self, target: &TargetKind) -> Option<String> {
        let is_it = |other: &TargetKind| {
            let (one, other) = (&target.resource, &other.resource);
            (&one.group, &one.kind) == (&other.group, &other.kind)
        };
        if let Some(problem) = (self.unknown_kinds)() {
            return Some(format!("the watch of definitions of commands has a problem: {problem}"));
        }
        let kinds = self.shared.lock().kinds.clone();
        let may_target = |kind: &&Arc<CommandKind>| kind.targets().iter().any(|target| is_it(target));
        kinds.iter().filter(may_target).find_map(|kind| {
            let problem = self.triggers.is_served(&kind.id).err()?;
            Some(format!("the watch of {} has a problem: {problem}", kind.resource.kind))
        })
    }

    /// Records that a command ran, and wakes it if that is new.
    pub fn ran(&self, command: &Command) {
        let uid = ObjectId::of(command).uid;
        if self.known(uid, |known| replace(&mut known.ran, true)) == Some(false) {
            self.notify(command);
        }
    }

    /// Records a try to run a command, after which its target is looked at again at once. One that is refused stays so until it runs:
    /// any other failure says nothing of that. One that is newly refused wakes those that it held up.
    pub fn tried(&self, command: &Command, error: Option<&ApiError>) {
        let is_refused = error.is_some_and(ApiError::is_refusal);
        let was_refused = self.known(ObjectId::of(command).uid, |known| {
            known.looked = None;
            known.ran |= error.is_none();
            let is_refused = is_refused || known.is_refused && error.is_some();
            replace(&mut known.is_refused, is_refused)
        });
        let is_new = is_refused && was_refused == Some(false);
        if let Some(target) = command.row.target_id().filter(|_| is_new) {
            self.wake(target, Some(command));
        }
    }

    /// The uids of those commands whose read or patch was refused, and that have not run since.
    pub fn refused(&self, line: &[Arc<Command>]) -> HashSet<Box<str>> {
        let shared = self.shared.lock();
        let uids = line.iter().map(|command| ObjectId::of(&**command).uid);
        let is_refused = |uid: &&str| shared.commands.get(*uid).is_some_and(|known| known.is_refused);
        uids.filter(is_refused).map(Into::into).collect()
    }

    /// Whether a command ran, as this process has seen.
    pub fn has_run(&self, uid: &str) -> bool {
        self.known(uid, |known| known.ran) == Some(true)
    }

    /// The time until another look at the target of a command, at which one is recorded as made now if that is zero.
    pub fn look_in(&self, uid: &str, interval: Duration) -> Duration {
        let left = self.known(uid, |known| {
            let left = known.looked.map_or(Duration::ZERO, |at| interval.saturating_sub(at.elapsed()));
            if left.is_zero() {
                known.looked = Some(Instant::now());
            }
            left
        });
        left.unwrap_or_default()
    }

    /// The target of a command is looked at again at once: what was seen could not be told.
    pub fn look_again(&self, uid: &str) {
        self.known(uid, |known| known.looked = None);
    }

    /// Records that the status of a command was written.
    pub fn told(&self, uid: &str) {
        self.known(uid, |known| known.told = Some(Instant::now()));
    }

    /// The time since the status of a command was written.
    pub fn since_told(&self, uid: &str) -> Option<Duration> {
        Some(self.known(uid, |known| known.told)??.elapsed())
    }

    /// Reads or changes what is known of a command that is not gone.
    fn known<T>(&self, uid: &str, read: impl FnOnce(&mut Known) -> T) -> Option<T> {
        self.shared.lock().commands.get_mut(uid).map(read)
    }
}

impl Shared {
    fn leave(&mut self, target: &TargetId, uid: &str) {
        let Some(uids) = self.by_target.get_mut(target) else { return };
        uids.remove(uid);
        if uids.is_empty() {
            self.by_target.remove(target);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures::{command, kind};

    #[test]
    fn commands_may_be_unknown_while_definitions_are() {
        let restarts = kind("restarts", &json!({}));
        let target = &restarts.targets()[0];
        let unknown = |problem: Option<&'static str>| {
            Memory::new(Triggers::default(), move || problem.map(str::to_owned)).unknown(target)
        };
        assert_eq!(unknown(None), None);
        assert!(unknown(Some("no right")).unwrap().ends_with("has a problem: no right"));
    }

    #[test]
    fn a_command_for_another_target_with_the_uid_of_this_one_waits_not_among_those_of_this_one() {
        let owners = |name: &str| json!([{"apiVersion": "apps.example/v1", "kind": "Shop", "name": name, "uid": "shop"}]);
        let of = |name: &str| {
            let more = json!({"metadata": {"ownerReferences": owners(name)}, "spec": {"target": name}});
            command(&kind("a", &json!({})), "one", 1, &more)
        };
        let (here, there) = (of("a"), of("b"));
        assert!(here.row.target_id().is_some() && there.row.target_id().is_some());
        assert_ne!(here.row.target_id(), there.row.target_id());
    }

    #[test]
    fn the_targets_that_a_command_leaves_are_known_once() {
        let memory = Memory::new(Triggers::default(), || None);
        let target = |uid: &str| TargetId { namespace: "here".into(), name: "a".into(), uid: uid.into() };
        let came = |target: Option<&TargetId>| memory.came(&"a".into(), "one", target);
        came(Some(&target("x")));
        came(Some(&target("x")));
        assert!(memory.left("one").is_empty());
        came(Some(&target("y")));
        came(None);
        assert_eq!(memory.left("one"), [target("x"), target("y")]);
        assert!(memory.left("one").is_empty());
    }

    #[test]
    fn the_targets_that_a_command_leaves_are_few_also_where_nobody_asks_for_them() {
        let memory = Memory::new(Triggers::default(), || None);
        let came = |uid: usize| {
            let target = TargetId { namespace: "here".into(), name: "a".into(), uid: uid.to_string().into() };
            memory.came(&"a".into(), "one", Some(&target));
        };
        (0..100).for_each(|time| came(time % 2));
        assert_eq!(memory.left("one").len(), 2);
        (0..100).for_each(came);
        assert_eq!(memory.left("one").len(), 16);
    }

    #[test]
    fn a_command_that_ran_and_lost_its_owner_is_still_at_work_unless_it_names_no_target_any_more() {
        let memory = Memory::new(Triggers::default(), || None);
        let (kind, bare) = (kind("a", &json!({})), json!({"metadata": {"ownerReferences": null}}));
        let bound = command(&kind, "one", 1, &json!({}));
        let mut bare = Arc::into_inner(command(&kind, "one", 1, &bare)).unwrap();
        memory.came(&bound.kind_id, "one", bound.row.target_id());
        assert!(!memory.is_still_at_work("one", &bare.row), "it has not run");
        memory.ran(&bound);
        assert!(memory.is_still_at_work("one", &bare.row));
        assert!(!memory.is_still_at_work("one", &bound.row), "it is bound");
        bare.row.target = None;
        assert!(!memory.is_still_at_work("one", &bare.row), "it is no command of its kind any more");
    }

    #[test]
    fn that_a_command_ran_is_remembered_until_it_is_gone() {
        let memory = Memory::new(Triggers::default(), || None);
        let one = command(&kind("a", &json!({})), "one", 1, &json!({}));
        memory.ran(&one);
        assert!(!memory.has_run("one"), "nobody would clear the memory of a command that is unknown");
        memory.came(&one.kind_id, "one", one.row.target_id());
        memory.ran(&one);
        assert!(memory.has_run("one"));
        memory.gone("one");
        assert!(!memory.has_run("one"));
    }
}
