//! The parts of a Lease that an election needs. The API server accepts times that cannot be parsed here, so times are
//! compared as text.

use k8s_openapi::{api::coordination::v1 as api, apimachinery::pkg::apis::meta::v1::MicroTime};
use kube::{
    Resource,
    api::{ObjectMeta, TypeMeta},
};
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::{Map, Value};

#[derive(Clone, Debug, Default, Serialize, Deserialize, Resource)]
#[resource(inherit = "api::Lease")]
#[serde(rename_all = "camelCase")]
pub(super) struct Lease {
    #[serde(flatten)]
    pub types: Option<TypeMeta>,
    #[serde(deserialize_with = "unmanaged")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: Spec,
}

impl Lease {
    /// A Lease to create.
    pub fn new(name: &str, spec: Spec) -> Self {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        Self { types: Some(TypeMeta::resource::<api::Lease>()), metadata, spec }
    }

    /// The same with the labels and annotations of a Lease that somebody deleted. Without those of helm, an uninstallation
    /// would leave the Lease behind, and the next installation would refuse it as somebody else's.
    pub fn in_place_of(self, former: Option<&ObjectMeta>) -> Self {
        let (labels, annotations) =
            former.map(|former| (former.labels.clone(), former.annotations.clone())).unwrap_or_default();
        Self { metadata: ObjectMeta { labels, annotations, ..self.metadata }, ..self }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Spec {
    pub holder_identity: Option<String>,
    pub lease_duration_seconds: Option<i64>,
    pub lease_transitions: Option<i32>,
    pub acquire_time: Option<Moment>,
    pub renew_time: Option<Moment>,
}

/// A time as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Moment(Value);

impl Moment {
    pub fn now() -> Self {
        Self(serde_json::to_value(MicroTime(jiff::Timestamp::now())).unwrap_or_default())
    }
}

/// Metadata for the next write, without `managedFields`: a write without them leaves them unchanged.
fn unmanaged<'de, D: Deserializer<'de>>(decoder: D) -> Result<ObjectMeta, D::Error> {
    let mut metadata = Map::deserialize(decoder)?;
    metadata.remove("managedFields");
    ObjectMeta::deserialize(Value::Object(metadata)).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        assert_eq!(read.spec.holder_identity.as_deref(), Some("reaper-0"));
        let written = serde_json::to_value(&read).unwrap();
        assert_eq!((&written["metadata"], &written["spec"]["renewTime"]), (&metadata, &json!(last)));
    }

    #[test]
    fn a_moment_is_written_as_the_api_server_takes_it() {
        let lease = json!({"metadata": {}, "spec": {"renewTime": Moment::now()}});
        assert!(serde_json::from_value::<api::Lease>(lease).is_ok());
    }
}
