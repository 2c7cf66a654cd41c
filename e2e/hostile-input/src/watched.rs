//! Pages of lists and lines of watches: one unreadable object affects no other.

use catena_api::{BasicDeployment, BasicReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Service};
use kube::Resource;
use operator_kit::testing;
use operator_watch::{Lenient, Pruned, PrunedObject};
use pod_state::PrunedPod;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

pub fn read(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    read_as::<Pruned>(&text);
    read_as::<PrunedObject>(&text);
    read_as::<PrunedPod>(&text);
    read_as::<Lenient<BasicDeployment>>(&text);
    read_as::<Lenient<BasicReplicaSet>>(&text);
    is_no_stricter::<ConfigMap>(&text);
    is_no_stricter::<Node>(&text);
    is_no_stricter::<Service>(&text);
}

fn read_as<K: DeserializeOwned>(text: &str) {
    let _ = (testing::page::<K>(text).is_ok(), testing::is_watch_line::<K>(text));
    let Ok(object) = serde_json::from_str::<&RawValue>(text) else { return };
    let good = r#"{"metadata": {"name": "good"}, "spec": {}}"#;
    let page = format!(r#"{{"metadata": {{"resourceVersion": "1"}}, "items": [{object}, {good}]}}"#);
    let objects = testing::page::<K>(&page).unwrap_or_else(|error| panic!("a page with it: {error}"));
    assert_eq!(objects.len(), 2);
    assert!(objects[1].is_ok(), "the object beside it is not read");
    for kind in ["ADDED", "MODIFIED", "DELETED"] {
        let line = format!(r#"{{"type": "{kind}", "object": {object}}}"#);
        assert!(testing::is_watch_line::<K>(&line), "a line with it is not understood");
    }
}

/// A decodable object is also decoded leniently, with the same result.
fn is_no_stricter<K: Resource + DeserializeOwned>(text: &str) {
    let Ok(strict) = serde_json::from_str::<K>(text) else { return };
    let lenient = serde_json::from_str::<Lenient<K>>(text);
    let Lenient(lenient) = lenient.unwrap_or_else(|error| panic!("only read without leniency: {error}"));
    assert_eq!(lenient.meta().name, strict.meta().name);
    assert_eq!(lenient.meta().annotations, strict.meta().annotations);
    assert_eq!(lenient.meta().managed_fields, None);
}
