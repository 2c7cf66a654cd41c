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
    /// The time at which its object was gone; before that, the time of the deletion.
    at: Timestamp,
    /// Whether its object was not gone yet when it was last seen: a finalizer may hold it for any time.
    is_there: bool,
}

impl Removed {
    /// Remembers that the deletion of a command is sent. It may take effect although its answer is lost. Returns whether an
    /// earlier one of the same command may have done so.
    pub fn send(&mut self, command: &Watched<CommandRow>, at: Timestamp) -> bool {
        let (place, deletion) = (place(command), Deletion::of_command(command, at));
        let is_open = self.sent.get(&place).is_some_and(|known| known.uid == deletion.uid);
        self.insert_sent(place, deletion);
        is_open
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

    /// Notes that a command is there, which the record of a former leader does not say.
    pub fn see(&mut self, command: &Watched<CommandRow>) {
        let (place, uid) = (place(command), uid(command));
        let deletions = [self.by_place.get_mut(&place), self.sent.get_mut(&place)];
        for deletion in deletions.into_iter().flatten().filter(|deletion| deletion.uid == uid) {
            deletion.is_there = true;
        }
    }

    /// Starts the hour of a deletion when its object is gone, because nothing can create it again before.
    pub fn gone(&mut self, uid: &str, at: Timestamp) {
        let uid = digest_of(uid);
        let Self { by_place, places, sent } = self;
        for (place, deletion) in by_place.iter_mut().filter(|(_, deletion)| deletion.uid == uid) {
            *deletion = Deletion { at, is_there: false, ..*deletion };
            places.retain(|known| known != place);
            places.push_back(*place);
        }
        for deletion in sent.values_mut().filter(|deletion| deletion.uid == uid) {
            *deletion = Deletion { at, is_there: false, ..*deletion };
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
            answered.chain(sent).filter(|(.., deletion)| is_soon(now, deletion.start(now))).collect();
        recent.sort_by_key(|(.., deletion)| (deletion.start(now), deletion.at));
        let excess = recent.len().saturating_sub(REMEMBERED);
        let text: String = recent
            .into_iter()
            .skip(excess)
            .map(|(is_answered, place, deletion)| deletion.as_text(*place, is_answered, now))
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

/// Length of a deletion as text: three digests and a time in seconds, the start of its hour. All of them together have to fit
/// into the annotations of a Lease, 256 KiB.
const RECORD: usize = 3 * 16 + 8;
/// Mark before the time of a deletion without an answer. It is no hexadecimal digit, so a reader that does not know it skips
/// the record.
const UNANSWERED: char = '?';
/// The unit of such a time, which has one digit less: 16 s.
const UNANSWERED_UNIT: u32 = 16;

impl Deletion {
    fn of_command(command: &Watched<CommandRow>, at: Timestamp) -> Self {
        Self { uid: uid(command), spec: command.row.spec, at, is_there: true }
    }

    /// The start of its hour, which is now as long as its object is there.
    fn start(&self, now: Timestamp) -> Timestamp {
        if self.is_there { now } else { self.at }
    }

    fn as_text(self, place: u64, is_answered: bool, now: Timestamp) -> String {
        let Self { uid, spec, .. } = self;
        let seconds = u32::try_from(self.start(now).as_second()).unwrap_or(u32::MAX);
        let time = if is_answered {
            format!("{seconds:08x}")
        } else {
            format!("{UNANSWERED}{:07x}", seconds / UNANSWERED_UNIT)
        };
        format!("{place:016x}{uid:016x}{spec:016x}{time}")
    }

    /// Whether the deletion was answered, its place, and the deletion. Its object counts as gone until it is seen.
    fn of(text: &str) -> Option<(bool, u64, Self)> {
        let digest = |from: usize| u64::from_str_radix(text.get(from..from + 16)?, 16).ok();
        let time = text.get(48..RECORD)?;
        let (is_answered, digits, unit) = match time.strip_prefix(UNANSWERED) {
            Some(digits) => (false, digits, UNANSWERED_UNIT),
            None => (true, time, 1),
        };
        let seconds = u32::from_str_radix(digits, 16).ok()?.checked_mul(unit)?;
        let at = Timestamp::from_second(seconds.into()).ok()?;
        Some((is_answered, digest(0)?, Self { uid: digest(16)?, spec: digest(32)?, at, is_there: false }))
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
mod tests;
