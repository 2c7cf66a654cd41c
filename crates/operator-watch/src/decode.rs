//! Decodes only the fields that are read, and objects one by one, so that a malformed one breaks neither its list nor its watch.
//!
//! `managedFields` is the largest part of a pod in a client: a store of 15,000 whole pods of 20 KB takes 2.6 GiB, and
//! one of metadata without `managedFields` 33 MiB. So it is skipped while decoding, not dropped afterwards.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::ObjectReference,
    apimachinery::pkg::apis::meta::v1::{Condition, ManagedFieldsEntry, ObjectMeta, OwnerReference, Time},
};
use kube::{Resource, api::DynamicObject, discovery::ApiResource};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, Error, MapAccess, Visitor},
};
use serde_json::{Map, Value, value::RawValue};

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
    #[serde(default, deserialize_with = "Pruned::time")]
    creation_timestamp: Option<Time>,
    #[serde(default, deserialize_with = "Pruned::time")]
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
pub struct Pruned {
    /// The object's metadata, without `managedFields`.
    #[serde(default, deserialize_with = "Pruned::metadata")]
    pub metadata: ObjectMeta,
}

impl Pruned {
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
#[derive(Clone, Debug, Serialize)]
pub struct PrunedObject {
    /// The object's metadata.
    pub metadata: ObjectMeta,
    /// All other fields.
    #[serde(flatten)]
    pub data: Value,
}

impl PrunedObject {
    /// All of it.
    #[must_use]
    pub fn into_json(self) -> Value {
        let Self { metadata, mut data } = self;
        data["metadata"] = serde_json::json!(metadata);
        data
    }
}

impl<'de> Deserialize<'de> for PrunedObject {
    fn deserialize<D: Deserializer<'de>>(decoder: D) -> Result<Self, D::Error> {
        decoder.deserialize_map(Fields)
    }
}

/// Reads an object field by field: `#[serde(flatten)]` would hold all of it twice, at any depth.
struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = PrunedObject;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object with metadata")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<PrunedObject, A::Error> {
        #[derive(Deserialize)]
        struct Read(#[serde(deserialize_with = "Pruned::metadata")] ObjectMeta);

        let (mut metadata, mut data) = (None, Map::new());
        while let Some(key) = fields.next_key::<String>()? {
            if key == "metadata" {
                metadata = Some(fields.next_value::<Read>()?.0);
            } else {
                data.insert(key, fields.next_value::<Value>()?);
            }
        }
        let metadata = metadata.ok_or_else(|| A::Error::missing_field("metadata"))?;
        Ok(PrunedObject { metadata, data: data.into() })
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

impl Resource for PrunedObject {
    of_the_kinds_of!(DynamicObject, ApiResource);

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// A received object, whether it can be read or not.
#[derive(Clone, Debug)]
pub struct Received<K>(pub Result<K, Unreadable>);

/// An object that does not match its kind.
#[derive(Clone, Debug, Default)]
pub struct Unreadable {
    /// The part of it that is known even so. Items of a list of a built-in kind have neither an API version nor a kind.
    pub object: ObjectReference,
    /// The mistake in it.
    pub error: String,
}

impl Unreadable {
    fn of(text: &str, error: &serde_json::Error) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Known {
            api_version: Option<String>,
            kind: Option<String>,
            metadata: ObjectReference,
        }

        let Known { api_version, kind, metadata } = serde_json::from_str(text).unwrap_or_default();
        let error = error.to_string();
        // Its place in a line that nobody sees changes with any field before it.
        let mistake = error.rsplit_once(" at line ").map_or(&*error, |(mistake, _)| mistake);
        Self { object: ObjectReference { api_version, kind, ..metadata }, error: mistake.to_owned() }
    }
}

impl<K: Resource> Received<K> {
    /// Its version, if it has one.
    pub fn resource_version(&self) -> Option<&str> {
        match &self.0 {
            Ok(object) => object.meta().resource_version.as_deref(),
            Err(unreadable) => unreadable.object.resource_version.as_deref(),
        }
    }

    /// Its uid; empty if it has none.
    pub fn uid(&self) -> &str {
        let uid = match &self.0 {
            Ok(object) => &object.meta().uid,
            Err(unreadable) => &unreadable.object.uid,
        };
        uid.as_deref().unwrap_or_default()
    }
}

impl<K: DeserializeOwned> Received<K> {
    /// The object of a text.
    #[must_use]
    pub fn read(text: &str) -> Self {
        Self(serde_json::from_str(text).map_err(|error| Unreadable::of(text, &error)))
    }
}

/// An object of a kind that decodes all of its metadata, without its `managedFields`: nobody reads them, anybody may
/// write them, and the API server accepts times in them that cannot be decoded here. Conditions that cannot be decoded
/// are dropped, because they belong to somebody else. Any other status that cannot be decoded counts as missing, and is
/// rebuilt from the observation.
#[derive(Clone, Debug)]
pub struct Lenient<K>(pub K);

impl<'de, K: DeserializeOwned> Deserialize<'de> for Lenient<K> {
    fn deserialize<D: Deserializer<'de>>(decoder: D) -> Result<Self, D::Error> {
        let text = <&RawValue>::deserialize(decoder)?.get();
        let object = without_managed_fields(text).map_err(D::Error::custom)?;
        let read = serde_json::from_str(&object).or_else(|error| without_mistakes(&object).ok_or(error));
        read.map(Self).map_err(D::Error::custom)
    }
}

impl<K: Resource> Resource for Lenient<K> {
    of_the_kinds_of!(K, K::DynamicType);

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

fn without_managed_fields(text: &str) -> serde_json::Result<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Object<'t> {
        #[serde(borrow)]
        metadata: Option<Metadata<'t>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata<'t> {
        #[serde(borrow)]
        managed_fields: Option<&'t RawValue>,
    }

    let Object { metadata } = serde_json::from_str(text)?;
    let Some(managed) = metadata.and_then(|metadata| metadata.managed_fields) else { return Ok(text.into()) };
    // It is a part of the text.
    let start = managed.get().as_ptr().addr() - text.as_ptr().addr();
    Ok([&text[..start], "null", &text[start + managed.get().len()..]].concat().into())
}

/// An object without the conditions that cannot be decoded, or without its status.
fn without_mistakes<K: DeserializeOwned>(text: &str) -> Option<K> {
    let mut object: Value = serde_json::from_str(text).ok()?;
    if let Some(conditions) = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
        conditions.retain(|condition| Condition::deserialize(condition).is_ok());
    }
    K::deserialize(&object).ok().or_else(|| {
        object.as_object_mut()?.remove("status");
        K::deserialize(object).ok()
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Node, Service};
    use serde_json::json;

    use super::*;
    use crate::PrunedObject;

    #[test]
    fn managed_fields_are_skipped_and_the_rest_is_kept() {
        let object: Pruned = serde_json::from_value(serde_json::json!({
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
        let answer: Pruned = serde_json::from_str(&of(&deep)).unwrap();
        let object: PrunedObject = serde_json::from_str(&of("1")).unwrap();
        for metadata in [&answer.metadata, &object.metadata] {
            assert_eq!(metadata.deletion_timestamp, Some(Time(Timestamp::MAX)));
        }
        assert_eq!(object.data["spec"]["size"], 1);
    }

    #[test]
    fn conditions_that_cannot_be_read_are_left_out_and_the_rest_of_the_status_is_kept() {
        let at = |time: &str| json!({"type": "Ready", "status": "True", "lastTransitionTime": time});
        let status = json!({
            "loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]},
            "conditions": [at("9999-12-31T23:59:59Z"), at("2026-01-01T00:00:00Z"), "odd"],
        });
        let object = json!({"metadata": {"name": "a"}, "status": status}).to_string();
        let Lenient(service) = serde_json::from_str::<Lenient<Service>>(&object).unwrap();
        let status = service.status.unwrap();
        assert_eq!((status.load_balancer.is_some(), status.conditions.unwrap().len()), (true, 1));
    }

    #[test]
    fn an_object_is_read_whatever_its_managed_fields_are() {
        let odd = json!([{"manager": "other", "time": "9999-12-31T23:59:59Z", "fieldsV1": [[]]}]);
        let object = json!({"metadata": {"name": "a", "managedFields": odd}, "data": {"k": "v"}}).to_string();
        assert!(serde_json::from_str::<ConfigMap>(&object).is_err());
        let Lenient(map) = serde_json::from_str::<Lenient<ConfigMap>>(&object).unwrap();
        assert_eq!((map.metadata.name.as_deref(), &map.data.unwrap()["k"][..]), (Some("a"), "v"));
        assert_eq!(map.metadata.managed_fields, None);
    }

    #[test]
    fn what_nobody_reads_may_be_anything() {
        let deep = format!(r#"{{"other": {}1{}}}"#, "[".repeat(300), "]".repeat(300));
        for text in ["{}", &*deep, r#"{"other": 1e999, "more": "\ud800"}"#] {
            assert!(serde_json::from_str::<ConfigMap>(text).is_ok(), "{text}");
            assert!(serde_json::from_str::<Lenient<ConfigMap>>(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_status_that_somebody_spoiled_is_none() {
        let object =
            json!({"metadata": {"name": "a"}, "spec": {"unschedulable": true}, "status": {"phase": 7}});
        let read = |object: &Value| serde_json::from_str::<Lenient<Node>>(&object.to_string());
        let Lenient(node) = read(&object).unwrap();
        assert_eq!((node.spec.unwrap().unschedulable, node.status), (Some(true), None));
        let error = read(&json!({"metadata": {"name": "a"}, "spec": 7})).unwrap_err();
        assert!(error.to_string().contains("invalid type: integer `7`"), "{error}");
    }

    #[test]
    fn one_that_cannot_be_read_is_named_and_the_others_are_read() {
        let list = json!([
            {"apiVersion": "v1", "kind": "ConfigMap", "data": 7,
             "metadata": {"namespace": "shop", "name": "bad", "uid": "u", "resourceVersion": "5", "labels": 3}},
            {"metadata": {"name": "good"}},
        ]);
        let list: Vec<Received<ConfigMap>> =
            list.as_array().unwrap().iter().map(|item| Received::read(&item.to_string())).collect();
        let Received(Err(bad)) = &list[0] else { panic!("{list:?}") };
        let ObjectReference { namespace, name, uid, kind, .. } = &bad.object;
        let texts = [namespace, name, uid, kind].map(Option::as_deref);
        assert_eq!(texts, [Some("shop"), Some("bad"), Some("u"), Some("ConfigMap")]);
        assert_eq!(list[0].resource_version(), Some("5"));
        assert_eq!(
            bad.error, "invalid type: integer `7`, expected a map",
            "a place would change with any field"
        );
        assert!(list[1].0.is_ok());
    }

    #[test]
    fn one_that_is_nested_too_deep_is_named_too() {
        let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
        let text = format!(r#"{{"spec": {deep}, "metadata": {{"name": "deep", "uid": "u"}}}}"#);
        let Received(Err(bad)) = Received::<PrunedObject>::read(&text) else { panic!("it is read") };
        assert_eq!(bad.object.name.as_deref(), Some("deep"));
        assert!(bad.error.contains("recursion limit"), "{}", bad.error);
    }
}
