//! The comparable part of an object.

use std::collections::{BTreeMap, BTreeSet};

use kube::{ResourceExt, api::DynamicObject};
use model::server::object::{Key, Kind, Object, Text};

use super::Identities;

/// The comparable part of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shape {
    pub key: Key,
    /// Empty in comparisons, because only changes of it matter.
    pub version: String,
    uid: String,
    generation: i64,
    is_deleting: bool,
    has_grace: bool,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    owners: BTreeSet<(String, bool, bool)>,
    finalizers: BTreeSet<String>,
    spec: u8,
    status: u8,
}

impl Shape {
    /// The shape that the model predicts.
    pub fn of(object: &Object<u8, u8>, identities: &Identities) -> Self {
        let meta = &object.meta;
        let texts = |map: &BTreeMap<Text, Text>| {
            map.iter().map(|(key, value)| (String::from(&**key), String::from(&**value))).collect()
        };
        let owners = meta.owners.iter();
        Self {
            key: meta.key.clone(),
            version: String::new(),
            uid: identities.uid(&meta.uid),
            generation: meta.generation,
            is_deleting: meta.is_deleting,
            has_grace: meta.has_grace,
            labels: texts(&meta.labels),
            annotations: texts(&meta.annotations),
            owners: owners
                .map(|owner| (identities.uid(&owner.uid), owner.is_controller, owner.blocks_deletion))
                .collect(),
            finalizers: meta.finalizers.iter().map(ToString::to_string).collect(),
            spec: object.spec,
            status: object.status,
        }
    }

    /// The shape of a real object.
    pub fn of_real(kind: Kind, object: &DynamicObject) -> Self {
        let meta = &object.metadata;
        let (spec, status) = if kind == Kind::Pod {
            ("/none", "/status/message")
        } else {
            ("/spec/rules/0/host", "/status/loadBalancer/ingress/0/hostname")
        };
        let number = |pointer| {
            let text = object.data.pointer(pointer).and_then(|value| value.as_str()).unwrap_or_default();
            text.trim_start_matches('v').parse().unwrap_or_default()
        };
        Self {
            key: Key { kind, name: object.name_any().into() },
            version: object.resource_version().unwrap_or_default(),
            uid: object.uid().unwrap_or_default(),
            generation: meta.generation.unwrap_or_default(),
            is_deleting: meta.deletion_timestamp.is_some(),
            has_grace: meta.deletion_grace_period_seconds.unwrap_or_default() > 0,
            labels: object.labels().clone(),
            annotations: object.annotations().clone(),
            owners: object
                .owner_references()
                .iter()
                .map(|owner| {
                    let is = |flag: Option<bool>| flag.unwrap_or_default();
                    (owner.uid.clone(), is(owner.controller), is(owner.block_owner_deletion))
                })
                .collect(),
            finalizers: object.finalizers().iter().cloned().collect(),
            spec: number(spec),
            status: number(status),
        }
    }

    pub fn without_version(&self) -> Self {
        Self { version: String::new(), ..self.clone() }
    }
}
