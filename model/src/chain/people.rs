//! The deeds of people and pipelines.

use backup_controller::backup::render;
use catena_api::keys::{BOUND_TO, FORCE_RELEASE};
use serde_json::{Value, json};

use super::{
    content::{Json, NAME, Object, Operation, desire, ended, kind_of_child, object, texts, whole},
    controllers::Controller,
    scope::{Commands, Scope},
    settings::{DECLARED, ENTRY, HOLDING, OTHER},
    world::{World, deployment_key},
};
use crate::server::{
    object::{Key, Kind, Owner, Text},
    operation::{Change, Preconditions},
};

/// Seconds after which a finished command is deleted: one tick.
const TTL: u32 = 60;
/// The names of commands.
const COMMANDS: [&str; 2] = ["again", "more"];

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
    /// A command is deleted.
    Cancel(Key),
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
        if self.left.orders > 0 && (living.is_some() || scope.own.runs(Controller::Binder)) {
            deeds.extend(self.missing_command().map(Deed::Order));
        }
        if self.left.cancels > 0 {
            deeds.extend(self.objects(Kind::Restart).map(|command| Deed::Cancel(command.meta.key.clone())));
        }
        if self.left.meddling > 0 && self.deployment().is_some() {
            deeds.extend([Deed::Forge, Deed::Release]);
            deeds
                .extend(self.objects(Kind::Backup).map(|backup| Deed::DeleteBackup(backup.meta.key.clone())));
        }
        deeds
    }

    /// The next command that does not exist.
    pub fn missing_command(&self) -> Option<&'static str> {
        COMMANDS.into_iter().find(|name| self.server.get(&command_key(name)).is_none())
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
                self.order(scope, name);
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

    /// A restart is created. Without command-binder, it is bound from the beginning.
    pub fn order(&mut self, scope: &Scope, name: &str) {
        let ttl = (scope.own.commands != Commands::Kept).then_some(TTL);
        let spec = json!({"spec": {"targetRef": {"name": NAME}, "ttlSecondsAfterFinished": ttl}});
        let mut command = object(Kind::Restart, name, spec);
        if scope.own.commands == Commands::Declared {
            command.meta.labels.insert(DECLARED.into(), "app".into());
        }
        if !scope.own.runs(Controller::Binder)
            && let Some(target) = self.deployment()
        {
            let (key, uid) = (target.meta.key.clone(), target.meta.uid.clone());
            command.meta.annotations.insert(BOUND_TO.into(), uid.clone());
            command.meta.owners = vec![Owner { key, uid, is_controller: false, blocks_deletion: false }];
        }
        self.ask(scope, Operation::Create(command));
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

fn command_key(name: &str) -> Key {
    Key { kind: Kind::Restart, name: name.into() }
}

fn patch(key: Key, change: Change<Json>) -> Operation {
    Operation::merge(key, Preconditions::default(), vec![change])
}
