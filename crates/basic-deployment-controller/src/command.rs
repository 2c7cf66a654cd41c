//! A command for a `BasicDeployment`.

use std::time::Duration;

use catena_api::{
    BasicDeployment, BasicDeploymentRestart, BasicDeploymentRestartSpec, BasicDeploymentRollback,
    BasicDeploymentRollbackSpec, CommandStatus, TargetRef,
    command::{ACCEPTED, RecentCommand, SUCCEEDED},
    deletion::Deletion,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::discovery::ApiResource;
use operator_kit::{
    object::ObjectId,
    report::conditions::{self, RECONCILING, STALLED},
    watch::{Row, TrimmedObject},
    write::owner::is_of_kind,
};
use serde_json::Value;

/// The types of the conditions of a command that are this controller's.
pub const REPORTED: [&str; 4] = [ACCEPTED, SUCCEEDED, RECONCILING, STALLED];

/// The kinds of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// `BasicDeploymentRestart`.
    Restart,
    /// `BasicDeploymentRollback`.
    Rollback,
}

/// A command in the cache.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// Its kind.
    pub kind: CommandKind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The generation of its spec.
    pub generation: i64,
    /// When it was created, by the server's clock.
    pub created: Timestamp,
    /// Its deletion, if that has begun.
    pub deletion: Option<Leaving>,
    /// The `BasicDeployment` to which it is bound.
    pub owner: Option<OwnerReference>,
    /// The request, or the reason why it cannot be read.
    pub asks: Result<Asks, String>,
    /// The part of its status that belongs to this controller.
    pub status: CommandStatus,
}

/// The deletion of a command that still exists.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaving {
    /// Its beginning.
    pub since: Time,
    /// The finalizers that it waits for.
    pub finalizers: Vec<String>,
}

/// The reason why a command can never be carried out, or has no effect any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impossible {
    /// One word.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

/// The request of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asks {
    /// Its target.
    pub target: TargetRef,
    /// Its deadline, as the time since its creation.
    pub deadline: Option<Duration>,
    /// The requested operation.
    pub order: Order,
}

/// A requested operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Replace all pods.
    Restart,
    /// Go to the revision of this number; 0 is the previous one.
    Rollback(i64),
}

impl CommandKind {
    /// All kinds of commands.
    pub const ALL: [Self; 2] = [Self::Restart, Self::Rollback];

    /// The kind as the API server knows it.
    #[must_use]
    pub fn resource(self) -> ApiResource {
        match self {
            Self::Restart => ApiResource::erase::<BasicDeploymentRestart>(&()),
            Self::Rollback => ApiResource::erase::<BasicDeploymentRollback>(&()),
        }
    }

    fn asks(self, spec: Value) -> Result<Asks, serde_json::Error> {
        let (target, seconds, order) = match self {
            Self::Restart => {
                let spec: BasicDeploymentRestartSpec = serde_json::from_value(spec)?;
                (spec.target_ref, spec.active_deadline_seconds, Order::Restart)
            }
            Self::Rollback => {
                let spec: BasicDeploymentRollbackSpec = serde_json::from_value(spec)?;
                (spec.target_ref, spec.active_deadline_seconds, Order::Rollback(spec.to_revision))
            }
        };
        let deadline = seconds.map(|seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
        Ok(Asks { target, deadline, order })
    }
}

impl Row for Command {
    fn id(&self) -> ObjectId<'_> {
        ObjectId { namespace: &self.namespace, name: &self.name, uid: &self.uid }
    }

    fn group(&self) -> Option<&str> {
        self.owner.as_ref().map(|owner| owner.uid.as_str())
    }
}

impl Command {
    /// Trims an object of a command kind. A malformed one is kept too, so that it can be reported.
    #[must_use]
    pub fn of(object: TrimmedObject, kind: CommandKind) -> Self {
        let TrimmedObject { metadata, mut data } = object;
        let asks = kind.asks(data["spec"].take()).map_err(|error| format!("spec: {error}"));
        let target = asks.as_ref().ok().map(|asks| asks.target.name.as_str());
        let owner = owner(&metadata, target);
        let mut status: CommandStatus = serde_json::from_value(data["status"].take()).unwrap_or_default();
        // Conditions of other controllers are not ours.
        status.conditions = conditions::of_types(&status.conditions, &REPORTED);
        // As long as none has a generation, they are the defaults of the definition. After a report, they are leftovers.
        if status.conditions.iter().all(|condition| condition.observed_generation.is_none()) {
            status.conditions.clear();
        }
        Self {
            kind,
            owner,
            asks,
            status,
            generation: metadata.generation.unwrap_or_default(),
            created: metadata.creation_timestamp.map(|time| time.0).unwrap_or_default(),
            deletion: metadata
                .deletion_timestamp
                .map(|since| Leaving { since, finalizers: metadata.finalizers.unwrap_or_default() }),
            namespace: metadata.namespace.unwrap_or_default(),
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
        }
    }

    /// Whether it has succeeded or failed: it never runs again, and its status never changes.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let conditions = &self.status.conditions;
        conditions::is_true(conditions, SUCCEEDED) || conditions::is_false(conditions, SUCCEEDED)
    }

    /// The report on its deletion, if that has begun.
    #[must_use]
    pub fn deletion(&self) -> Option<Deletion<'_>> {
        self.deletion.as_ref().map(|leaving| Deletion::new(&leaving.since, &leaving.finalizers))
    }

    /// Whether it has ended without success.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        conditions::is_false(&self.status.conditions, SUCCEEDED)
    }

    /// Whether it names the `BasicDeployment` to which it is bound.
    #[must_use]
    pub fn is_directed_at(&self, deployment: &BasicDeployment) -> bool {
        let Ok(asks) = &self.asks else { return false };
        let metadata = &deployment.metadata;
        let namespace = asks.target.namespace.as_ref();
        Some(&asks.target.name) == metadata.name.as_ref()
            && Some(&self.namespace) == metadata.namespace.as_ref()
            && namespace.is_none_or(|namespace| *namespace == self.namespace)
    }

    /// The order of commands: that of their creation; within one second, that of their uids.
    #[must_use]
    pub fn order(&self) -> (Timestamp, &str) {
        (self.created, &self.uid)
    }

    /// Its record on its target.
    #[must_use]
    pub fn recent(&self) -> RecentCommand {
        RecentCommand {
            created: Time(self.created),
            uid: self.uid.clone(),
            supersedes: self.is_rollback(),
        }
    }

    /// Whether it is a rollback.
    #[must_use]
    pub fn is_rollback(&self) -> bool {
        self.asks.as_ref().is_ok_and(|asks| matches!(asks.order, Order::Rollback(_)))
    }

    /// The time until its deadline, if it has one.
    #[must_use]
    pub fn left(&self, now: Timestamp) -> Option<Duration> {
        let deadline = self.asks.as_ref().ok()?.deadline?;
        Some(deadline.saturating_sub(self.age(now)))
    }

    /// Whether its deadline has passed.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.left(now).is_some_and(|left| left.is_zero())
    }

    /// Its age.
    #[must_use]
    pub fn age(&self, now: Timestamp) -> Duration {
        Duration::try_from(now.duration_since(self.created)).unwrap_or_default()
    }

    /// The restart token that a restart sets: the time of its creation by the server's clock.
    #[must_use]
    pub fn token(&self) -> String {
        self.created.to_string()
    }
}

/// The `BasicDeployment` among the owners: if there are several, the one that the command names.
fn owner(metadata: &ObjectMeta, target: Option<&str>) -> Option<OwnerReference> {
    let all = metadata.owner_references.iter().flatten();
    let owners: Vec<_> = all.filter(|owner| is_of_kind::<BasicDeployment>(owner)).collect();
    let named = owners.iter().find(|owner| Some(owner.name.as_str()) == target);
    named.or(owners.first()).copied().cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn command(changes: &Value) -> Command {
        let mut object = json!({
            "metadata": {
                "name": "again", "namespace": "shop", "uid": "u", "generation": 1,
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Other", "name": "web", "uid": "other"},
                    {"apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment", "name": "api", "uid": "api"},
                    {"apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment", "name": "web", "uid": "web"},
                ],
            },
            "spec": {"targetRef": {"name": "web"}, "activeDeadlineSeconds": 60},
        });
        json_patch(&mut object, changes);
        Command::of(serde_json::from_value(object).unwrap(), CommandKind::Restart)
    }

    fn json_patch(object: &mut Value, changes: &Value) {
        for (name, value) in changes.as_object().unwrap() {
            object[name.as_str()] = value.clone();
        }
    }

    #[test]
    fn among_several_owners_the_one_that_is_named_counts() {
        assert_eq!(command(&json!({})).group(), Some("web"));
        assert_eq!(command(&json!({"spec": {"targetRef": {"name": "lost"}}})).group(), Some("api"));
    }

    #[test]
    fn a_command_that_cannot_be_read_is_kept_with_the_reason() {
        let malformed = command(&json!({"spec": {"targetRef": {"name": 7}}}));
        assert!(malformed.asks.unwrap_err().contains("spec: "));
        assert!(command(&json!({"spec": null})).asks.is_err());
    }

    #[test]
    fn the_default_of_the_definition_is_no_report() {
        let condition = |type_: &str, status: &str| {
            json!({
                "type": type_, "status": status, "reason": "Pending", "message": "",
                "lastTransitionTime": "1970-01-01T00:00:00Z",
            })
        };
        let pending = json!([condition("Succeeded", "Unknown"), condition("Reconciling", "True")]);
        assert_eq!(command(&json!({"status": {"conditions": pending}})).status, CommandStatus::default());
    }

    #[test]
    fn a_default_that_is_left_beside_a_report_is_seen() {
        let condition = |type_: &str, generation: Option<i64>| {
            json!({
                "type": type_, "status": "True", "reason": "Pending", "message": "",
                "lastTransitionTime": "1970-01-01T00:00:00Z", "observedGeneration": generation,
            })
        };
        let left = json!([condition("Succeeded", Some(1)), condition("Reconciling", None)]);
        assert_eq!(command(&json!({"status": {"conditions": left}})).status.conditions.len(), 2);
    }

    #[test]
    fn the_restart_token_is_the_time_of_creation() {
        assert_eq!(command(&json!({})).token(), "2026-01-01T00:00:00Z");
    }
}
