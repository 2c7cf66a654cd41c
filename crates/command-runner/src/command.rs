//! A command, pruned to the input of a decision.

use std::{cmp::Ordering, sync::Arc};

use catena_api::{
    CommandStatus,
    command::{RecentCommand, SUCCEEDED, run_record},
};
use command_kinds::{
    CommandKind, Object, Reference, Scope,
    run::{DEFAULT_DEADLINE, Run},
    schemas::StatusSchema,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use operator_kit::report::Conditions;
use operator_watch::{DynamicRow, PrunedObject};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The types of the conditions of a command that are this controller's.
pub const REPORTED: [&str; 3] = [SUCCEEDED, Conditions::RECONCILING, Conditions::STALLED];

/// A watched command.
pub type Command = DynamicRow<CommandRow>;

/// The row of a command.
#[derive(Clone, Debug)]
pub struct CommandRow {
    /// Its kind.
    pub kind: Arc<CommandKind>,
    /// How it is carried out.
    pub run: Arc<Run>,
    /// Its target, or the mistake in its reference; `None` if the object is no command.
    pub target: Option<Result<Reference, String>>,
    /// The owner to which it is bound.
    pub owner: Owner,
    /// When it fails if it has not ended.
    pub expires_at: Timestamp,
    /// Why that is the default instead of its own deadline, which cannot be read: it does not run.
    pub broken_deadline: Option<String>,
    /// The report in its status.
    pub status: CommandStatus,
    /// The report in its annotation, which whoever may change the command can write.
    pub annotated: CommandStatus,
    /// The finalizers that its deletion waits for, if that has begun.
    pub finalizers: Vec<String>,
    /// All of it but its status, for expressions: of those that are bound and have not ended, which alone can run.
    pub object: Option<Arc<Value>>,
}

/// The owner of a command among those of the kinds that it may have as its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// There is none: it is not bound.
    None,
    /// The one that it names.
    Target(TargetId),
    /// Another one, by its kind and name.
    Other(String),
}

/// A target. Its uid alone, which the author of a command can write, would let one of another namespace or for another object wait
/// among those of the target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TargetId {
    /// Its namespace; empty for a cluster-scoped one.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its uid.
    pub uid: Box<str>,
}

impl CommandRow {
    /// Prunes an object of the kind.
    #[must_use]
    pub fn of(kind: &Arc<CommandKind>, run: &Arc<Run>, object: PrunedObject) -> Self {
        let metadata = object.metadata.clone();
        let mut object = kind.whole(object);
        let status = object.as_object_mut().and_then(|fields| fields.remove("status"));
        let (status, annotated) =
            (reported(&status.unwrap_or_default()), reported(&run_record(&metadata).unwrap_or_default()));
        let whole = Object(&object);
        let is_command = kind.filter.as_ref().is_none_or(|filter| whole.holds(filter).unwrap_or(false));
        let target = kind.target.as_ref().filter(|_| is_command).map(|target| target.read(&whole));
        let owner = Owner::of(kind, &metadata, target.as_ref());
        let is_deleted = metadata.deletion_timestamp.is_some();
        let finalizers = metadata.finalizers.filter(|_| is_deleted).unwrap_or_default();
        let created = metadata.creation_timestamp.map(|time| time.0).unwrap_or_default();
        let (seconds, broken_deadline) = match run.deadline(&object) {
            Ok(seconds) => (seconds, None),
            Err(error) => (DEFAULT_DEADLINE, Some(error.to_string())),
        };
        let expires_at = created.saturating_add(SignedDuration::from_secs(seconds));
        let mut row = Self {
            kind: kind.clone(),
            run: run.clone(),
            target,
            owner,
            expires_at: expires_at.unwrap_or(Timestamp::MAX),
            broken_deadline,
            status,
            annotated,
            finalizers,
            object: None,
        };
        row.object = (row.target_id().is_some() && !row.has_ended()).then(|| Arc::new(object));
        row
    }

    /// Whether it has succeeded or failed, as one of its reports says: it never runs again, and its status never changes.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        has_ended(&self.status) || has_ended(&self.annotated)
    }

    /// Whether one of its reports says that it ran. One whose proof is gone is not repeated.
    #[must_use]
    pub fn has_started(&self) -> bool {
        has_started(&self.status) || has_started(&self.annotated)
    }

    /// Whether its status says that it ran and has ended, whatever its annotation says.
    #[must_use]
    pub fn ran_to_its_end(&self) -> bool {
        has_started(&self.status) && has_ended(&self.status)
    }

    /// The report that is kept up to date.
    #[must_use]
    pub fn report(&self, takes_status: Option<bool>) -> &CommandStatus {
        if takes_status == Some(true) { &self.status } else { &self.annotated }
    }

    /// The target to which it is bound.
    #[must_use]
    pub fn target_id(&self) -> Option<&TargetId> {
        if let Owner::Target(target) = &self.owner { Some(target) } else { None }
    }

    /// Whether its deadline has passed.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at <= now
    }

    /// Whether its definition has a status for a run; `None` while that is unknown. One that has got a status is not reported
    /// elsewhere for a lack of the right to read its definition.
    #[must_use]
    pub fn takes_status(&self, schema: StatusSchema) -> Option<bool> {
        let has_status = Conditions::find(&self.status.conditions, SUCCEEDED).is_some();
        (!schema.is_unread || !has_status).then_some(schema.takes_run)
    }
}

/// The part of a status that is this controller's. Whatever else it holds, and a field that cannot be read, hide no other one.
fn reported(status: &Value) -> CommandStatus {
    fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
        T::deserialize(value).ok()
    }
    let conditions = status["conditions"].as_array().into_iter().flatten().filter_map(|condition| {
        let mut condition = condition.as_object()?.clone();
        let time = condition.entry("lastTransitionTime").or_insert(Value::Null);
        if read::<Time>(time).is_none() {
            *time = json!(Timestamp::MAX);
        }
        read(&condition.into())
    });
    let mut status = CommandStatus {
        observed_generation: read(&status["observedGeneration"]),
        start_time: read(&status["startTime"]),
        completion_time: read(&status["completionTime"]),
        progress: read(&status["progress"]),
        conditions: Conditions::of_types(&conditions.collect::<Vec<_>>(), &REPORTED),
    };
    // As long as none has a generation, they are the defaults of the definition; but an end is one, whoever has told it.
    if !has_generation(&status) && !has_ended(&status) {
        status.conditions.clear();
    }
    status
}

/// The value of the annotation with a report.
#[must_use]
pub fn annotation(uid: &str, status: &CommandStatus) -> String {
    let mut record = json!(status);
    record["uid"] = json!(uid);
    record.to_string()
}

/// Whether a report says that a command ran, beside a condition of this controller: the time alone may be somebody else's.
pub(crate) fn has_started(status: &CommandStatus) -> bool {
    status.start_time.is_some() && has_generation(status)
}

fn has_generation(status: &CommandStatus) -> bool {
    status.conditions.iter().any(|condition| condition.observed_generation.is_some())
}

fn has_ended(status: &CommandStatus) -> bool {
    let conditions = &status.conditions;
    Conditions::is_true(conditions, SUCCEEDED) || Conditions::is_false(conditions, SUCCEEDED)
}

impl Owner {
    fn of(kind: &CommandKind, metadata: &ObjectMeta, target: Option<&Result<Reference, String>>) -> Self {
        let mut owners = metadata
            .owner_references
            .iter()
            .flatten()
            .filter(|owner| kind.targets().iter().any(|target| target.is_kind_of(owner)));
        let own = metadata.namespace.as_deref().unwrap_or_default();
        let named = target.and_then(|target| target.as_ref().ok()).and_then(|to| {
            let is_wide = to.kind.scope == Some(Scope::Cluster);
            let is_here = is_wide || to.namespace.as_deref().is_none_or(|named| named == own);
            let owner = owners.clone().find(|owner| is_here && to.is_named_by(owner))?;
            let namespace = if is_wide { "" } else { own };
            Some(TargetId {
                namespace: namespace.into(),
                name: to.name.clone(),
                uid: owner.uid.as_str().into(),
            })
        });
        match (named, owners.next()) {
            (Some(named), _) => Self::Target(named),
            (None, Some(other)) => Self::Other(format!("{} {}", other.kind, other.name)),
            (None, None) => Self::None,
        }
    }
}

/// The record of a command on its target.
#[must_use]
pub fn recent(command: &Command) -> RecentCommand {
    let metadata = &command.metadata;
    RecentCommand {
        created: metadata.creation_timestamp.clone().unwrap_or(Time(Timestamp::UNIX_EPOCH)),
        uid: metadata.uid.clone().unwrap_or_default(),
        supersedes: command.row.run.supersedes,
    }
}

/// The order of commands, by their records.
#[must_use]
pub fn order(one: &Command, other: &Command) -> Ordering {
    recent(one).cmp(&recent(other))
}
