mod ends;
mod fills;
mod goes_on;
mod proves;
mod ranks;
mod recognises;
mod replaces;
mod reports;

use catena_api::{BasicReplicaSet, BasicReplicaSetSpec};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use operator_kit::{report::StatusAge, run::Backoffs};
use operator_watch::Failure;
use pod_state::{Phase, PodProblem, PodState};

use super::*;
use crate::pod::Owner;

const NEW: &str = "new";
const OLD: &str = "old";

fn now() -> Timestamp {
    Timestamp::from_second(1_000_000).unwrap()
}

fn ago(seconds: i64) -> Timestamp {
    now() - SignedDuration::from_secs(seconds)
}

fn pod(slot: u32, revision: &str, state: PodState) -> Arc<PodRow> {
    Arc::new(PodRow {
        namespace: "shop".into(),
        name: format!("web-{slot}").into(),
        uid: format!("pod-{slot}").into(),
        owner: Some(Owner { uid: "set".into(), name: "web".into(), is_outdated: false }),
        revision: revision.into(),
        slot: Some(slot),
        created: ago(60),
        deletion_cost: 0,
        state,
        ready_since: None,
        node: "".into(),
        phase: Phase::Running,
        restarts: 0,
    })
}

fn starting() -> PodState {
    PodState::NotReady(PodProblem {
        reason: "NotReady".into(),
        message: "".into(),
        since: now(),
        is_conclusive: false,
    })
}

fn stuck(reason: &str) -> PodState {
    PodState::NotReady(PodProblem {
        reason: reason.into(),
        message: "why".into(),
        since: ago(5),
        is_conclusive: true,
    })
}

fn finished() -> PodState {
    PodState::Finished(PodProblem {
        reason: "Evicted".into(),
        message: "".into(),
        since: ago(5),
        is_conclusive: true,
    })
}

fn observed(replicas: i32, pods: Vec<Arc<PodRow>>) -> Observed {
    let metadata = ObjectMeta {
        name: Some("web".into()),
        namespace: Some("shop".into()),
        uid: Some("set".into()),
        generation: Some(1),
        ..ObjectMeta::default()
    };
    let set = BasicReplicaSet {
        metadata,
        spec: BasicReplicaSetSpec { replicas, ..Default::default() },
        status: None,
    };
    Observed {
        set: Arc::new(set),
        backoffs: Backoffs::default(),
        is_blind: false,
        now: now(),
        revision: Ok(NEW.into()),
        former: None,
        unread: Vec::new(),
        pods,
        ended: None,
        orphans: Vec::new(),
        taken: Vec::new(),
        unclear: 0,
        unanswered: None,
        succession: None,
        status_age: StatusAge::Written(Duration::from_secs(60)),
    }
}

fn created(action: &Action) -> Vec<u32> {
    match action {
        Action::Create { slots, .. } => slots.clone(),
        action => panic!("{action:?}"),
    }
}

fn deleted(action: &Action) -> Vec<String> {
    match action {
        Action::Delete(pods) => pods.iter().map(|pod| pod.name.to_string()).collect(),
        action => panic!("{action:?}"),
    }
}

fn written(action: Action) -> BasicReplicaSetStatus {
    match action {
        Action::WriteStatus(status) => *status,
        action => panic!("{action:?}"),
    }
}

fn failure(reason: &'static str) -> Failure {
    Failure::transient(reason, "why")
}
