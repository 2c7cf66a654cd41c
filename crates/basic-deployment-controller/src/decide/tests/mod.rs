//! Fixtures, and the tests by topic.

mod blocking_pods;
mod breaches;
mod budget;
mod child;
mod contests;
mod events;
mod exchange;
mod former;
mod handed;
mod restarts;
mod revisions;
mod rollbacks;
mod steps;
mod telling;

use std::{sync::Arc, time::Duration};

use catena_api::{BasicDeploymentSpec, BasicDeploymentStatus, Pin, contract::ReplicaContract, keys};
use jiff::Timestamp;
use operator_kit::{
    report::{Conditions, StatusAge},
    run::Backoffs,
};
use operator_templates::Rendered;
use operator_watch::Failure;
use serde_json::{Value, json};

use super::*;
use crate::{
    child::Child,
    child_kind::ChildKind,
    desired::Desired,
    drift::changed_field,
    fixtures::{self, deployment, desired, replica_sets},
    observed::Found,
    revision::{self, Revision},
    status::status,
};

const NEW: &str = "new";

fn rendered(hash: &str) -> Rendered {
    Rendered { hash: hash.into(), ..fixtures::rendered() }
}

/// A child in its desired state, with `changes` merged over it.
fn child(changes: Value) -> Arc<Child> {
    let mut object = fixtures::child_object("web", "child");
    merge(&mut object, changes);
    Arc::new(Child::of(serde_json::from_value(object).unwrap(), &replica_sets()))
}

/// Changes the contract of the child's kind.
fn with_contract(mut observed: Observed, change: impl FnOnce(&mut ReplicaContract)) -> Observed {
    let mut contract = ReplicaContract::default();
    change(&mut contract);
    let kind = ChildKind { contract: contract.try_into().unwrap(), ..ChildKind::clone(&replica_sets()) };
    let kind = Arc::new(kind);
    observed.kinds = vec![fixtures::listed(kind.clone())];
    if let Found::Ours(child) = &mut observed.child {
        Arc::make_mut(child).kind = kind.clone();
    }
    if let Ok(desired) = &mut observed.desired {
        desired.kind = kind;
    }
    observed
}

fn create(desired: Desired) -> Action {
    create_with(desired, 3)
}

fn create_with(desired: Desired, replicas: i32) -> Action {
    Action::Create { desired, replicas }
}

fn merge(object: &mut Value, changes: Value) {
    match (object, changes) {
        (Value::Object(object), Value::Object(changes)) => {
            for (name, value) in changes {
                merge(object.entry(name).or_insert(Value::Null), value);
            }
        }
        (place, value) => *place = value,
    }
}

/// The stored revision for a hash.
fn revision(number: i64, hash: &str) -> Arc<Revision> {
    let stored = fixtures::revision(&format!("web-{hash}"));
    Arc::new(Revision { number, hash: hash.into(), ..Revision::clone(&stored) })
}

/// A pin of the deployment.
fn pin(hash: &str, rejects: &str) -> Pin {
    Pin { uid: "deployment".into(), hash: hash.into(), rejects: rejects.into() }
}

/// The same, held on a revision instead of the present rendering.
fn pinned(mut observed: Observed, hash: &str) -> Observed {
    let rejects =
        observed.rendered.as_ref().map_or_else(|_| NEW.to_owned(), |rendered| rendered.hash.clone());
    observed.pin = Some(pin(hash, &rejects));
    observed.desired = Ok(Desired::new(&observed.deployment, rendered(hash), replica_sets()));
    observed
}

/// The observation of a deployment whose rendering is stored as its first revision.
fn observed(child: Found) -> Observed {
    Observed { child, now: Timestamp::from_second(1_000_000).unwrap(), ..fixtures::observed() }
}

fn ours(changes: Value) -> Observed {
    observed(Found::Ours(child(changes)))
}

fn spec(observed: &mut Observed) -> &mut BasicDeploymentSpec {
    &mut Arc::make_mut(&mut observed.deployment).spec
}

fn written(action: Action) -> BasicDeploymentStatus {
    match action {
        Action::WriteStatus(status) => *status,
        action => panic!("{action:?}"),
    }
}

fn ready(status: &BasicDeploymentStatus) -> (bool, String) {
    let condition = Conditions::find(&status.conditions, Conditions::READY).unwrap();
    assert_eq!(condition.status == "True", status.ready);
    (status.ready, condition.reason.clone())
}
