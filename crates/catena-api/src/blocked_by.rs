use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::KubeSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error};

/// The first object that keeps this one from being ready. It is copied up the chain one level at a time, so that
/// the top object names the leaf.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockedBy {
    /// API version of the blocking object, for example `v1`.
    pub api_version: String,
    /// Kind of the blocking object, for example `Pod`.
    pub kind: String,
    /// Name of the blocking object, in the same namespace.
    pub name: String,
    /// One-word reason why the object blocks, for example `ImagePullBackOff` or `Unschedulable`.
    pub reason: String,
    /// Human-readable explanation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Time since which the object blocks.
    #[serde(default, deserialize_with = "time", skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// Time by which the controller of the object retries. Absent while it is not the controller that is blocked, or
    /// while it retries within 75 seconds.
    #[serde(default, deserialize_with = "time", skip_serializing_if = "Option::is_none")]
    pub next_retry: Option<Time>,
}

impl BlockedBy {
    /// An object, by its API version, kind and name, that has blocked for this reason since then.
    #[must_use]
    pub fn new(object: [&str; 3], reason: &str, message: &str, since: Option<Time>) -> Self {
        let [api_version, kind, name] = object.map(str::to_owned);
        let (reason, message) = (reason.to_owned(), message.to_owned());
        Self { api_version, kind, name, reason, message, since, next_retry: None }
    }
}

/// Reads a time. On the last two days before the year 10000, it is the latest that [`Time`] can represent.
fn time<'de, D: Deserializer<'de>>(decoder: D) -> Result<Option<Time>, D::Error> {
    let Some(text) = Option::<String>::deserialize(decoder)? else { return Ok(None) };
    let is_last = text.starts_with("9999-12-3");
    let time = if is_last { Ok(Timestamp::MAX) } else { text.parse() };
    time.map(|time| Some(Time(time))).map_err(D::Error::custom)
}
