//! Action → the writes of the step.

use std::sync::Arc;

use basic_deployment_controller::{
    child::Child,
    decide::Action,
    desired::Desired,
    observed::Observed,
    revision::{self, Revision},
    status::CONDITIONS,
    step,
};
use catena_api::keys;
use operator_templates::Rendered;
use serde_json::json;

use super::super::super::{
    content::{Stored, kind_of, object, texts},
    sabotage::Sabotage,
    scope::Scope,
    write::{Purpose, Write},
};
use crate::server::{
    object::{Key, Kind, Owner, Text, Version},
    operation::{Change, Preconditions, Propagation},
};

/// The writes of a step.
pub fn writes(scope: &Scope, deployment: &Stored, observed: &Observed, action: Action) -> Vec<Write> {
    let key = |kind, name: &str| Key { kind, name: name.into() };
    let uid_of = |uid: &str| -> Text { uid.into() };
    let patch = |purpose, key, uid: &str, changes| {
        Write::patch(deployment, purpose, key, Preconditions::uid(&uid_of(uid)), changes)
    };
    let change = |child: &Child, purpose, change| {
        patch(purpose, key(kind_of(&child.object), &child.name), &child.uid, vec![change])
    };
    let step = action.step();
    match action {
        Action::Record { rendered, number } => vec![record(deployment, &rendered, number)],
        Action::Renumber { revision, number } => {
            let at = Change::Annotation(keys::NUMBERED_AT.into(), Some(observed.now.to_string().into()));
            let changes = vec![at, Change::Spec(json!({"revision": number}).into())];
            vec![patch(Purpose::Other, key(Kind::Revision, &revision.name), &revision.uid, changes)]
        }
        Action::Create { desired, replicas } => {
            let all = observed.deployment.spec.replicas;
            let replicas = if scope.has(Sabotage::StartsAllAtOnce) { all } else { replicas };
            vec![apply(deployment, &desired, replicas, None)]
        }
        Action::Apply { child, desired, replicas, .. } => {
            vec![apply(deployment, &desired, replicas, Some(&child))]
        }
        Action::Restart { child, token } => {
            let key = key(kind_of(&child.object), &child.name);
            let version = child.version.parse().ok().map(Version);
            let preconditions = Preconditions { uid: Some(uid_of(&child.uid)), version };
            let changes = vec![Change::Spec(json!({"spec": {"restartedAt": token}}).into())];
            vec![Write::patch(deployment, Purpose::Other, key, preconditions, changes).of_step(step, None)]
        }
        Action::Scale { child, replicas, .. } => {
            let is_ended = scope.has(Sabotage::EndsTheFormerFirst) && step == step::SCALE_FORMER;
            let replicas = if is_ended { 0 } else { replicas };
            let mut spec = json!({});
            child.kind.fields().replicas.set(&mut spec, replicas.into());
            let write = change(&child, Purpose::Scale(replicas), Change::Spec(spec.into()));
            vec![write.of_step(step, None)]
        }
        Action::Strip { child, patch, .. } => {
            let spec = json!({"spec": patch["spec"]});
            vec![change(&child, Purpose::Other, Change::Spec(spec.into()))]
        }
        Action::Delete(children) => {
            let delete = |child: &Arc<Child>| {
                let preconditions = Preconditions::uid(&uid_of(&child.uid));
                let key = key(kind_of(&child.object), &child.name);
                Write::delete(deployment, Purpose::Other, key, preconditions, Some(Propagation::Foreground))
            };
            children.iter().map(delete).collect()
        }
        Action::Prune(revisions) => {
            let delete = |old: &Arc<Revision>| {
                let preconditions = Preconditions::uid(&uid_of(&old.uid));
                Write::delete(deployment, Purpose::Other, key(Kind::Revision, &old.name), preconditions, None)
            };
            revisions.iter().map(delete).collect()
        }
        Action::Unpin => {
            let changes = vec![Change::Annotation(keys::PINNED_REVISION.into(), None)];
            let key = deployment.meta.key.clone();
            let write = Write::patch(deployment, Purpose::Other, key, exactly(deployment), changes);
            vec![write.of_step(step, None)]
        }
        Action::WriteStatus(status) => {
            let (key, exactly) = (deployment.meta.key.clone(), exactly(deployment));
            let write = Write::status(deployment, Purpose::Status, key, exactly, json!(status), &CONDITIONS);
            vec![write.of_step(step::STATUS, None)]
        }
        // Each kind of the model has one version, and each revision its owner.
        Action::RefreshOwner { .. }
        | Action::Adopt(_)
        | Action::Refuse(_)
        | Action::RefuseFormer(_)
        | Action::Wait(_)
        | Action::Settle => Vec::new(),
    }
}

/// This very state of an object.
fn exactly(object: &Stored) -> Preconditions {
    Preconditions { uid: Some(object.meta.uid.clone()), version: Some(object.meta.version) }
}

fn record(deployment: &Stored, rendered: &Rendered, number: i64) -> Write {
    let name = revision::name(&deployment.meta.key.name, &deployment.meta.uid, &rendered.hash);
    let spec = json!({"data": rendered.object, "revision": number});
    let mut revision = object(Kind::Revision, &name, spec);
    revision.meta.labels = [(keys::DEPLOYMENT_UID.into(), deployment.meta.uid.clone())].into();
    revision.meta.annotations = [(keys::HASH.into(), (&*rendered.hash).into())].into();
    revision.meta.owners = vec![Owner::controller(&deployment.meta)];
    Write::create(deployment, Purpose::Record, revision)
}

/// Server-side apply: without a child it creates one, and takes nothing from an object that came meanwhile.
fn apply(deployment: &Stored, desired: &Desired, replicas: i32, child: Option<&Child>) -> Write {
    let contract = desired.kind.fields();
    let mut spec = json!({"spec": desired.object["spec"]});
    contract.replicas.set(&mut spec, replicas.into());
    let token = desired.token_for(child);
    if let (Some(restarted_at), Some(token)) = (&contract.restarted_at, token) {
        restarted_at.set(&mut spec, token.into());
    }
    let [labels, annotations] = ["labels", "annotations"].map(|map| texts(&desired.object, map));
    let purpose = Purpose::Apply((&*desired.hash).into(), desired.comparable().into());
    let Some(child) = child else {
        let mut new = object(kind_of(&desired.object), desired.name(), spec);
        (new.meta.labels, new.meta.annotations) = (labels, annotations);
        new.meta.owners = vec![Owner::controller(&deployment.meta)];
        return Write::create(deployment, purpose, new);
    };
    let mut changes: Vec<_> =
        labels.into_iter().map(|(key, value)| Change::Label(key, Some(value))).collect();
    changes.extend(annotations.into_iter().map(|(key, value)| Change::Annotation(key, Some(value))));
    changes.push(Change::AddOwner(Owner::controller(&deployment.meta)));
    changes.push(Change::Spec(spec.into()));
    let key = Key { kind: kind_of(&desired.object), name: (&*child.name).into() };
    let version = child.version.parse().ok().map(Version).filter(|_| token.is_some());
    let preconditions = Preconditions { uid: Some((&*child.uid).into()), version };
    Write::patch(deployment, purpose, key, preconditions, changes)
}
