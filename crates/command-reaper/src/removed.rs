//! The recent deletions, to recognise commands that come back.

use std::{
    collections::{HashMap, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
};

use command_reaper::command::CommandRow;
use jiff::{SignedDuration, Timestamp};
use operator_kit::watch::Watched;

/// Maximum number of remembered deletions, which take well under a megabyte.
const CAPACITY: usize = 10_000;
/// Time within which a re-created command counts as created by a tool: tools reconcile at least once an hour.
const SOON: SignedDuration = SignedDuration::from_hours(1);

/// The last deletions.
#[derive(Default)]
pub struct Removed {
    by_place: HashMap<u64, Deletion>,
    /// The oldest first.
    places: VecDeque<u64>,
}

#[derive(Clone, Copy)]
struct Deletion {
    uid: u64,
    spec: u64,
    at: Timestamp,
}

impl Removed {
    /// Remembers that a command was deleted.
    pub fn remember(&mut self, command: &Watched<CommandRow>, at: Timestamp) {
        let place = place(command);
        let deletion = Deletion { uid: uid(command), spec: command.row.spec, at };
        if self.by_place.insert(place, deletion).is_none() {
            self.places.push_back(place);
        }
        if self.places.len() > CAPACITY
            && let Some(oldest) = self.places.pop_front()
        {
            self.by_place.remove(&oldest);
        }
    }

    /// Whether this very command was deleted; a cache may show it a little longer.
    pub fn has(&self, command: &Watched<CommandRow>) -> bool {
        self.by_place.get(&place(command)).is_some_and(|deletion| deletion.uid == uid(command))
    }

    /// Whether a command was created again, with the same name and spec, soon after it had been deleted.
    pub fn came_back(&self, command: &Watched<CommandRow>) -> bool {
        let created = command.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let (Some(created), Some(deletion)) = (created, self.by_place.get(&place(command))) else {
            return false;
        };
        let is_another = deletion.uid != uid(command);
        is_another && deletion.spec == command.row.spec && created.duration_since(deletion.at) < SOON
    }
}

/// Kind, namespace and name.
fn place(command: &Watched<CommandRow>) -> u64 {
    digest(&(&command.source.id, &command.metadata.namespace, &command.metadata.name))
}

fn uid(command: &Watched<CommandRow>) -> u64 {
    digest(&command.metadata.uid)
}

fn digest(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use command_reaper::command::Expiry;
    use kube::core::{ApiResource, GroupVersionKind};
    use operator_kit::watch::{Source, WatchedResource};
    use serde_json::json;

    use super::*;

    const DELETED: &str = "2026-01-01T12:00:00Z";

    /// A command whose uid is its creation time.
    fn command(name: &str, created: &str, spec: u64) -> Watched<CommandRow> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Task"));
        let metadata =
            json!({"name": name, "namespace": "shop", "uid": created, "creationTimestamp": created});
        Watched {
            metadata: serde_json::from_value(metadata).unwrap(),
            source: Arc::new(Source { id: "tasks".into(), watched: WatchedResource::unwatched(resource) }),
            row: CommandRow { expiry: Expiry::Open, declared_by: None, spec },
        }
    }

    fn deleted(name: &str) -> Removed {
        let mut removed = Removed::default();
        removed.remember(&command(name, "2026-01-01T11:00:00Z", 1), DELETED.parse().unwrap());
        removed
    }

    #[test]
    fn what_comes_back_soon_with_the_same_name_and_spec_is_known_again() {
        let removed = deleted("restart");
        assert!(removed.came_back(&command("restart", DELETED, 1)));
        assert!(removed.came_back(&command("restart", "2026-01-01T12:59:59Z", 1)));
        assert!(
            !removed.came_back(&command("restart", "2026-01-01T13:00:00Z", 1)),
            "it is somebody's next one"
        );
        assert!(!removed.came_back(&command("restart", DELETED, 2)), "it is another command");
        assert!(!removed.came_back(&command("other", DELETED, 1)));
    }

    #[test]
    fn a_cache_that_is_late_shows_the_very_command_and_no_other_one() {
        let removed = deleted("restart");
        let late = command("restart", "2026-01-01T11:00:00Z", 1);
        assert!(removed.has(&late) && !removed.came_back(&late));
        assert!(!removed.has(&command("restart", DELETED, 1)));
    }

    #[test]
    fn the_oldest_are_forgotten_so_that_memory_is_bounded() {
        let mut removed = deleted("first");
        for number in 0..CAPACITY {
            removed.remember(&command(&number.to_string(), DELETED, 1), DELETED.parse().unwrap());
            removed.remember(&command("0", DELETED, 1), DELETED.parse().unwrap());
        }
        assert_eq!((removed.by_place.len(), removed.places.len()), (CAPACITY, CAPACITY));
        assert!(!removed.came_back(&command("first", DELETED, 1)));
        assert!(removed.came_back(&command("0", "2026-01-01T12:00:01Z", 1)));
    }
}
