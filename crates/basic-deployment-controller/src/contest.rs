//! Changes of the child by somebody else: their detection, the pace of undoing them, and their report. Pure.

use std::time::Duration;

use catena_api::contract::FieldPath;
use serde_json::{Map, Value};

use crate::{
    child::Child,
    desired::Desired,
    observed::Observed,
    undone::{CONTEST_END, Part, Undone},
};

/// Keys of a rendered map that the template does not render.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Additions {
    /// The map.
    pub map: FieldPath,
    /// The keys.
    pub keys: Vec<String>,
}

impl Additions {
    /// Removes them in a patch.
    pub fn removed_in(&self, patch: &mut Value) {
        let nothing: Map<_, _> = self.keys.iter().map(|key| (key.clone(), Value::Null)).collect();
        self.map.set(patch, Value::Object(nothing));
    }
}

/// The keys that somebody has added to maps of the template.
#[must_use]
pub fn additions(child: &Child, desired: &Desired) -> Vec<Additions> {
    let contract = child.kind.fields();
    // The token may be one of the keys of such a map.
    let mut rendered = desired.object.clone();
    for (_, field) in contract.written() {
        field.set(&mut rendered, Value::Bool(true));
    }
    let added = |map: &FieldPath| {
        map.get(&desired.object)?;
        let (own, live) = (map.get(&rendered)?.as_object()?, map.get(&child.object)?.as_object()?);
        let keys: Vec<_> = live.keys().filter(|key| !own.contains_key(*key)).cloned().collect();
        (!keys.is_empty()).then(|| Additions { map: map.clone(), keys })
    };
    contract.maps.iter().filter_map(added).collect()
}

/// The time until a change of a part is undone.
#[must_use]
pub fn left_for(part: Part, observed: &Observed) -> Option<Duration> {
    observed.undone.get(&part)?.left_for()
}

/// The fields that somebody else keeps changing.
#[must_use]
pub fn contested(observed: &Observed) -> Vec<&str> {
    let mut fields: Vec<_> = going_on(observed).map(|undone| undone.field.as_str()).collect();
    fields.sort_unstable();
    fields
}

/// The time until the next contest is over.
#[must_use]
pub fn over_in(observed: &Observed) -> Option<Duration> {
    going_on(observed).map(|undone| CONTEST_END.saturating_sub(undone.since)).min()
}

fn going_on(observed: &Observed) -> impl Iterator<Item = &Undone> {
    observed.undone.values().filter(|undone| undone.is_contest())
}
