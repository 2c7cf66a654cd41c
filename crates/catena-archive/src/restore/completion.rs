//! Completes restored objects: each gets its owners and the record of who applied its fields, and a `BasicDeployment` goes on.

use catena_api::keys;
use catena_cluster::Identity;
use serde_json::{Value, json};

use super::{ATTEMPTS, CONTESTED, GOING, Restoration, uid};
use crate::{Manifest, collect::why_in_no_backup, create, manifest};

impl Restoration<'_> {
    /// The owner references with the uids of the live owners, which are found by their names.
    pub(super) async fn owners(&mut self, manifest: &Manifest) -> Result<Vec<Value>, String> {
        let references =
            manifest.object()["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let mut bound = Vec::new();
        for (owner, mut reference) in manifest.owners().into_iter().zip(references) {
            if self.uids.get(&owner.uid).is_none() {
                match self.found(&owner).await? {
                    Some(found) if manifest::is_going(&found) => {
                        return Err(format!("its owner {owner}: {GOING}"));
                    }
                    Some(found) => self.uids.insert(&owner.uid, &uid(&found)),
                    None => {}
                }
            }
            match self.uids.get(&owner.uid) {
                Some(uid) => {
                    reference["uid"] = uid.into();
                    // The garbage collector asks for the owner in this version.
                    if let Some(kind) = self.cluster.kinds.of(&owner) {
                        reference["apiVersion"] = kind.resource.api_version.as_str().into();
                    }
                    bound.push(reference);
                }
                None if self.is_left_out(&owner) || self.is_in_no_backup(&owner) => {}
                None => return Err(format!("its owner {owner} is not there: restore or create that first")),
            }
        }
        Ok(bound)
    }

    /// Whether an owner is in no backup, unless that was asked for: it does not come back, and what it owned does without it.
    pub(super) fn is_in_no_backup(&self, owner: &Identity) -> bool {
        let why = self.cluster.kinds.of(owner).and_then(why_in_no_backup);
        !self.uids.knows(&owner.uid) && why.is_some()
    }

    /// Gives data or an ended command its owners, and completes it.
    pub(super) async fn bind(&mut self, object: &Manifest) -> Result<(), String> {
        if self.uids.get(&object.identity().uid).is_none() {
            return Ok(());
        }
        let owners = self.owners(object).await?;
        // What a controller may have added meanwhile is the same.
        let patch = json!({"metadata": self.uids.bound(object, &owners, false)["metadata"]});
        self.complete(object, patch).await
    }

    /// Completes an object that this restoration created, with a last change.
    pub(super) async fn complete(&self, manifest: &Manifest, change: Value) -> Result<(), String> {
        let identity = self.uids.identity(manifest);
        let Some(kind) = self.cluster.kinds.of(&identity) else { return Ok(()) };
        let place = self.at(kind, &identity);
        for _ in 0..ATTEMPTS {
            let found = create::told(place.read().await)?;
            let Some(found) = found.filter(|found| create::is_incomplete(found, &identity.uid)) else {
                return Ok(());
            };
            let mut patch = change.clone();
            patch["metadata"]["managedFields"] =
                create::handed_over(&found, &identity.uid, self.uids.managed_fields(manifest));
            // A controller may have written its status meanwhile, and keeps these fields.
            patch["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"].clone();
            match create::merge(place, "", &uid(&found), patch).await {
                Err(kube::Error::Api(status)) if status.is_conflict() => {}
                written => return create::told(written).map(drop),
            }
        }
        Err(CONTESTED.to_owned())
    }

    /// Why a claim can never be bound. A volume that the user may not read is taken for a good one.
    pub(super) async fn why_unbound(&self, claim: &Value) -> Option<String> {
        let is_open = claim["kind"] == "PersistentVolumeClaim" && claim["status"]["phase"] != "Bound";
        let name = claim["spec"]["volumeName"].as_str().filter(|_| is_open)?;
        let volume = self.found(&Identity::new("v1", "PersistentVolume", None, name)).await.ok()?;
        if volume.as_ref().is_some_and(manifest::is_going) {
            return Some(format!("its volume {name:?} is being deleted: restore again when that is gone"));
        }
        let Some(volume) = volume else {
            return Some(format!(
                "its volume {name:?} is gone, so that it stays unbound: create a PersistentVolume of that name; or, for an empty one, \
                 delete the claim, remove spec.volumeName from its file, and restore again"
            ));
        };
        // A volume that waits for a claim has no uid of it.
        let of = &volume["spec"]["claimRef"];
        let differs = |field: &str| !of[field].is_null() && of[field] != claim["metadata"][field];
        ["namespace", "name", "uid"].into_iter().any(differs).then(|| {
            format!(
                "its volume {name:?} is that of another claim, so that it stays unbound: if that is the former one, let spec.claimRef \
                 of the volume name this one, without a uid"
            )
        })
    }

    /// Completes a `BasicDeployment`: from here on, its controller acts.
    pub(super) async fn resume(&mut self, deployment: &Manifest) {
        let uid = deployment.identity().uid;
        if self.lost.contains(&uid) {
            let new = self.uids.get(&uid).map(str::to_owned);
            if self.result.restored.iter().any(|restored| Some(&restored.uid) == new.as_ref()) {
                let why = "it stays paused, because not everything that belongs to it could be brought back: correct that, and restore again";
                self.fail(deployment, why.to_owned());
            }
            return;
        }
        let mut change = json!({"spec": {"paused": deployment.object()["spec"]["paused"]}});
        // Meanwhile, the controller has removed the one of the former object.
        if let Some(pin) = self.uids.pin(deployment) {
            change["metadata"]["annotations"][keys::PINNED_REVISION] = pin.into();
        }
        if let Err(why) = self.complete(deployment, change).await {
            self.fail(deployment, why);
        }
    }
}
