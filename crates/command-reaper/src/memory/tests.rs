use serde_json::json;

use super::*;
use crate::fixtures;

/// The time at which a command was deleted, and gone, as nothing held it.
const DELETED: &str = "2026-01-01T12:00:00Z";

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

/// A command whose uid is its creation time.
fn command(name: &str, created: &str, spec: u64) -> DynamicRow<CommandRow> {
    let metadata = json!({"name": name, "namespace": "shop", "uid": created, "creationTimestamp": created});
    let mut command = fixtures::command();
    command.metadata = serde_json::from_value(metadata).unwrap();
    command.row.spec = spec;
    command
}

fn delete(memory: &Memory, command: &DynamicRow<CommandRow>, time: &str) {
    memory.send_deletion(command, at(time));
    memory.confirm_deletion(command);
}

fn deleted(name: &str) -> Memory {
    let memory = Memory::default();
    delete(&memory, &command(name, "2026-01-01T11:00:00Z", 1), DELETED);
    memory.forget("2026-01-01T11:00:00Z", at(DELETED));
    memory
}

fn remembered(memory: &Memory) -> usize {
    memory.0.lock().len()
}

#[test]
fn what_comes_back_soon_with_the_same_name_and_spec_is_known_again() {
    let memory = deleted("restart");
    assert!(memory.came_back(&command("restart", DELETED, 1)));
    assert!(memory.came_back(&command("restart", "2026-01-01T12:59:59Z", 1)));
    assert!(!memory.came_back(&command("restart", "2026-01-01T13:00:00Z", 1)), "it is somebody's next one");
    assert!(!memory.came_back(&command("restart", DELETED, 2)), "it is another command");
    assert!(!memory.came_back(&command("other", DELETED, 1)));
}

/// Nothing can create it again before.
#[test]
fn the_hour_begins_when_the_command_is_gone_however_long_a_finalizer_held_it() {
    let held = command("restart", "2026-01-01T11:00:00Z", 1);
    for is_answered in [true, false] {
        let memory = Memory::default();
        memory.send_deletion(&held, at(DELETED));
        if is_answered {
            memory.confirm_deletion(&held);
        }
        let again = command("restart", "2026-01-01T14:00:30Z", 1);
        memory.forget("another", at("2026-01-01T14:00:00Z"));
        assert!(!memory.came_back(&again), "another one was gone");
        memory.forget("2026-01-01T11:00:00Z", at("2026-01-01T14:00:00Z"));
        assert!(memory.came_back(&again), "it would run again without end");
        assert!(memory.came_back(&command("restart", "2026-01-01T14:59:59Z", 1)));
        assert!(!memory.came_back(&command("restart", "2026-01-01T15:00:00Z", 1)));
    }
}

/// Otherwise a lost answer lets it run once more.
#[test]
fn a_deletion_without_an_answer_is_known_again_and_does_not_spare_the_command() {
    let (first, again) = (command("restart", "2026-01-01T11:00:00Z", 1), command("restart", DELETED, 1));
    let memory = Memory::default();
    let before = memory.send_deletion(&first, at(DELETED));
    assert!(memory.came_back(&again) && !memory.came_back(&first) && !memory.is_deleted(&first));
    memory.withdraw_deletion(&first, before);
    assert!(!memory.came_back(&again), "it was refused");
}

#[test]
fn a_refused_deletion_does_not_take_the_place_of_an_earlier_one() {
    let memory = deleted("restart");
    let (next, again) = (command("restart", DELETED, 2), command("restart", "2026-01-01T12:10:00Z", 1));
    let before = memory.send_deletion(&next, at("2026-01-01T12:05:00Z"));
    assert!(!memory.came_back(&again));
    memory.withdraw_deletion(&next, before);
    assert!(memory.came_back(&again) && memory.is_deleted(&command("restart", "2026-01-01T11:00:00Z", 1)));
}

#[test]
fn a_command_of_an_entry_with_another_name_is_the_same() {
    let memory = deleted("restart");
    let mut renamed = command("restart", DELETED, 1);
    renamed.kind_id = "tasks-of-gold".into();
    assert!(memory.came_back(&renamed));
}

#[test]
fn a_cache_that_is_late_shows_the_very_command_and_no_other_one() {
    let memory = deleted("restart");
    let late = command("restart", "2026-01-01T11:00:00Z", 1);
    assert!(memory.is_deleted(&late) && !memory.came_back(&late));
    assert!(!memory.is_deleted(&command("restart", DELETED, 1)));
}

#[test]
fn the_oldest_are_forgotten_so_that_memory_is_bounded() {
    let (memory, later) = (deleted("first"), "2026-01-01T12:10:00Z");
    for number in 0..REMEMBERED {
        delete(&memory, &command(&number.to_string(), DELETED, 1), later);
        delete(&memory, &command("0", DELETED, 1), later);
    }
    assert_eq!(remembered(&memory), REMEMBERED);
    assert!(!memory.came_back(&command("first", DELETED, 1)));
    assert!(memory.came_back(&command("0", "2026-01-01T12:10:01Z", 1)));
}

#[test]
fn what_went_or_was_deleted_again_last_is_not_the_oldest() {
    let (memory, later) = (deleted("again"), "2026-01-01T12:10:00Z");
    delete(&memory, &command("held", "2026-01-01T11:30:00Z", 1), DELETED);
    for number in 2..REMEMBERED {
        delete(&memory, &command(&number.to_string(), DELETED, 1), "2026-01-01T12:05:00Z");
    }
    delete(&memory, &command("again", DELETED, 1), later);
    memory.forget("2026-01-01T11:30:00Z", at(later));
    delete(&memory, &command("last", DELETED, 1), later);
    assert_eq!(remembered(&memory), REMEMBERED);
    assert!(memory.came_back(&command("again", "2026-01-01T12:10:01Z", 1)));
    assert!(memory.is_deleted(&command("held", "2026-01-01T11:30:00Z", 1)));
}
