use std::sync::Arc;

use operator_kit::watch::Source;
use serde_json::json;

use super::*;
use crate::fixtures;

/// The time at which a command was deleted, and gone, as nothing held it.
const DELETED: &str = "2026-01-01T12:00:00Z";

/// A command whose uid is its creation time.
fn command(name: &str, created: &str, spec: u64) -> Watched<CommandRow> {
    let metadata = json!({"name": name, "namespace": "shop", "uid": created, "creationTimestamp": created});
    let mut command = fixtures::command();
    command.metadata = serde_json::from_value(metadata).unwrap();
    command.row.spec = spec;
    command
}

fn deleted(name: &str) -> Removed {
    let mut removed = Removed::default();
    removed.remember(&command(name, "2026-01-01T11:00:00Z", 1), DELETED.parse().unwrap());
    removed.gone("2026-01-01T11:00:00Z", DELETED.parse().unwrap());
    removed
}

/// A command that a finalizer holds after its deletion, with or without an answer.
fn held(is_answered: bool) -> (Watched<CommandRow>, Removed) {
    let (command, mut removed) = (command("restart", "2026-01-01T11:00:00Z", 1), Removed::default());
    removed.send(&command, DELETED.parse().unwrap());
    if is_answered {
        removed.remember(&command, DELETED.parse().unwrap());
    }
    (command, removed)
}

#[test]
fn what_comes_back_soon_with_the_same_name_and_spec_is_known_again() {
    let removed = deleted("restart");
    assert!(removed.came_back(&command("restart", DELETED, 1)));
    assert!(removed.came_back(&command("restart", "2026-01-01T12:59:59Z", 1)));
    assert!(!removed.came_back(&command("restart", "2026-01-01T13:00:00Z", 1)), "it is somebody's next one");
    assert!(!removed.came_back(&command("restart", DELETED, 2)), "it is another command");
    assert!(!removed.came_back(&command("other", DELETED, 1)));
}

/// Nothing can create it again before.
#[test]
fn the_hour_begins_when_the_command_is_gone_however_long_a_finalizer_held_it() {
    for is_answered in [true, false] {
        let (_, mut removed) = held(is_answered);
        let again = command("restart", "2026-01-01T14:00:30Z", 1);
        removed.gone("another", "2026-01-01T14:00:00Z".parse().unwrap());
        assert!(!removed.came_back(&again), "another one was gone");
        removed.gone("2026-01-01T11:00:00Z", "2026-01-01T14:00:00Z".parse().unwrap());
        assert!(removed.came_back(&again), "it would run again without end");
        assert!(removed.came_back(&command("restart", "2026-01-01T14:59:59Z", 1)));
        assert!(!removed.came_back(&command("restart", "2026-01-01T15:00:00Z", 1)));
    }
}

#[test]
fn a_deletion_is_passed_on_by_each_leader_until_an_hour_after_its_command_is_gone() {
    let at = |time: &str| time.parse::<Timestamp>().unwrap();
    for is_answered in [true, false] {
        let (command_held, mut first) = held(is_answered);
        let mut second = Removed::default();
        second.add(&first.as_text(at("2026-01-01T14:00:00Z")).unwrap());
        assert_eq!(second.has(&command_held), is_answered);
        assert!(second.came_back(&command("restart", "2026-01-01T14:59:00Z", 1)), "it went meanwhile");
        assert_eq!(second.as_text(at("2026-01-01T15:00:00Z")), None, "it never expires");

        second.see(&command_held);
        let mut third = Removed::default();
        third.add(&second.as_text(at("2026-01-01T16:00:00Z")).unwrap());
        third.gone("2026-01-01T11:00:00Z", at("2026-01-01T18:00:00Z"));
        assert!(third.came_back(&command("restart", "2026-01-01T18:00:30Z", 1)));
        assert!(third.as_text(at("2026-01-01T18:59:00Z")).is_some());
        assert_eq!(third.as_text(at("2026-01-01T19:00:00Z")), None);

        first.gone("2026-01-01T11:00:00Z", at("2026-01-01T14:00:00Z"));
        assert!(first.as_text(at("2026-01-01T14:59:00Z")).is_some());
    }
}

#[test]
fn what_went_last_is_not_the_oldest() {
    let (held, mut removed) = held(true);
    for number in 1..REMEMBERED {
        removed.remember(&command(&number.to_string(), DELETED, 1), DELETED.parse().unwrap());
    }
    removed.gone("2026-01-01T11:00:00Z", "2026-01-01T14:00:00Z".parse().unwrap());
    removed.remember(&command("last", DELETED, 1), "2026-01-01T14:00:00Z".parse().unwrap());
    assert!(removed.has(&held));
    assert_eq!((removed.by_place.len(), removed.places.len()), (REMEMBERED, REMEMBERED));
}

#[test]
fn a_repeated_deletion_is_told_from_the_first_one() {
    let (first, next) = (command("restart", "2026-01-01T11:00:00Z", 1), command("restart", DELETED, 1));
    let (mut removed, at) = (Removed::default(), DELETED.parse().unwrap());
    assert!(!removed.send(&first, at) && removed.send(&first, at));
    assert!(!removed.send(&next, at), "it is another command of the same name");
    removed.withdraw(&next);
    assert!(!removed.send(&next, at));
    removed.remember(&next, at);
    assert!(!removed.send(&next, at), "it was answered");
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
    assert!(next.came_back(&again) && !next.came_back(&first) && !next.has(&first), "it is lost or spared");
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
    former.gone(DELETED, at(10));
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
