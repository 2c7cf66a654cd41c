//! The fields that all objects have.

use std::fmt;

use catena_api::{command, keys};
use catena_terminal::sanitized;
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::Event,
    apimachinery::pkg::apis::meta::v1::{Condition, ManagedFieldsEntry, ObjectMeta, OwnerReference},
};
use kube::core::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The identity of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// API version of its kind.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; none for a cluster-wide object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its uid; empty if only its name is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// As kubectl names an object: `Kind/name`.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An owner reference may name anything.
        write!(f, "{}", sanitized(&format!("{}/{}", self.kind, self.name)))
    }
}

impl Identity {
    /// An object of which only the name is known.
    #[must_use]
    pub fn new(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Self {
        let (api_version, kind, uid) = (api_version.to_owned(), kind.to_owned(), String::new());
        Self { api_version, kind, namespace: namespace.map(str::to_owned), name: name.to_owned(), uid }
    }

    /// The identity of an object of a kind.
    #[must_use]
    pub fn in_metadata(api_version: &str, kind: &str, metadata: &ObjectMeta) -> Self {
        let name = metadata.name.as_deref().unwrap_or_default();
        let identity = Self::new(api_version, kind, metadata.namespace.as_deref(), name);
        Self { uid: metadata.uid.clone().unwrap_or_default(), ..identity }
    }

    /// The identity of an object.
    #[must_use]
    pub fn of(object: &DynamicObject) -> Self {
        let types = object.types.clone().unwrap_or_default();
        Self::in_metadata(&types.api_version, &types.kind, &object.metadata)
    }

    /// The identity of an owner, seen from its dependent.
    #[must_use]
    pub fn of_owner(owner: &OwnerReference, namespace: Option<String>) -> Self {
        let named = Self::new(&owner.api_version, &owner.kind, None, &owner.name);
        Self { namespace, uid: owner.uid.clone(), ..named }
    }

    /// Whether it is the object that another identity names, whatever the version of its kind; some name a kind without its group.
    #[must_use]
    pub fn is_named_by(&self, named: &Self) -> bool {
        let is_in_place = self.namespace.is_none() || self.namespace == named.namespace;
        let is_of_group = named.api_version.is_empty() || self.group() == named.group();
        is_in_place && is_of_group && (&self.kind, &self.name) == (&named.kind, &named.name)
    }

    /// The API group; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// An object among others of its kind.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct ObjectName {
    /// Its namespace, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl ObjectName {
    /// The name of an object.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
        Self { namespace: text("namespace"), name: text("name").unwrap_or_default() }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let namespace = self.namespace.as_ref().map_or_else(String::new, |namespace| format!("{namespace}/"));
        f.write_str(&sanitized(&(namespace + &self.name)))
    }
}

/// The creation time.
#[must_use]
pub fn created(metadata: &ObjectMeta) -> Option<Timestamp> {
    metadata.creation_timestamp.as_ref().map(|time| time.0)
}

/// The time of the deletion request, before any grace period.
#[must_use]
pub fn deleted(metadata: &ObjectMeta) -> Option<Timestamp> {
    let grace = jiff::SignedDuration::from_secs(metadata.deletion_grace_period_seconds.unwrap_or(0));
    metadata.deletion_timestamp.as_ref().map(|time| time.0.checked_sub(grace).unwrap_or(Timestamp::MIN))
}

/// The owner above an object: its controller, or else its first owner.
#[must_use]
pub fn first_owner(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    let owners = metadata.owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.controller == Some(true)).or_else(|| owners.first())
}

/// The [record](command::run_record) of command-runner on a command. On an object of Kubernetes or of our kinds, which all have a
/// status, it is somebody else's.
#[must_use]
pub fn run_record(object: &DynamicObject) -> Option<Value> {
    let (group, _) = object.types.as_ref()?.api_version.split_once('/')?;
    let is_foreign = group.contains('.') && group != keys::GROUP && !group.ends_with(".k8s.io");
    command::run_record(&object.metadata).filter(|_| is_foreign)
}

/// The conditions of an object of any kind; malformed ones are omitted.
#[must_use]
pub fn conditions(object: &DynamicObject) -> Vec<Condition> {
    let record = run_record(object);
    let recorded = record.iter().filter_map(|record| record["conditions"].as_array()).flatten();
    list(object, "/status/conditions").chain(recorded).filter_map(of_value).collect()
}

/// The condition of a type.
#[must_use]
pub fn condition(object: &DynamicObject, type_: &str) -> Option<Condition> {
    conditions(object).into_iter().find(|condition| condition.type_ == type_)
}

/// Kinds omit fields that the API conventions require: a pod's condition may have no reason, and no transition time.
fn of_value(value: &Value) -> Option<Condition> {
    let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
    // The API server accepts later times than this type can represent; they become the latest one.
    let time = value["lastTransitionTime"].as_str().map(|time| time.parse().unwrap_or(Timestamp::MAX));
    Some(Condition {
        type_: value["type"].as_str()?.to_owned(),
        status: value["status"].as_str()?.to_owned(),
        reason: text("reason"),
        message: text("message"),
        observed_generation: value["observedGeneration"].as_i64(),
        last_transition_time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(time.unwrap_or_default()),
    })
}

/// The time of the last write of a kind.
#[must_use]
pub fn last_write(metadata: &ObjectMeta, is: impl Fn(&ManagedFieldsEntry) -> bool) -> Option<Timestamp> {
    let writes = metadata.managed_fields.iter().flatten().filter(|entry| is(entry));
    writes.filter_map(|entry| entry.time.as_ref()).map(|time| time.0).max()
}

/// When an Event was seen last, by whichever of its fields its reporter sets.
#[must_use]
pub fn last_seen(event: &Event) -> Option<Timestamp> {
    let repeated = event.series.as_ref().and_then(|series| series.last_observed_time.as_ref());
    let last = event.last_timestamp.as_ref().map(|time| time.0);
    let made = event.event_time.as_ref().map(|time| time.0);
    repeated.map(|time| time.0).or(last).or(made).or_else(|| created(&event.metadata))
}

/// The number at a JSON pointer.
#[must_use]
pub fn number(object: &DynamicObject, pointer: &str) -> Option<i64> {
    object.data.pointer(pointer)?.as_i64()
}

/// The items of the list at a JSON pointer.
pub fn list<'o>(object: &'o DynamicObject, pointer: &str) -> impl Iterator<Item = &'o Value> + use<'o> {
    object.data.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// The text at a JSON pointer.
#[must_use]
pub fn text<'o>(object: &'o DynamicObject, pointer: &str) -> Option<&'o str> {
    object.data.pointer(pointer)?.as_str().filter(|text| !text.is_empty())
}
