//! The recent deletions, to recognise commands that come back.

use std::collections::{HashMap, VecDeque};

use command_reaper::{
    command::{CommandRow, digest_of},
    notice::{REMEMBERED, REMEMBERED_FOR},
};
use jiff::{SignedDuration, Timestamp};
use kube::discovery::ApiResource;
use operator_kit::watch::Watched;

/// The last deletions.
#[derive(Default)]
pub struct Removed {
    by_place: HashMap<u64, Deletion>,
    /// The oldest first.
    places: VecDeque<u64>,
    /// Those that were sent, and may have taken effect without an answer.
    sent: HashMap<u64, Deletion>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Deletion {
    uid: u64,
    spec: u64,
    at: Timestamp,
}

impl Removed {
    /// Remembers that the deletion of a command is sent. It may take effect although its answer is lost.
    pub fn send(&mut self, command: &Watched<CommandRow>, at: Timestamp) {
        self.insert_sent(place(command), Deletion::of_command(command, at));
    }

    fn insert_sent(&mut self, place: u64, deletion: Deletion) {
        if self.sent.len() == REMEMBERED {
            self.sent.retain(|_, known| is_soon(deletion.at, known.at));
        }
        if self.sent.len() < REMEMBERED {
            self.sent.insert(place, deletion);
        }
    }

    /// Forgets that the deletion of a command was sent, because it was refused.
    pub fn withdraw(&mut self, command: &Watched<CommandRow>) {
        self.sent.remove(&place(command));
    }

    /// Remembers that a command was deleted.
    pub fn remember(&mut self, command: &Watched<CommandRow>, at: Timestamp) {
        self.withdraw(command);
        self.insert(place(command), Deletion::of_command(command, at));
    }

    fn insert(&mut self, place: u64, deletion: Deletion) {
        if self.by_place.insert(place, deletion).is_some() {
            self.places.retain(|known| *known != place);
        }
        self.places.push_back(place);
        if self.places.len() > REMEMBERED
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
        let Some(created) = command.metadata.creation_timestamp.as_ref().map(|time| time.0) else {
            return false;
        };
        let place = place(command);
        let deletions = [self.by_place.get(&place), self.sent.get(&place)];
        deletions.into_iter().flatten().any(|deletion| {
            let is_another = deletion.uid != uid(command);
            is_another && deletion.spec == command.row.spec && is_soon(created, deletion.at)
        })
    }

    /// The deletions that still matter at this time, as text for the next leader; none if there are none. Of too many, the
    /// oldest are left out.
    pub fn as_text(&self, now: Timestamp) -> Option<String> {
        let answered = self.places.iter().filter_map(|place| Some((place, self.by_place.get(place)?)));
        let answered = answered.map(|(place, deletion)| (true, place, deletion));
        let sent = self.sent.iter().map(|(place, deletion)| (false, place, deletion));
        let mut recent: Vec<_> =
            answered.chain(sent).filter(|(.., deletion)| is_soon(now, deletion.at)).collect();
        recent.sort_by_key(|(.., deletion)| deletion.at);
        let excess = recent.len().saturating_sub(REMEMBERED);
        let text: String = recent
            .into_iter()
            .skip(excess)
            .map(|(is_answered, place, deletion)| deletion.as_text(*place, is_answered))
            .collect();
        (!text.is_empty()).then_some(text)
    }

    /// Adds those of the previous leader.
    pub fn add(&mut self, text: &str) {
        for record in text.as_bytes().chunks(RECORD) {
            let Some((is_answered, place, deletion)) =
                std::str::from_utf8(record).ok().and_then(Deletion::of)
            else {
                continue;
            };
            let known = if is_answered { &self.by_place } else { &self.sent };
            // A standby may remember an earlier deletion of the same place, from a time when it was the leader.
            if known.get(&place).is_some_and(|known| known.at >= deletion.at) {
                continue;
            }
            if is_answered {
                self.insert(place, deletion);
            } else {
                self.insert_sent(place, deletion);
            }
        }
    }
}

/// Whether a time is soon after a deletion.
fn is_soon(time: Timestamp, deleted: Timestamp) -> bool {
    time.duration_since(deleted) < SignedDuration::try_from(REMEMBERED_FOR).unwrap_or_default()
}

/// Length of a deletion as text: three digests and a time in seconds. All of them together have to fit into the
/// annotations of a Lease, 256 KiB.
const RECORD: usize = 3 * 16 + 8;
/// Mark before the time of a deletion without an answer. It is no hexadecimal digit, so a reader that does not know it skips
/// the record.
const UNANSWERED: char = '?';
/// The unit of such a time, which has one digit less: 16 s.
const UNANSWERED_UNIT: u32 = 16;

impl Deletion {
    fn of_command(command: &Watched<CommandRow>, at: Timestamp) -> Self {
        Self { uid: uid(command), spec: command.row.spec, at }
    }

    fn as_text(self, place: u64, is_answered: bool) -> String {
        let Self { uid, spec, at } = self;
        let seconds = u32::try_from(at.as_second()).unwrap_or(u32::MAX);
        let time = if is_answered {
            format!("{seconds:08x}")
        } else {
            format!("{UNANSWERED}{:07x}", seconds / UNANSWERED_UNIT)
        };
        format!("{place:016x}{uid:016x}{spec:016x}{time}")
    }

    /// Whether the deletion was answered, its place, and the deletion.
    fn of(text: &str) -> Option<(bool, u64, Self)> {
        let digest = |from: usize| u64::from_str_radix(text.get(from..from + 16)?, 16).ok();
        let time = text.get(48..RECORD)?;
        let (is_answered, digits, unit) = match time.strip_prefix(UNANSWERED) {
            Some(digits) => (false, digits, UNANSWERED_UNIT),
            None => (true, time, 1),
        };
        let seconds = u32::from_str_radix(digits, 16).ok()?.checked_mul(unit)?;
        let at = Timestamp::from_second(seconds.into()).ok()?;
        Some((is_answered, digest(0)?, Self { uid: digest(16)?, spec: digest(32)?, at }))
    }
}

/// Kind, namespace and name. An entry of the settings may get another name, and a kind may be read in another version.
fn place(command: &Watched<CommandRow>) -> u64 {
    let ApiResource { group, plural, .. } = command.resource();
    let [namespace, name] =
        [&command.metadata.namespace, &command.metadata.name].map(|part| part.as_deref().unwrap_or_default());
    // A slash is in none of them.
    digest_of(&[group, plural, namespace, name].join("/"))
}

fn uid(command: &Watched<CommandRow>) -> u64 {
    digest_of(command.metadata.uid.as_deref().unwrap_or_default())
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
            row: CommandRow { expiry: Expiry::Open, declared_by: None, is_kept: false, spec },
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

    /// Otherwise a lost answer lets it run once more.
    #[test]
    fn a_deletion_without_an_answer_is_known_again_and_does_not_spare_the_command() {
        let (first, again) = (command("restart", "2026-01-01T11:00:00Z", 1), command("restart", DELETED, 1));
        let mut removed = Removed::default();
        removed.send(&first, DELETED.parse().unwrap());
        assert!(removed.came_back(&again) && !removed.came_back(&first) && !removed.has(&first));

        let text = removed.as_text(DELETED.parse().unwrap()).unwrap();
        let mut next = Removed::default();
        next.add(&text);
        assert!(
            next.came_back(&again) && !next.came_back(&first) && !next.has(&first),
            "it is lost or spared"
        );
        for removed in [&mut removed, &mut next] {
            removed.withdraw(&first);
            assert!(!removed.came_back(&again));
        }
    }

    /// Such a reader would take it for a deletion that took effect, and spare the command.
    #[test]
    fn a_reader_that_knows_no_deletions_without_an_answer_skips_them() {
        let mut removed = deleted("other");
        removed.send(&command("restart", "2026-01-01T11:00:00Z", 1), DELETED.parse().unwrap());
        let text = removed.as_text(DELETED.parse().unwrap()).unwrap();
        assert_eq!(text.len(), 2 * RECORD);
        let is_time = |record: &[u8]| record[48..].iter().all(u8::is_ascii_hexdigit);
        let readable = text.as_bytes().chunks(RECORD).filter(|record| is_time(record)).count();
        assert_eq!(readable, 1, "{text}");
    }

    #[test]
    fn deletions_without_an_answer_do_not_make_the_text_longer_than_a_lease_holds() {
        let mut many = Removed::default();
        for number in 0..REMEMBERED {
            many.remember(&command(&number.to_string(), DELETED, 1), DELETED.parse().unwrap());
        }
        let unanswered = command("unanswered", "2026-01-01T11:00:00Z", 1);
        many.send(&unanswered, DELETED.parse().unwrap());
        let text = many.as_text(DELETED.parse().unwrap()).unwrap();
        assert_eq!(text.len(), REMEMBERED * RECORD);
        let mut next = Removed::default();
        next.add(&text);
        assert!(next.came_back(&command("unanswered", DELETED, 1)));
        assert!(!next.has(&command("0", DELETED, 1)), "the oldest makes room");
        assert!(next.has(&command("1", DELETED, 1)));
    }

    #[test]
    fn the_oldest_makes_room_also_if_it_has_no_answer() {
        let at = |time: &str| time.parse::<Timestamp>().unwrap();
        let mut many = Removed::default();
        many.send(&command("unanswered", "2026-01-01T11:00:00Z", 1), at("2026-01-01T11:10:00Z"));
        for number in 0..REMEMBERED {
            many.remember(&command(&number.to_string(), DELETED, 1), at(DELETED));
        }
        let mut next = Removed::default();
        next.add(&many.as_text(at(DELETED)).unwrap());
        assert!(next.has(&command("0", DELETED, 1)));
        assert!(!next.came_back(&command("unanswered", "2026-01-01T11:30:00Z", 1)));
    }

    #[test]
    fn a_command_of_an_entry_with_another_name_is_the_same() {
        let removed = deleted("restart");
        let mut renamed = command("restart", DELETED, 1);
        let watched = renamed.source.watched.clone();
        renamed.source = Arc::new(Source { id: "tasks-of-gold".into(), watched });
        assert!(removed.came_back(&renamed));
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
        for number in 0..REMEMBERED {
            removed.remember(&command(&number.to_string(), DELETED, 1), DELETED.parse().unwrap());
            removed.remember(&command("0", DELETED, 1), DELETED.parse().unwrap());
        }
        assert_eq!((removed.by_place.len(), removed.places.len()), (REMEMBERED, REMEMBERED));
        assert!(!removed.came_back(&command("first", DELETED, 1)));
        assert!(removed.came_back(&command("0", "2026-01-01T12:00:01Z", 1)));
    }

    #[test]
    fn what_is_deleted_again_is_not_the_oldest() {
        let mut removed = deleted("again");
        for number in 1..REMEMBERED {
            removed.remember(&command(&number.to_string(), DELETED, 1), DELETED.parse().unwrap());
        }
        removed.remember(&command("again", DELETED, 1), DELETED.parse().unwrap());
        removed.remember(&command("last", DELETED, 1), DELETED.parse().unwrap());
        assert!(removed.came_back(&command("again", "2026-01-01T12:00:01Z", 1)));
        assert_eq!((removed.by_place.len(), removed.places.len()), (REMEMBERED, REMEMBERED));
    }

    #[test]
    fn the_next_leader_knows_the_deletions_of_the_last_hour_and_they_fit_into_a_lease() {
        let at = |minutes: i64| DELETED.parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minutes);
        let mut next = Removed::default();
        next.remember(&command("known", "2026-01-01T11:30:00Z", 2), at(30));
        let mut former = deleted("restart");
        former.remember(&command("known", DELETED, 1), at(10));
        next.add(&former.as_text(at(59)).unwrap());
        assert!(next.came_back(&command("restart", DELETED, 1)));
        assert!(next.has(&command("restart", "2026-01-01T11:00:00Z", 1)));
        assert!(!next.came_back(&command("restart", DELETED, 2)));
        assert!(next.came_back(&command("known", "2026-01-01T12:31:00Z", 2)), "what it knew itself was lost");
        assert_eq!(deleted("restart").as_text(at(60)), None);

        let mut again = deleted("restart");
        former.remember(&command("restart", "2026-01-01T12:05:00Z", 2), at(20));
        again.add(&former.as_text(at(59)).unwrap());
        assert!(again.came_back(&command("restart", "2026-01-01T12:21:00Z", 2)), "its memory was older");

        let mut many = Removed::default();
        for number in 0..=REMEMBERED {
            many.remember(&command(&number.to_string(), DELETED, 1), at(0));
        }
        let text = many.as_text(at(1)).unwrap();
        assert_eq!(text.len(), REMEMBERED * RECORD);
        assert!(text.len() < 256 * 1024, "{}", text.len());
    }

    #[test]
    fn whatever_somebody_wrote_onto_the_lease_is_skipped() {
        for text in ["", "x", &"é".repeat(RECORD), &"g".repeat(RECORD), &"0".repeat(RECORD - 1)] {
            let mut removed = Removed::default();
            removed.add(text);
            assert!(removed.by_place.is_empty(), "{text}");
        }
    }
}
