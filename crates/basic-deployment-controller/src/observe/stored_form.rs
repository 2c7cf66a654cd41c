//! The form in which the server stores a rendering: with its defaults, and with values in its own notation.
//!
//! The answer to an apply shows it. A process that has applied nothing learns it from a child that is as rendered; and in a
//! pause, in which nothing is applied, from a dry run. So a new leader knows, too, whether somebody has changed a child.

use std::sync::Arc;

use basic_deployment_controller::{child::Child, desired::Desired};
use catena_api::BasicDeployment;
use operator_kit::{
    object::ObjectId,
    write::{WriteCause, Written, try_apply},
};
use serde_json::Value;

use super::Observer;
use crate::memory::Recalled;

impl Observer {
    /// The memory of the last writes, with the form in which the server stores the wanted rendering as far as that can be known.
    ///
    /// # Errors
    /// If the server does not answer, and a changed child might be taken for one in order.
    pub(super) async fn recall(
        &self,
        deployment: &BasicDeployment,
        desired: Option<&Desired>,
        child: Option<&Arc<Child>>,
        may_ask: bool,
    ) -> Written<Recalled> {
        let uid = ObjectId::of(deployment).uid;
        let mut remembered = self.memory.recall(uid, desired);
        let child = desired.zip(child).filter(|(desired, child)| child.hash() == desired.hash);
        let Some((desired, child)) = child else { return Ok(remembered) };
        let seen = desired.seen_in(&child.object);
        let is_in_order = remembered.settled_as.as_ref() == Some(&seen);
        if is_in_order {
            return Ok(remembered);
        }
        if remembered.settled_as.is_none() && seen == desired.comparable() {
            self.memory.settled(uid, desired, seen.clone());
            remembered.settled_as = Some(seen);
        } else if may_ask
            && deployment.spec.paused
            // Before it is scaled, it is not ready in any case, and no answer may hold that up.
            && child.replicas() == Some(deployment.spec.replicas)
            && !self.memory.has_asked_about(uid, &seen)
        {
            match self.ask(deployment, desired, child).await {
                Ok(settled_as) => {
                    self.memory.settled(uid, desired, settled_as.clone());
                    self.memory.asked_about(uid, seen);
                    remembered.settled_as = Some(settled_as);
                }
                Err(error) if remembered.settled_as.is_none() && may_pass(&error.cause) => return Err(error),
                Err(error) => {
                    let whose = ObjectId::of(deployment);
                    tracing::debug!(object = %whose, "whether its child was changed in the pause is unknown: {error}");
                }
            }
        }
        Ok(remembered)
    }

    /// The form in which the server would store the wanted rendering now.
    async fn ask(&self, deployment: &BasicDeployment, desired: &Desired, child: &Child) -> Written<Value> {
        let replicas = child.replicas().unwrap_or(deployment.spec.replicas);
        let object = desired.body(replicas, Some(child));
        let kind = child.kind.api_resource();
        let stored = try_apply(&self.client, &kind, env!("CARGO_PKG_NAME"), &object).await?;
        Ok(desired.seen_in(&stored))
    }
}

/// Whether another try may be answered; a refusal, such as one by a webhook that does not know dry runs, stays.
fn may_pass(cause: &WriteCause) -> bool {
    let is_of_silent_webhook = matches!(cause, WriteCause::Unknown { .. }) && cause.refusal().is_some();
    cause.may_have_worked()
        || is_of_silent_webhook
        || matches!(cause, WriteCause::Changed { .. } | WriteCause::Busy { .. })
}
