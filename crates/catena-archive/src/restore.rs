//! Creates the objects of a backup again: what is there is left alone, owners come before what they own, and nothing that
//! controllers would act on is complete before the rest is there.
//!
//! 1. Definitions that are missing.
//! 2. Commands that have ended, with their outcomes, while their target is not there.
//! 3. All other objects: data, and then the rest [by ownership and reference](super::order). A `BasicDeployment` is paused, so
//!    that its controller neither stores a revision nor creates a child that is about to come.
//! 4. Data gets its owners, commands come that have not begun, and those that have ended get their owners.
//! 5. Each `BasicDeployment` is no longer paused if everything below it is there.
//!
//! Last, what stands in a namespace that is being deleted is told as not restored.
//!
//! A restoration that was interrupted goes on where it was: see [`super::create`].

mod completion;
mod held_back;

use std::{
    collections::{BTreeSet, HashSet},
    path::Path,
    time::Duration,
};

use anyhow::Result;
use catena_cluster::{At, Cluster, Identity, Kind, command_kinds, declared_commands, lost};
use catena_terminal::Progress;
use clap::Args;
use serde_json::{Value, json};

use super::{Folder, Manifest, Note, Report, Uids, Way, commands, create, definitions, manifest, order};

/// The creation times of commands, which give them their order, have a resolution of one second.
const NEXT_SECOND: Duration = Duration::from_millis(1100);
/// What is attached to such an object would go with it.
const GOING: &str = "it is being deleted: restore again when it is gone";
const NAMESPACE_GOING: &str = "its namespace is being deleted: create it when it is gone, and restore again";
/// Attempts to write an object that somebody else changes meanwhile.
const ATTEMPTS: usize = 20;
const CONTESTED: &str = "others change it all the time: restore again";

/// The choices of a user.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Choices {
    /// Give objects that are there the content of the backup, instead of leaving them alone
    #[arg(long)]
    pub overwrite: bool,
    /// Bring back also what operators of other projects made for their objects; requests among that are carried out again
    #[arg(long)]
    pub dependents: bool,
}

struct Restoration<'r> {
    cluster: &'r Cluster,
    choices: Choices,
    /// The kinds of commands.
    commands: Vec<Kind>,
    uids: Uids,
    carried_out: HashSet<String>,
    /// The uids in the backup of objects that could not be brought back.
    lost: HashSet<String>,
    /// The targets that stay paused: those of ended commands that may be there without their outcome, and of waiting ones that
    /// are not.
    unsettled: Vec<Identity>,
    result: Report,
    progress: Progress,
}

/// Restores a backup, or what it holds of a namespace.
///
/// # Errors
/// When it cannot be read, or commands or definitions cannot: before anything else is written.
pub async fn restore(
    cluster: &mut Cluster,
    folder: &Path,
    namespace: Option<&str>,
    choices: Choices,
) -> Result<Report> {
    let mut manifests = Folder::read(folder)?;
    if let Some(namespace) = namespace {
        manifests = order::only_in(namespace, folder, manifests)?;
    }
    let (definitions, objects): (Vec<_>, Vec<_>) = manifests.into_iter().partition(Manifest::is_definition);
    // Before anything is written: without these, a command of another project would run again.
    declared_commands(cluster).await?;
    let created = definitions::create_missing(cluster, &definitions).await?;
    // Also of definitions that have just come back.
    let commands = command_kinds(cluster).await?;
    let definitions = definitions.iter().map(Manifest::identity);
    let (restored, present) = definitions.partition(|definition| created.contains(&definition.name));
    let result = Report { restored, present, ..Report::default() };
    let mut restoration = Restoration { result, ..Restoration::new(cluster, choices, commands, &objects) };
    restoration.all(objects).await;
    restoration.progress.clear();
    Ok(restoration.result)
}

impl<'r> Restoration<'r> {
    fn new(cluster: &'r Cluster, choices: Choices, commands: Vec<Kind>, objects: &[Manifest]) -> Self {
        let progress = Progress::new("restoring");
        progress.expect(objects.len() as u64);
        Self {
            cluster,
            choices,
            commands,
            uids: Uids::of(objects),
            carried_out: commands::carried_out(objects),
            lost: HashSet::new(),
            unsettled: Vec::new(),
            result: Report::default(),
            progress,
        }
    }

    async fn all(&mut self, objects: Vec<Manifest>) {
        let (commands, others): (Vec<_>, Vec<_>) = objects.into_iter().partition(Manifest::is_command);
        let (mut ended, mut waiting) = (Vec::new(), Vec::new());
        for command in commands {
            let is_live = self.has_live_target(&command).await;
            match is_live.map(|is_live| commands::way(&command, is_live, &self.carried_out)) {
                Ok(Way::AsEnded) => ended.push(command),
                Ok(Way::AsWaiting) => waiting.push(command),
                Ok(Way::NotAtAll(why)) => self.leave_out(&command, why).await,
                Err(why) if command.has_ended() => self.withdraw(&command, why).await,
                Err(why) => {
                    self.fail(&command, why);
                    self.unsettled.push(commands::target(&command));
                }
            }
        }
        for command in &ended {
            self.bring_back(command, true).await;
        }
        let others = order::in_order(self.without_left_out(others).await);
        for object in &others {
            self.bring_back(object, false).await;
        }
        for data in others.iter().filter(|object| order::comes_before_owners(object)) {
            if let Err(why) = self.bind(data).await {
                let uid = self.uids.get(&data.identity().uid).map(str::to_owned);
                self.result.restored.retain(|restored| Some(&restored.uid) != uid.as_ref());
                self.fail(data, format!("it is there without its owner: {why}"));
            }
        }
        waiting.sort_by_key(|command| command.object()["metadata"]["creationTimestamp"].to_string());
        let has_target = |command: &Manifest| {
            let target = commands::target(command);
            self.result.restored.iter().any(|object| object.is_named_by(&target))
        };
        let (waiting, homeless): (Vec<_>, Vec<_>) = waiting.into_iter().partition(has_target);
        for command in homeless {
            self.leave_out(&command, "its target was not restored, so that it would wait for another one")
                .await;
        }
        for (number, command) in waiting.iter().enumerate() {
            if number > 0 {
                tokio::time::sleep(NEXT_SECOND).await;
            }
            self.bring_back(command, false).await;
        }
        let lost = waiting.iter().filter(|command| self.lost.contains(&command.identity().uid));
        self.unsettled.extend(lost.map(commands::target));
        let owners = order::owners(&others);
        let deployments: Vec<_> = others.into_iter().filter(Manifest::is_deployment).collect();
        // A target must not find a command without its outcome, nor go on before the commands that wait for it are there.
        let is_held = |object: &Identity| self.unsettled.iter().any(|target| object.is_named_by(target));
        let held = deployments.iter().map(Manifest::identity).filter(is_held);
        self.lost.extend(held.map(|target| target.uid));
        // What owns a lost object must not go on without it.
        order::add_owners(&mut self.lost, &owners);
        for command in &ended {
            if let Err(why) = self.bind(command).await {
                self.fail(command, why);
            }
        }
        for deployment in &deployments {
            self.resume(deployment).await;
        }
        self.lose_what_goes_with_its_namespace().await;
    }

    /// What stands in a namespace that is being deleted goes, too, although nothing of it may be being deleted yet. A namespace
    /// that the user may not read is taken for one that stays.
    async fn lose_what_goes_with_its_namespace(&mut self) {
        let there = self.result.restored.iter().chain(&self.result.overwritten).chain(&self.result.present);
        let namespaces: BTreeSet<_> = there.filter_map(|object| object.namespace.clone()).collect();
        for namespace in namespaces {
            let found = self.found(&Identity::new("v1", "Namespace", None, &namespace)).await;
            if !found.ok().flatten().as_ref().is_some_and(manifest::is_going) {
                continue;
            }
            let Report { restored, overwritten, present, differing, failed, .. } = &mut self.result;
            let goes = |object: &Identity| object.namespace.as_ref() == Some(&namespace);
            let told: HashSet<_> = failed.iter().filter_map(|note| self.uids.get(&note.object.uid)).collect();
            for place in [restored, overwritten, present] {
                let going = place.extract_if(.., |object| goes(object));
                let untold = going.filter(|object| !told.contains(&*object.uid));
                failed.extend(untold.map(|object| Note { object, why: NAMESPACE_GOING.to_owned() }));
            }
            differing.retain(|note| !goes(&note.object));
        }
    }

    /// Whether the target of a command carries out commands: it is there, and not held by a restoration.
    async fn has_live_target(&self, command: &Manifest) -> Result<bool, String> {
        Ok(self.found(&commands::target(command)).await?.is_some_and(|live| !create::is_held(&live)))
    }

    fn at<'a>(&self, kind: &'a Kind, identity: &'a Identity) -> At<'a>
    where
        'r: 'a,
    {
        self.cluster.at(kind, identity.namespace.as_deref(), &identity.name)
    }

    /// The live object of a name, if it and its kind are there.
    async fn found(&self, identity: &Identity) -> Result<Option<Value>, String> {
        match self.cluster.kinds.of(identity) {
            Some(kind) => create::told(self.at(kind, identity).read().await),
            None => Ok(None),
        }
    }

    /// Creates an object, unless it is there. An ended command is created without an owner and with its outcome.
    async fn bring_back(&mut self, manifest: &Manifest, is_ended_command: bool) {
        match self.place(manifest, is_ended_command).await {
            Ok(()) => {}
            Err(why) if is_ended_command => self.withdraw(manifest, why).await,
            Err(why) => self.fail(manifest, why),
        }
        self.progress.advance();
    }

    /// Creates an object; or goes on with one that an earlier restoration created; or leaves one that is there alone, or gives it
    /// the content of the backup.
    async fn place(&mut self, manifest: &Manifest, is_ended_command: bool) -> Result<(), String> {
        let identity = self.uids.identity(manifest);
        let kind = self.cluster.kinds.of(&identity).cloned();
        let kind = kind
            .ok_or_else(|| format!("the server has no kind {} of {}", identity.kind, identity.api_version))?;
        let is_early = is_ended_command || order::comes_before_owners(manifest);
        let owners = if is_early { Vec::new() } else { self.owners(manifest).await? };
        let place = self.at(&kind, &identity);
        let found = create::told(place.read::<Value>().await)?;
        if found.as_ref().is_some_and(manifest::is_going) {
            return Err(GOING.to_owned());
        }
        let is_complete = found.as_ref().is_some_and(|found| !create::is_incomplete(found, &identity.uid));
        if let Some(found) = found.as_ref().filter(|_| is_complete) {
            self.uids.insert(&identity.uid, &uid(found));
        }
        let mut object = self.uids.bound(manifest, &owners, found.is_some());
        object["apiVersion"] = kind.resource.api_version.as_str().into();
        let (live, difference) = if let Some(found) = found {
            (found, None)
        } else {
            // Its controller must not act on it yet.
            if manifest.is_deployment() {
                object["spec"]["paused"] = true.into();
            }
            let created = create::create(place, &object, &identity.uid).await;
            let live = created.map_err(|error| create::creation_failure(&error))?;
            let difference = not_kept(&object, &live);
            (live, difference)
        };
        let unbound = self.why_unbound(&live).await;
        let new = Identity { uid: uid(&live), ..identity.clone() };
        let (list, difference) = if !is_complete {
            // Data gets its owners at the end, and a `BasicDeployment` goes on then.
            if is_ended_command {
                let outcome = json!({"status": manifest.object()["status"]});
                create::told(create::merge(place, "status", &new.uid, outcome).await)?;
            } else if !is_early && !manifest.is_deployment() {
                self.complete(manifest, json!({})).await?;
            }
            (&mut self.result.restored, difference)
        } else if self.choices.overwrite && !manifest.is_command() {
            let live = overwrite(place, live, &object).await?;
            (&mut self.result.overwritten, not_kept(&object, &live))
        } else {
            (&mut self.result.present, other_content(&object, &live))
        };
        self.uids.insert(&identity.uid, &new.uid);
        if let Some(why) = unbound {
            return Err(why);
        }
        list.push(new.clone());
        let difference = difference.filter(|_| !manifest.is_command());
        self.result.differing.extend(difference.map(|why| Note { object: new, why }));
        Ok(())
    }

    fn fail(&mut self, manifest: &Manifest, why: String) {
        let object = manifest.identity();
        self.lost.insert(object.uid.clone());
        self.result.failed.push(Note { object, why });
    }
}

/// Gives an object the content of the backup, whatever its controller writes meanwhile.
async fn overwrite(place: At<'_>, found: Value, object: &Value) -> Result<Value, String> {
    let mut present = found;
    for _ in 0..ATTEMPTS {
        match create::replace(place, &present, object).await {
            Err(kube::Error::Api(status)) if status.is_conflict() => {}
            written => return create::told(written),
        }
        let found = create::told(place.read::<Value>().await)?;
        let is_same = |found: &Value| uid(found) == uid(&present);
        present = found.filter(is_same).ok_or("it was deleted meanwhile")?;
    }
    Err(CONTESTED.to_owned())
}

/// What the server has not kept of an object that was written.
fn not_kept(object: &Value, live: &Value) -> Option<String> {
    let path = lacking(object, live)?;
    Some(format!(
        "the server keeps {path} otherwise than in the backup: a webhook may have changed it, or the version in which its kind is \
         stored lacks it"
    ))
}

/// What an object that was there lacks of the backup.
fn other_content(object: &Value, live: &Value) -> Option<String> {
    let path = lacking(object, live)?;
    Some(format!(
        "it was there and differs from the backup in {path}: --overwrite gives it the content of the backup"
    ))
}

/// The first field of an object of the backup that a live one lacks.
fn lacking(object: &Value, live: &Value) -> Option<String> {
    lost(&create::over(live, object.clone()), live, &Value::Null).into_iter().next().map(|field| field.path)
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
