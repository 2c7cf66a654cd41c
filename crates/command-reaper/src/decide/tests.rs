use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube::{
    api::ObjectMeta,
    core::{ApiResource, GroupVersionKind},
};
use operator_kit::run::Backoffs;
use operator_templates::Expression;
use operator_watch::{DynamicRow, Failure, WriteTarget};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::command::{CommandRow, tests::shipped};

/// When a command is deleted.
type Expiry = Result<Option<Timestamp>, Box<ExpressionError>>;

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn observed(expires_at: Expiry) -> Observed {
    let kind = GroupVersionKind::gvk("example.com", "v1", "Task");
    let command = DynamicRow {
        metadata: ObjectMeta { name: Some("task".into()), uid: Some("1".into()), ..ObjectMeta::default() },
        kind_id: "tasks".into(),
        write_target: Arc::new(WriteTarget::unwatched(ApiResource::from_gvk(&kind))),
        row: CommandRow { expires_at, declared_by: None, is_kept: false, is_restored: false, spec: 0 },
    };
    Observed {
        command: Arc::new(command),
        backoffs: Backoffs::default(),
        now: now(),
        is_deleted: false,
        came_back: false,
    }
}

fn changed(mut observed: Observed, change: impl FnOnce(&mut DynamicRow<CommandRow>)) -> Observed {
    change(Arc::make_mut(&mut observed.command));
    observed
}

fn expired_command() -> Observed {
    observed(Ok(Some(now())))
}

proptest! {
    #[test]
    fn a_command_goes_when_its_time_is_over_and_not_before(seconds in -1_000_000_000_i64..4_000_000_000) {
        let expiry = now() + SignedDuration::from_secs(seconds);
        match decide(&observed(Ok(Some(expiry)))) {
            Action::Delete => prop_assert!(seconds <= 0),
            Action::Wait(time) => {
                prop_assert!(seconds > 0);
                prop_assert!(time <= Duration::from_secs(seconds.unsigned_abs()), "it would be late");
                prop_assert!(time <= LOOK_INTERVAL, "a clock that is set right would not be noticed");
                prop_assert!(!time.is_zero(), "it would be looked at hot");
            }
            other => prop_assert!(false, "{other:?}"),
        }
    }
}

#[test]
fn a_command_that_is_open_stays() {
    assert_eq!(decide(&observed(Ok(None))), Action::Settle);
}

/// The same observation some minutes later.
fn later(minutes: i64, observed: &Observed) -> Observed {
    Observed { now: now() + SignedDuration::from_mins(minutes), ..observed.clone() }
}

#[test]
fn a_command_that_would_be_created_again_is_kept_and_that_is_told_while_it_is_news() {
    let declared = changed(expired_command(), |command| command.row.declared_by = Some("mark".into()));
    for minutes in [0, 59] {
        assert_eq!(decide(&later(minutes, &declared)), notice::kept("mark"));
    }
    // A report that another process may have made is not repeated by each new process.
    for minutes in [60, 6000] {
        assert_eq!(decide(&later(minutes, &declared)), Action::Settle);
    }
}

#[test]
fn a_command_that_came_back_is_marked_before_it_has_run_and_stays_whoever_leads_and_that_is_told() {
    for expiry in [Ok(None), Ok(Some(now() + SignedDuration::from_secs(60))), Ok(Some(now()))] {
        let back = Observed { came_back: true, ..observed(expiry.clone()) };
        assert_eq!(decide(&back), Action::Keep, "it would be told before it is true");
        // The next leader knows nothing about the deletion.
        let kept = changed(observed(expiry), |command| command.row.is_kept = true);
        assert_eq!(decide(&kept), notice::created_again());
    }
}

#[test]
fn a_command_that_was_restored_after_its_end_goes_after_its_ttl_and_nobody_is_told_that_it_runs_again() {
    let object = json!({
        "metadata": {
            "name": "task", "uid": "1", "creationTimestamp": "2026-01-01T11:50:00Z",
            // It may be marked before its outcome is restored.
            "annotations": {"catena.dev/kept": "1"},
        },
        "spec": {"ttlSecondsAfterFinished": 600},
        "status": {
            "completionTime": "2026-01-01T11:40:00Z", "conditions": [{"type": "Succeeded", "status": "True"}],
        },
    });
    let shipped = shipped();
    let reading = shipped.expiry(&shipped.listed[0]).unwrap();
    let row = CommandRow::of(serde_json::from_value(object).unwrap(), None, &reading);
    let restored = changed(observed(Ok(None)), |command| command.row = row);
    for came_back in [false, true] {
        let restored = Observed { came_back, ..restored.clone() };
        assert_eq!(decide(&restored), Action::Delete);
        assert_eq!(decide(&later(-1, &restored)), Action::Wait(Duration::from_secs(60)));
    }
}

#[test]
fn a_command_that_is_being_deleted_is_left_alone() {
    let terminating = changed(expired_command(), |command| {
        command.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T11:00:00Z")).unwrap();
    });
    assert_eq!(decide(&terminating), Action::Settle);
}

#[test]
fn a_command_that_was_deleted_is_not_deleted_again_while_a_cache_shows_it() {
    assert_eq!(decide(&Observed { is_deleted: true, ..expired_command() }), Action::Settle);
}

#[test]
fn a_command_that_is_backing_off_is_not_tried() {
    let failure = Failure::transient("X", "");
    let deferred = Observed { backoffs: Backoffs::of_everything(failure), ..expired_command() };
    assert_eq!(decide(&deferred), Action::Settle);
}

#[test]
fn a_command_that_cannot_be_read_is_never_deleted() {
    let error = Expression::compile("finishedAt", "object.", &["object"]).unwrap_err();
    let unreadable = observed(Err(Box::new(error.clone())));
    assert_eq!(decide(&unreadable), Action::Refuse(Box::new(error)));
}
