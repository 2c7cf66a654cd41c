//! Objects with any times in their metadata: the API server accepts later ones than can be represented here.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, value::RawValue};

/// Reads an answer of the server, or an object in it.
pub fn read<K: DeserializeOwned>(text: &str) -> serde_json::Result<K> {
    // Most need no repair.
    serde_json::from_str(text).or_else(|error| serde_json::from_str(&repaired(text)?).map_err(|_| error))
}

fn repaired(text: &str) -> serde_json::Result<String> {
    let mut object: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
    let Some(metadata) = object.get("metadata") else { return Ok(text.to_owned()) };
    let mut metadata: Map<String, Value> = serde_json::from_str(metadata.get())?;
    let entries = metadata.get_mut("managedFields").and_then(Value::as_array_mut).into_iter().flatten();
    for entry in entries.filter_map(Value::as_object_mut) {
        if entry.get("time").is_some_and(|time| !is_time(time)) {
            entry.remove("time");
        }
    }
    if let Some(deleted) = metadata.get_mut("deletionTimestamp").filter(|deleted| !is_time(deleted)) {
        // Its end may lie beyond the year 9999, but it is being deleted.
        *deleted = Timestamp::MAX.to_string().into();
    }
    let metadata = serde_json::value::to_raw_value(&metadata)?;
    object.insert("metadata".into(), &metadata);
    serde_json::to_string(&object)
}

fn is_time(time: &Value) -> bool {
    time.is_null() || time.as_str().is_some_and(|time| time.parse::<Timestamp>().is_ok())
}

#[cfg(test)]
mod tests {
    use kube::core::DynamicObject;
    use serde_json::json;

    use super::*;

    const ODD: &str = "9999-12-31T23:59:59Z";

    #[test]
    fn an_object_with_unrepresentable_times_is_read_and_keeps_its_managers() {
        let object = json!({
            "apiVersion": "v1", "kind": "Pod", "spec": {"a": 1},
            "metadata": {
                "name": "a", "deletionTimestamp": ODD, "managedFields": [
                    {"manager": "odd", "time": ODD, "fieldsV1": {"f:spec": {}}},
                    {"manager": "usual", "time": "2026-01-01T00:00:00Z"},
                ],
            },
        });
        assert!(serde_json::from_value::<DynamicObject>(object.clone()).is_err());
        let read: DynamicObject = read(&object.to_string()).unwrap();
        let managers: Vec<_> = read.metadata.managed_fields.iter().flatten().collect();
        assert_eq!((managers[0].manager.as_deref(), managers[0].time.is_none()), (Some("odd"), true));
        assert!(managers[0].fields_v1.is_some() && managers[1].time.is_some());
        assert_eq!(read.metadata.deletion_timestamp.map(|time| time.0), Some(Timestamp::MAX));
        assert_eq!(read.data["spec"]["a"], 1);
    }
}
