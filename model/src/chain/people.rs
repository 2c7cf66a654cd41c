//! The deeds of people and pipelines.

use backup_controller::backup::render;
use catena_api::{
    command::RecentCommands,
    keys::{self, BOUND_TO, FORCE_RELEASE},
};
use serde_json::{Value, json};

use super::{
    content::{
        Json, NAME, Object, Operation, Stored, desire, ended, kind_of_child, metadata, object, texts, whole,
    },
    controllers::Controller,
    rule::{has_ended, has_started},
    scope::{Commands, Scope},
    settings::{DECLARED, ENTRY, HOLDING, OTHER},
    world::{World, deployment_key},
};
use crate::server::{
    object::{Key, Kind, Meta, Owner, Text},
    operation::{Change, Preconditions},
};

/// Seconds after which a finished command is deleted: one tick.
const TTL: u32 = 60;
/// The names of restarts.
const RESTARTS: [&str; 2] = ["again", "more"];
/// The name of rollbacks.
const ROLLBACK: &str = "back";

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Deed {
    /// The `BasicDeployment` is created.
    Create,
    /// Its replicas are changed.
    Scale,
    /// Its image is changed.
    Roll,
    /// Its child is to be of the other kind.
    Switch,
    /// It is deleted.
    Delete,
    /// A restart is created.
    Order(&'static str),
    /// A rollback to the previous revision is created.
    RollBack,
    /// A command is deleted.
    Cancel(Key),
    /// The record of the last commands is removed from the `BasicDeployment`.
    WipeProof,
    /// The status of a command is removed.
    WipeStatus(Key),
    /// An object is written that looks like the next backup of it.
    Forge,
    /// A backup is deleted.
    DeleteBackup(Key),
    /// The annotation is set that releases a held object.
    Release,
}

impl World {
    /// The deeds that are possible now.
    pub fn deeds(&self, scope: &Scope) -> Vec<Deed> {
        let mut deeds = Vec::new();
        let living = self.deployment().filter(|deployment| !deployment.meta.is_deleting);
        if self.deployment().is_none() {
            deeds.push(Deed::Create);
        }
        if living.is_some() {
            if self.left.edits > 0 {
                deeds.extend([Deed::Scale, Deed::Roll]);
            }
            if self.left.switches > 0 {
                deeds.push(Deed::Switch);
            }
            if self.left.deletions > 0 {
                deeds.push(Deed::Delete);
            }
        }
        let may_order = living.is_some() || scope.own.runs(Controller::Binder);
        if self.left.orders > 0 && may_order {
            deeds.extend(self.missing_command().map(Deed::Order));
        }
        let is_missing = || self.server.get(&command_key(Kind::Rollback, ROLLBACK)).is_none();
        if self.left.rollbacks > 0 && may_order && is_missing() {
            deeds.push(Deed::RollBack);
        }
        if self.left.cancels > 0 {
            deeds.extend(self.commands().map(|command| Deed::Cancel(command.meta.key.clone())));
        }
        if self.left.wipes > 0 {
            deeds.extend(living.into_iter().flat_map(|target| self.wipes(target)));
        }
        if self.left.meddling > 0 && self.deployment().is_some() {
            deeds.extend([Deed::Forge, Deed::Release]);
            deeds
                .extend(self.objects(Kind::Backup).map(|backup| Deed::DeleteBackup(backup.meta.key.clone())));
        }
        deeds
    }

    /// The next restart that does not exist.
    pub fn missing_command(&self) -> Option<&'static str> {
        RESTARTS.into_iter().find(|name| self.server.get(&command_key(Kind::Restart, name)).is_none())
    }

    /// One of the two records that a command has run may be removed. If both were, nobody could know it.
    fn wipes(&self, target: &Stored) -> Vec<Deed> {
        let ran = RecentCommands::on(&metadata(target));
        let recorded = || self.commands().filter(|command| ran.has(&command.meta.uid));
        let of_status = recorded().filter(|command| has_started(command) && !has_ended(command));
        let mut wipes: Vec<_> = of_status.map(|command| Deed::WipeStatus(command.meta.key.clone())).collect();
        if recorded().next().is_some() && recorded().all(|command| has_started(command)) {
            wipes.push(Deed::WipeProof);
        }
        wipes
    }

    /// A person acts.
    pub fn act(&mut self, scope: &Scope, deed: Deed) {
        let delete = |key, propagation| Operation::delete(key, Preconditions::default(), propagation);
        match deed {
            Deed::Create => drop(self.ask(scope, Operation::Create(deployment(scope)))),
            Deed::Scale | Deed::Roll => {
                self.left.edits -= 1;
                self.edit(scope, |deployment, spec| match (&deed, desire(deployment)) {
                    (Deed::Scale, (replicas, _)) => {
                        spec["replicas"] = (if replicas == 2 { 3 } else { 2 }).into();
                    }
                    (_, (_, image)) => {
                        spec["parameters"]["image"] = (if image == "a" { "b" } else { "a" }).into();
                    }
                });
            }
            Deed::Switch => {
                self.left.switches -= 1;
                self.edit(scope, |deployment, spec| {
                    let is_other = kind_of_child(deployment) == Kind::Workload;
                    spec["template"] = if is_other { "default" } else { OTHER }.into();
                });
            }
            Deed::Delete => {
                self.left.deletions -= 1;
                self.ask(scope, delete(deployment_key(), Some(scope.propagation)));
            }
            Deed::Order(name) => {
                self.left.orders -= 1;
                self.order(scope, Kind::Restart, name);
            }
            Deed::RollBack => {
                self.left.rollbacks -= 1;
                self.order(scope, Kind::Rollback, ROLLBACK);
            }
            Deed::WipeProof => {
                self.left.wipes -= 1;
                self.ask(scope, patch(deployment_key(), Change::Annotation(keys::COMMANDS.into(), None)));
            }
            Deed::WipeStatus(key) => {
                self.left.wipes -= 1;
                self.ask(scope, Operation::report(key, Json::default()));
            }
            Deed::Cancel(key) => {
                self.left.cancels -= 1;
                self.ask(scope, delete(key, None));
            }
            Deed::Forge => {
                self.left.meddling -= 1;
                self.forge(scope);
            }
            Deed::DeleteBackup(key) => {
                self.left.meddling -= 1;
                self.ask(scope, delete(key, None));
            }
            Deed::Release => {
                self.left.meddling -= 1;
                // On a living object, it is the copy of a release of another one.
                let held = self.deployment().filter(|deployment| deployment.meta.is_deleting);
                let uid: Option<Text> = held.map(|held| held.meta.uid.clone());
                let text = match &uid {
                    Some(uid) => format!("{uid} not needed"),
                    None => "not needed".to_owned(),
                };
                self.ledger.released.extend(uid);
                let annotation = Change::Annotation(FORCE_RELEASE.into(), Some((&*text).into()));
                self.ask(scope, patch(deployment_key(), annotation));
            }
        }
    }

    /// The spec of the `BasicDeployment` is changed.
    fn edit(&mut self, scope: &Scope, change: impl FnOnce(&Object, &mut Value)) {
        let Some(deployment) = self.deployment().cloned() else { return };
        let mut spec = deployment.spec.value()["spec"].clone();
        change(&deployment, &mut spec);
        self.ask(scope, patch(deployment_key(), Change::Spec(json!({"spec": spec}).into())));
    }

    /// A command is created. Where nobody binds it later, it is bound from the beginning.
    pub fn order(&mut self, scope: &Scope, kind: Kind, name: &str) {
        let ttl = (scope.own.commands != Commands::Kept).then_some(TTL);
        let spec = json!({"spec": {"targetRef": {"name": NAME}, "ttlSecondsAfterFinished": ttl}});
        let mut command = object(kind, name, spec);
        if scope.own.commands == Commands::Declared {
            command.meta.labels.insert(DECLARED.into(), "app".into());
        }
        if !scope.own.runs(Controller::Binder)
            && !scope.own.binds_late
            && let Some(owner) = self.owner_of_commands()
        {
            command.meta.annotations.insert(BOUND_TO.into(), owner.uid.clone());
            command.meta.owners = vec![owner];
        }
        self.ask(scope, Operation::Create(command));
    }

    /// A command is bound.
    pub fn bind(&mut self, scope: &Scope, key: Key) {
        let Some(owner) = self.owner_of_commands() else { return };
        let record = Change::Annotation(BOUND_TO.into(), Some(owner.uid.clone()));
        let changes = vec![record, Change::AddOwner(owner)];
        self.ask(scope, Operation::merge(key, Preconditions::default(), changes));
    }

    /// The reference by which a command is bound.
    fn owner_of_commands(&self) -> Option<Owner> {
        let Meta { key, uid, .. } = self.deployment()?.meta.clone();
        Some(Owner { key, uid, is_controller: false, blocks_deletion: false })
    }

    /// The same object as the next backup, and a report of its success, but by somebody else.
    fn forge(&mut self, scope: &Scope) {
        let Some(target) = self.deployment().map(|target| whole(target)) else { return };
        let Ok(backup) = render(&HOLDING.templates, &HOLDING.kinds[ENTRY], &target, 1) else { return };
        let name = backup["metadata"]["name"].as_str().unwrap_or_default();
        let mut forged = object(Kind::Backup, name, json!({"createdBy": "kubectl"}));
        forged.meta.labels = texts(&backup, "labels");
        forged.meta.annotations = texts(&backup, "annotations");
        let key = forged.meta.key.clone();
        if self.ask(scope, Operation::Create(forged)).object().is_some() {
            self.ask(scope, Operation::report(key, ended(true)));
        }
    }
}

/// The `BasicDeployment` as a user creates it.
pub fn deployment(scope: &Scope) -> Object {
    let mut spec = json!({"replicas": 2, "parameters": {"image": "a"}});
    if !scope.own.surges {
        spec["maxSurge"] = 0.into();
    }
    object(Kind::Deployment, NAME, json!({"spec": spec}))
}

fn command_key(kind: Kind, name: &str) -> Key {
    Key { kind, name: name.into() }
}

fn patch(key: Key, change: Change<Json>) -> Operation {
    Operation::merge(key, Preconditions::default(), vec![change])
}
