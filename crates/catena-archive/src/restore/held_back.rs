//! Objects that a restoration does not bring back, so that no command runs again.

use catena_api::keys;
use catena_cluster::Identity;
use serde_json::Value;

use super::{Restoration, uid};
use crate::{
    COMMAND_OF_OTHERS, Manifest, Note, REQUEST_OF_OTHERS, collect::is_root_ca, commands, create, manifest,
    order,
};

impl Restoration<'_> {
    /// Without what must not come back, and without what that owns and is no data. A backup may hold commands of other projects:
    /// of a kind that was chosen, or is known as one since. It also holds the requests of their operators.
    pub(super) async fn without_left_out(&mut self, mut objects: Vec<Manifest>) -> Vec<Manifest> {
        loop {
            let (before, mut others) = (objects.len(), Vec::new());
            for object in objects {
                match self.why_left_out(&object) {
                    Some(why) => self.leave_out(&object, why).await,
                    None => others.push(object),
                }
            }
            if others.len() == before {
                return others;
            }
            objects = others;
        }
    }

    fn why_left_out(&self, object: &Manifest) -> Option<&'static str> {
        let identity = object.identity();
        let kind = self.cluster.kinds.of(&identity);
        let is_declared = kind.is_some_and(|kind| commands::is_of_others(kind, &self.commands));
        if is_declared || identity.group() != keys::GROUP && object.is_bound() {
            return Some(COMMAND_OF_OTHERS);
        }
        if is_root_ca(&identity) {
            return Some("Kubernetes writes that of this cluster");
        }
        let is_there = |owner: &Identity| self.uids.knows(&owner.uid) || self.is_in_no_backup(owner);
        if !self.choices.dependents && commands::is_request_of_others(object, is_there) {
            return Some(REQUEST_OF_OTHERS);
        }
        // Kubernetes accepts no claim that is there already for a volume of the pod itself.
        let is_of_pod = |owner: &Identity| owner.kind == "Pod" && self.is_in_no_backup(owner);
        if identity.kind == "PersistentVolumeClaim" && object.controller().as_ref().is_some_and(is_of_pod) {
            return Some("its pod makes it again");
        }
        // Whoever makes its owner anew looks for data.
        let is_below = !order::comes_before_owners(object)
            && object.owners().iter().any(|owner| self.is_left_out(owner));
        is_below.then_some("its owner is left out")
    }

    pub(super) fn is_left_out(&self, object: &Identity) -> bool {
        self.result.left_out.iter().any(|note| note.object.uid == object.uid)
    }

    /// Removes an ended command that this or an earlier restoration created without its outcome: it would run again. While it
    /// may be there, its target stays paused.
    pub(super) async fn withdraw(&mut self, command: &Manifest, mut why: String) {
        if let Err(remains) = self.try_withdraw(command).await {
            why = format!(
                "{why}; it may be there without its outcome, so that its target stays paused: {remains}"
            );
            self.unsettled.push(commands::target(command));
        }
        self.fail(command, why);
    }

    async fn try_withdraw(&self, command: &Manifest) -> Result<(), String> {
        let identity = command.identity();
        let Some(kind) = self.cluster.kinds.of(&identity) else { return Ok(()) };
        let place = self.at(kind, &identity);
        // A write without an answer may have been done.
        let is_without_outcome = |found: &Value| {
            create::is_incomplete(found, &identity.uid) && !Manifest::of(found.clone()).has_ended()
        };
        let Some(found) = create::told(place.read().await)?.filter(is_without_outcome) else { return Ok(()) };
        create::told(place.delete(Some(&uid(&found))).await)?;
        match create::told(place.read().await)?.filter(is_without_outcome) {
            Some(_) => Err("its finalizers hold it".to_owned()),
            None => Ok(()),
        }
    }

    /// A command that is not brought back may still be there.
    pub(super) async fn leave_out(&mut self, command: &Manifest, why: &str) {
        let identity = command.identity();
        self.progress.advance();
        if let Ok(Some(found)) = self.found(&identity).await
            && !manifest::is_going(&found)
        {
            let uid = uid(&found);
            self.uids.insert(&identity.uid, &uid);
            self.result.present.push(Identity { uid, ..identity });
            return;
        }
        self.result.left_out.push(Note { object: identity, why: why.to_owned() });
    }
}
