//! Action → the writes of the step.

use std::sync::Arc;

use basic_deployment_controller::{
    child::Child,
    command::{Command, REPORTED},
    decide::Action,
    desired::Desired,
    observed::Observed,
    revision::{self, Revision},
    status::CONDITIONS,
    step,
};
use catena_api::keys;
use operator_kit::render::Rendered;
use serde_json::json;

use super::super::super::{
    content::{Server, Stored, kind_of, object, texts},
    sabotage::Sabotage,
    scope::Scope,
    write::{Purpose, Write},
};
use crate::{
    clock,
    server::{
        object::{Key, Kind, Owner, Text, Version},
        operation::{Change, Preconditions, Propagation},
    },
};

/// The annotations that an apply removes if the controller no longer sets them.
const MARKS: [&str; 3] = [keys::LAST_COMMAND, keys::ROLLED_BACK_BY, keys::REJECTED_HASH];

/// The writes of a step.
pub fn writes(
    server: &Server,
    scope: &Scope,
    deployment: &Stored,
    observed: &Observed,
    action: Action,
) -> Vec<Write> {
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
        Action::Renumber { revision, number, rejects } => {
            let mark = |key: &str, value: Option<String>| {
                Change::Annotation(key.into(), value.map(|value| (&*value).into()))
            };
            let changes = vec![
                mark(keys::REJECTED_HASH, rejects.hash),
                mark(keys::ROLLED_BACK_BY, rejects.command),
                Change::Spec(json!({"revision": number}).into()),
            ];
            vec![patch(Purpose::Other, key(Kind::Revision, &revision.name), &revision.uid, changes)]
        }
        Action::Create { desired, replicas, .. } => {
            let all = observed.deployment.spec.replicas;
            let replicas = if scope.has(Sabotage::StartsAllAtOnce) { all } else { replicas };
            vec![apply(deployment, &desired, replicas, None)]
        }
        Action::Apply { child, desired, replicas, .. } => {
            vec![apply(deployment, &desired, replicas, Some(&child))]
        }
        Action::Restart { child, command, token } => {
            let by_the_clock = || Some(clock::time(server.clock).to_string());
            let token = if scope.has(Sabotage::RestartsByTheClock) { by_the_clock() } else { token };
            let mut changes =
                vec![Change::Annotation(keys::LAST_COMMAND.into(), Some((&*command.uid).into()))];
            changes.extend(token.map(|token| Change::Spec(json!({"spec": {"restartedAt": token}}).into())));
            let purpose = Purpose::Restart((&*command.uid).into());
            let key = key(kind_of(&child.object), &child.name);
            let version = child.version.parse().ok().map(Version);
            let version = version.filter(|_| !scope.has(Sabotage::RestartsByTheClock));
            let preconditions = Preconditions { uid: Some(uid_of(&child.uid)), version };
            vec![Write::patch(deployment, purpose, key, preconditions, changes)]
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
        Action::Tell(news) => {
            let tell = |(command, status): (Arc<Command>, _)| {
                let (key, uid) = (key(Kind::Restart, &command.name), uid_of(&command.uid));
                let preconditions = Preconditions::uid(&uid);
                let write =
                    Write::status(deployment, Purpose::Tell, key, preconditions, json!(status), &REPORTED);
                write.of_step(step::TELL, Some(uid))
            };
            news.into_iter().map(tell).collect()
        }
        Action::WriteStatus(status) => {
            let (key, uid) = (deployment.meta.key.clone(), deployment.meta.uid.clone());
            let exactly = Preconditions { uid: Some(uid), version: Some(deployment.meta.version) };
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
    let token = child.map_or(desired.token.as_deref(), Child::restarted_at);
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
    let dropped = MARKS.into_iter().filter(|mark| !annotations.contains_key(*mark));
    changes.extend(dropped.map(|mark| Change::Annotation(mark.into(), None)));
    changes.extend(annotations.into_iter().map(|(key, value)| Change::Annotation(key, Some(value))));
    changes.push(Change::AddOwner(Owner::controller(&deployment.meta)));
    changes.push(Change::Spec(spec.into()));
    let key = Key { kind: kind_of(&desired.object), name: (&*child.name).into() };
    let version = child.version.parse().ok().map(Version).filter(|_| child.has_followed_commands());
    let preconditions = Preconditions { uid: Some((&*child.uid).into()), version };
    Write::patch(deployment, purpose, key, preconditions, changes)
}
