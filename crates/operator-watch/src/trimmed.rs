//! Decodes only the fields that are read.
//!
//! `managedFields` is the largest part of a pod in a client: a store of 15,000 whole pods of 20 KB takes 2.6 GiB, and
//! one of metadata without `managedFields` 33 MiB. So it is skipped while decoding, not dropped afterwards.

use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta, OwnerReference, Time};
use kube::{Resource, api::DynamicObject, discovery::ApiResource};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};
use serde_json::{Map, Value, json};

/// The fields of `metadata`, of which those are decoded that controllers read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", remote = "ObjectMeta")]
struct Metadata {
    name: Option<String>,
    generate_name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    #[serde(default, deserialize_with = "Trimmed::time")]
    creation_timestamp: Option<Time>,
    #[serde(default, deserialize_with = "Trimmed::time")]
    deletion_timestamp: Option<Time>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
    finalizers: Option<Vec<String>>,
    #[serde(skip)]
    deletion_grace_period_seconds: Option<i64>,
    #[serde(skip)]
    managed_fields: Option<Vec<ManagedFieldsEntry>>,
    #[serde(skip)]
    self_link: Option<String>,
}

/// The server's answer to a write, reduced to the metadata.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Trimmed {
    /// The object's metadata, without `managedFields`.
    #[serde(default, deserialize_with = "Trimmed::metadata")]
    pub metadata: ObjectMeta,
}

impl Trimmed {
    /// Decodes `metadata` without `managedFields`; for `#[serde(deserialize_with = …)]`.
    pub fn metadata<'de, D: Deserializer<'de>>(decoder: D) -> Result<ObjectMeta, D::Error> {
        Metadata::deserialize(decoder)
    }

    /// Decodes a time; for `#[serde(default, deserialize_with = …)]`. The API server accepts later times than this type can
    /// represent; they become the latest possible one, because a pod that may take until the year 9999 to end is
    /// terminating nevertheless.
    pub fn time<'de, D: Deserializer<'de>>(decoder: D) -> Result<Option<Time>, D::Error> {
        let text = Option::<String>::deserialize(decoder)?;
        Ok(text.map(|text| Time(text.parse().unwrap_or(Timestamp::MAX))))
    }
}

/// An object of a kind that is known only at run time, without `managedFields`.
#[derive(Clone, Debug)]
pub struct TrimmedObject {
    /// The object's metadata.
    pub metadata: ObjectMeta,
    /// All other fields.
    pub data: Value,
}

impl TrimmedObject {
    /// All of it.
    #[must_use]
    pub fn into_json(self) -> Value {
        let Self { metadata, mut data } = self;
        data["metadata"] = json!(metadata);
        data
    }
}

impl<'de> Deserialize<'de> for TrimmedObject {
    fn deserialize<D: Deserializer<'de>>(decoder: D) -> Result<Self, D::Error> {
        decoder.deserialize_map(Fields)
    }
}

/// Reads an object field by field: `#[serde(flatten)]` would hold all of it twice, at any depth.
struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = TrimmedObject;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object with metadata")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<TrimmedObject, A::Error> {
        #[derive(Deserialize)]
        struct Read(#[serde(deserialize_with = "Trimmed::metadata")] ObjectMeta);

        let (mut metadata, mut data) = (None, Map::new());
        while let Some(key) = fields.next_key::<String>()? {
            if key == "metadata" {
                metadata = Some(fields.next_value::<Read>()?.0);
            } else {
                data.insert(key, fields.next_value::<Value>()?);
            }
        }
        let metadata = metadata.ok_or_else(|| A::Error::missing_field("metadata"))?;
        Ok(TrimmedObject { metadata, data: data.into() })
    }
}

/// Within the implementation of [`Resource`]: a type of the same kinds as another one.
macro_rules! of_the_kinds_of {
    ($other:ty, $kind:ty) => {
        type DynamicType = $kind;
        type Scope = <$other as kube::Resource>::Scope;

        fn kind(kind: &$kind) -> std::borrow::Cow<'_, str> {
            <$other as kube::Resource>::kind(kind)
        }

        fn group(kind: &$kind) -> std::borrow::Cow<'_, str> {
            <$other as kube::Resource>::group(kind)
        }

        fn version(kind: &$kind) -> std::borrow::Cow<'_, str> {
            <$other as kube::Resource>::version(kind)
        }

        fn plural(kind: &$kind) -> std::borrow::Cow<'_, str> {
            <$other as kube::Resource>::plural(kind)
        }
    };
}

pub(crate) use of_the_kinds_of;

impl Resource for TrimmedObject {
    of_the_kinds_of!(DynamicObject, ApiResource);

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn managed_fields_are_skipped_and_the_rest_is_kept() {
        let object: Trimmed = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "a", "uid": "u", "labels": {"k": "v"}, "managedFields": [{"fieldsV1": {"f:x": {}}}]},
            "spec": {"ignored": true}
        }))
        .unwrap();
        assert_eq!(object.metadata.name.as_deref(), Some("a"));
        assert_eq!(object.metadata.labels.unwrap()["k"], "v");
        assert_eq!(object.metadata.managed_fields, None);
    }

    #[test]
    fn what_others_may_write_and_nobody_reads_spoils_no_object() {
        let deep = format!("{}1{}", "[".repeat(300), "]".repeat(300));
        let managed = format!(r#"[{{"time": "9999-12-31T23:59:59Z", "fieldsV1": {{"f:spec": {deep}}}}}]"#);
        let metadata = format!(
            r#"{{"name": "a", "deletionTimestamp": "9999-12-31T23:59:59Z", "managedFields": {managed}}}"#
        );
        let of = |spec: &str| format!(r#"{{"spec": {{"deep": {spec}, "size": 1}}, "metadata": {metadata}}}"#);
        let answer: Trimmed = serde_json::from_str(&of(&deep)).unwrap();
        let object: TrimmedObject = serde_json::from_str(&of("1")).unwrap();
        for metadata in [&answer.metadata, &object.metadata] {
            assert_eq!(metadata.deletion_timestamp, Some(Time(Timestamp::MAX)));
        }
        assert_eq!(object.data["spec"]["size"], 1);
    }
}
