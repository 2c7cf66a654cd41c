use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use backup_controller::{
    Settings,
    annotation::{BackupStatus, LastAttempt, State},
    backup::{Failures, MAX_LOOK_UPS, Verdict, render},
    metadata,
    settings::LAST_ATTEMPT,
};
use catena_api::reason;
use serde_json::{Value, json};

use super::*;
use crate::{
    fixtures::{TEMPLATE, created, ended, failed, settings, target, with_policy},
    mock_server::{DATE, server},
};

/// A cluster with these backups, and the number of look-ups.
fn cluster(backups: Vec<Value>) -> (Client, Arc<AtomicU32>) {
    let backups: HashMap<String, Value> =
        backups.into_iter().map(|backup| (metadata::text(&backup, "name").to_owned(), backup)).collect();
    let lookups = Arc::new(AtomicU32::new(0));
    let counted = lookups.clone();
    let client = server(Some(DATE), move |path| {
        counted.fetch_add(1, Ordering::Relaxed);
        let name = path.rsplit('/').next().unwrap_or_default();
        let absent = json!({"kind": "Status", "reason": "NotFound", "code": 404, "details": {"name": name}});
        backups.get(name).map_or((404, absent), |backup| (200, backup.clone()))
    });
    (client, lookups)
}

async fn survey(client: &Client, settings: &Settings, first: u32) -> Situation {
    surveyed(client, settings, &failed(first), &mut Failures::default()).await
}

async fn surveyed(
    client: &Client,
    settings: &Settings,
    status: &BackupStatus,
    failures: &mut Failures,
) -> Situation {
    let (kind, target) = (&*settings.kinds["maps"], target("shop"));
    let now = "2026-06-01T12:00:30Z".parse().unwrap();
    let begun = status.begun_by(&kind.policy);
    let search = Search::begin(kind, &target, now, Some(status), begun, failures);
    super::situation(client, &settings.templates, search).await.unwrap()
}

/// The situation of an object whose given attempts failed, beginning with one of them, and the number of look-ups.
async fn situation(tries: impl Iterator<Item = u32>, first: u32) -> (Situation, u32) {
    let settings = settings(TEMPLATE, "backups");
    let failed = |attempt| {
        let mut backup = created(&settings, &target("shop"), attempt);
        backup["status"] = ended("Failed");
        backup
    };
    let (client, lookups) = cluster(tries.map(failed).collect());
    let situation = survey(&client, &settings, first).await;
    (situation, lookups.load(Ordering::Relaxed))
}

/// Where an object may be released without a backup, one that took too long is a try like a failed one, and a later
/// success still counts.
#[tokio::test]
async fn a_backup_that_took_too_long_is_given_up_for_the_next_one_unless_it_succeeds_after_all() {
    let policy = |on_failure| json!({"deadline": "10s", "onFailure": on_failure, "tries": 2});
    let [releasing, holding] =
        ["Release", "Hold"].map(|on_failure| with_policy(TEMPLATE, "backups", &policy(on_failure)));
    let begun = |settings: &Settings, attempts: &[u32]| {
        attempts.iter().map(|attempt| created(settings, &target("shop"), *attempt)).collect::<Vec<_>>()
    };
    let found = async |settings: &Settings, backups| survey(&cluster(backups).0, settings, 1).await;

    let given_up = found(&releasing, begun(&releasing, &[1])).await;
    assert!(
        matches!(&given_up, Situation::Failed { last, .. } if last.attempt == 1 && last.is_given_up),
        "{given_up:?}"
    );
    let held = found(&holding, begun(&holding, &[1])).await;
    assert!(matches!(&held, Situation::There { last, .. } if !last.is_given_up), "{held:?}");

    let mut late = begun(&releasing, &[1, 2]);
    late[0]["status"] = ended("Complete");
    let proven = found(&releasing, late).await;
    assert!(
        matches!(&proven, Situation::There { last, verdict: Verdict::Succeeded } if last.attempt == 1),
        "{proven:?}"
    );
}

/// A Job with `ttlSecondsAfterFinished` is soon gone; counted from the start, it would be tried for ever, without a pause.
/// A report could be forged, so that it alone releases nothing.
#[tokio::test]
async fn a_failed_backup_that_is_gone_counts_for_its_policy() {
    let policy = |on_failure| json!({"onFailure": on_failure, "tries": 9});
    for on_failure in ["Release", "Hold"] {
        let settings = with_policy(TEMPLATE, "backups", &policy(on_failure));
        let of = |policy: &str| LastAttempt { policy: policy.to_owned(), last: 2 };
        let own = BackupStatus { failed: Some(of(&settings.kinds["maps"].policy)), ..failed(2) };
        let policy = &settings.kinds["maps"].policy;
        for seen in [&[][..], &[1], &[1, 2], &[2]] {
            let mut failures = Failures::none_by(policy);
            for attempt in seen {
                failures.add(*attempt);
            }
            let gone = surveyed(&cluster(Vec::new()).0, &settings, &own, &mut failures).await;
            let Situation::Failed { last, next, seen: number } = gone else { panic!("{gone:?}") };
            assert_eq!((last.attempt, next), (2, rendered(&settings, 3)), "{on_failure}");
            assert_eq!(number as usize, seen.len(), "{on_failure}");
        }

        let running = cluster(vec![created(&settings, &target("shop"), 3)]).0;
        let third = surveyed(&running, &settings, &own, &mut Failures::none_by(policy)).await;
        assert!(matches!(&third, Situation::There { last, .. } if last.attempt == 3), "{third:?}");

        let mut going = created(&settings, &target("shop"), 2);
        going["metadata"]["deletionTimestamp"] = json!("2026-06-01T12:00:20Z");
        let mut failures = Failures::none_by(policy);
        let gone_soon = surveyed(&cluster(vec![going]).0, &settings, &own, &mut failures).await;
        assert!(matches!(&gone_soon, Situation::Failed { last, .. } if last.attempt == 2), "{gone_soon:?}");
        assert_eq!(failures.number(), 0, "an attempt whose failure nobody has seen counts for nothing");

        let given_up = BackupStatus { reason: reason::BACKUP_OVERDUE.into(), ..own.clone() };
        let mut failures = Failures::none_by(policy);
        let gone = surveyed(&cluster(Vec::new()).0, &settings, &given_up, &mut failures).await;
        assert!(matches!(&gone, Situation::Failed { last, .. } if last.is_given_up), "{gone:?}");

        let by_another = BackupStatus { failed: Some(of("another")), ..failed(2) };
        let first =
            surveyed(&cluster(Vec::new()).0, &settings, &by_another, &mut Failures::none_by(policy)).await;
        assert_eq!(first, Situation::Absent { attempt: 1, backup: rendered(&settings, 1) }, "{on_failure}");
    }
}

/// The controller may have been away while a Job ended and was deleted after its time to live.
#[tokio::test]
async fn an_attempt_that_was_recorded_and_is_gone_unseen_is_followed_by_the_next_one_and_releases_nothing() {
    let settings = with_policy(TEMPLATE, "backups", &json!({"onFailure": "Release", "tries": 1}));
    let begun = Some(LastAttempt { policy: settings.kinds["maps"].policy.clone(), last: 1 });
    let recorded = BackupStatus { begun, state: State::BackingUp, ..failed(1) };
    let gone = surveyed(&cluster(Vec::new()).0, &settings, &recorded, &mut Failures::default()).await;
    let Situation::Failed { last, next, seen } = gone else { panic!("{gone:?}") };
    assert_eq!((last.attempt, last.has_vanished, seen), (1, true, 0));
    assert_eq!(next, rendered(&settings, 2));
}

fn rendered(settings: &Settings, attempt: u32) -> Value {
    render(&settings.templates, &settings.kinds["maps"], &target("shop"), attempt).unwrap()
}

#[tokio::test]
async fn the_last_of_many_failed_tries_is_found_some_at_a_time() {
    let mut first = 1;
    for expected in [32, 63, 94] {
        let (found, lookups) = situation(1..=100, first).await;
        let Situation::Unfinished { last } = found else { panic!("{found:?}") };
        assert_eq!((last.attempt, lookups), (expected, MAX_LOOK_UPS));
        first = last.attempt;
    }
    let (found, _) = situation(1..=100, first).await;
    assert!(matches!(&found, Situation::Failed { last, .. } if last.attempt == 100), "{found:?}");
}

#[tokio::test]
async fn tries_come_to_an_end_whatever_number_they_begin_with() {
    for first in [LAST_ATTEMPT, u32::MAX] {
        let (found, lookups) = situation([LAST_ATTEMPT].into_iter(), first).await;
        let Situation::Unusable(problem) = found else { panic!("{found:?}") };
        assert_eq!(problem.reason, "BackupsExhausted");
        assert_eq!(lookups, 1);
    }
}

#[tokio::test]
async fn while_the_kind_of_a_backup_is_not_served_none_is_created() {
    let settings = settings(TEMPLATE, "backups");
    let client = server(Some(DATE), |_| (404, json!("404 page not found")));
    let found = survey(&client, &settings, 1).await;
    let Situation::Unusable(problem) = found else { panic!("{found:?}") };
    assert_eq!(problem.reason, "BackupKindNotServed");
    assert!(problem.message.contains("backups.job.apiVersion"), "{problem}");
}

#[tokio::test]
async fn a_backup_that_is_nested_too_deep_is_not_taken_for_another_object() {
    let settings = settings(TEMPLATE, "backups");
    let mut backup = created(&settings, &target("shop"), 1);
    backup["status"] = json!({"nested": (0..300).fold(json!(1), |inner, _| json!([inner]))});
    let (client, _) = cluster(vec![backup]);
    let found = survey(&client, &settings, 1).await;
    let Situation::Unusable(problem) = found else { panic!("{found:?}") };
    assert_eq!(problem.reason, "Unreadable");
}
