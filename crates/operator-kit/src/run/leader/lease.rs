//! The parts of a Lease that an election needs. The API server accepts times that cannot be parsed here, so its spec is
//! kept as JSON.

use std::time::Duration;

use k8s_openapi::{api::coordination::v1 as api, apimachinery::pkg::apis::meta::v1::MicroTime};
use kube::{
    Resource,
    api::{ObjectMeta, TypeMeta},
};
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::{Map, Value, json};

#[derive(Clone, Debug, Serialize, Deserialize, Resource)]
#[resource(inherit = "api::Lease")]
pub(super) struct Lease {
    #[serde(flatten)]
    pub types: Option<TypeMeta>,
    #[serde(deserialize_with = "unmanaged")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: Value,
}

impl Lease {
    /// A Lease to create, with the labels and annotations of one that somebody deleted. Without those of helm, an
    /// uninstallation would leave the Lease behind, and the next installation would refuse it as somebody else's.
    pub fn in_place_of(former: &ObjectMeta, name: &str, spec: Value) -> Self {
        let ObjectMeta { labels, annotations, .. } = former.clone();
        let metadata =
            ObjectMeta { name: Some(name.to_owned()), labels, annotations, ..ObjectMeta::default() };
        Self { types: Some(TypeMeta::resource::<api::Lease>()), metadata, spec }
    }

    /// The identity of its holder; empty if there is none.
    pub fn holder(&self) -> &str {
        self.spec["holderIdentity"].as_str().unwrap_or_default()
    }

    /// The time for which it is valid after a renewal, if it says so.
    pub fn validity(&self) -> Option<Duration> {
        let seconds = self.spec["leaseDurationSeconds"].as_i64()?;
        Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
    }
}

/// The present time, as the API server takes it.
pub(super) fn now() -> Value {
    json!(MicroTime(jiff::Timestamp::now()))
}

/// Metadata for the next write, without `managedFields`: a write without them leaves them unchanged.
fn unmanaged<'de, D: Deserializer<'de>>(decoder: D) -> Result<ObjectMeta, D::Error> {
    let mut metadata = Map::deserialize(decoder)?;
    metadata.remove("managedFields");
    ObjectMeta::deserialize(Value::Object(metadata)).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_read_whatever_times_it_tells_and_keeps_what_others_say_of_it() {
        let last = "9999-12-31T23:59:59.000000Z";
        let metadata = json!({"name": "reaper", "resourceVersion": "7", "labels": {"team": "a"}});
        let mut told = json!({
            "metadata": metadata,
            "spec": {"holderIdentity": "reaper-0", "leaseDurationSeconds": 30, "renewTime": last, "acquireTime": last},
        });
        told["metadata"]["managedFields"] = json!([{"manager": "other", "time": "9999-12-31T23:59:59Z"}]);
        assert!(serde_json::from_value::<api::Lease>(told.clone()).is_err());
        let read: Lease = serde_json::from_value(told).unwrap();
        assert_eq!((read.holder(), read.validity()), ("reaper-0", Some(Duration::from_secs(30))));
        let written = serde_json::to_value(&read).unwrap();
        assert_eq!((&written["metadata"], &written["spec"]["renewTime"]), (&metadata, &json!(last)));
    }

    #[test]
    fn a_moment_is_written_as_the_api_server_takes_it() {
        let lease = json!({"metadata": {}, "spec": {"renewTime": now()}});
        assert!(serde_json::from_value::<api::Lease>(lease).is_ok());
    }
}
