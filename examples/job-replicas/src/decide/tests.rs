use jiff::Timestamp;
use operator_kit::{report::Conditions, run::Backoffs};
use serde_json::json;

use super::*;
use crate::{job::JobRow, kind::JobReplicas, status::status};

fn observed(replicas: i32, jobs: &[(&str, Phase)]) -> Observed {
    let set: JobReplicas = serde_json::from_value(json!({
        "apiVersion": "example.com/v1", "kind": "JobReplicas",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u1", "generation": 1},
        "spec": {"replicas": replicas, "image": "worker:2"},
    }))
    .unwrap();
    let revision = job::revision(&set);
    let row = |(number, (name, phase)): (usize, &(&str, Phase))| {
        Arc::new(JobRow {
            namespace: "shop".into(),
            name: format!("{name}-{number}"),
            uid: number.to_string(),
            owner: "u1".into(),
            owner_name: "web".into(),
            revision: if *name == "new" { revision.clone() } else { "older".into() },
            created: Timestamp::UNIX_EPOCH,
            phase: *phase,
        })
    };
    let jobs = jobs.iter().enumerate().map(row).collect();
    Observed {
        set: Arc::new(set),
        backoffs: Backoffs::default(),
        now: Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(60),
        revision,
        jobs,
        surge: 1,
    }
}

fn deleted(observed: &Observed) -> Vec<String> {
    match decide(observed) {
        Action::Delete(jobs) => jobs.iter().map(|job| job.name.clone()).collect(),
        _ => Vec::new(),
    }
}

fn created(observed: &Observed) -> usize {
    if let Action::Create(names) = decide(observed) { names.len() } else { 0 }
}

#[test]
fn missing_jobs_are_created_under_names_that_a_repeated_create_meets_again() {
    let nothing = observed(2, &[]);
    assert_eq!(decide(&nothing), decide(&nothing.clone()));
    assert_eq!(created(&nothing), 2);
}

#[test]
fn an_old_job_that_serves_goes_only_when_a_new_one_does() {
    assert_eq!(created(&observed(1, &[("old", Phase::Ready)])), 1);
    assert!(deleted(&observed(1, &[("old", Phase::Ready), ("new", Phase::Starting)])).is_empty());
    assert_eq!(deleted(&observed(1, &[("old", Phase::Ready), ("new", Phase::Ready)])), ["old-0"]);
}

#[test]
fn surplus_and_ended_jobs_go_and_those_that_serve_stay() {
    assert_eq!(deleted(&observed(1, &[("new", Phase::Starting), ("new", Phase::Ready)])), ["new-0"]);
    assert_eq!(deleted(&observed(1, &[("new", Phase::Ended)])), ["new-0"]);
}

#[test]
fn a_job_that_is_being_deleted_still_takes_its_room() {
    let jobs = [("old", Phase::Terminating), ("old", Phase::Terminating)];
    assert_eq!(created(&observed(1, &jobs)), 0);
}

#[test]
fn readiness_waits_for_the_last_old_job() {
    let is_ready = |jobs: &[(&str, Phase)]| {
        Conditions::is_true(&status(&observed(1, jobs)).conditions, Conditions::READY)
    };
    assert!(is_ready(&[("new", Phase::Ready)]));
    assert!(!is_ready(&[("new", Phase::Ready), ("old", Phase::Terminating)]));
    assert!(!is_ready(&[("old", Phase::Ready)]));
}
