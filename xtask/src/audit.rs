//! The lines of an API server's audit log.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// A request and its answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    #[serde(default)]
    pub stage: String,
    #[serde(rename = "requestURI", default)]
    pub uri: String,
    pub verb: String,
    pub user: User,
    pub object_ref: Option<ObjectRef>,
    #[serde(default)]
    pub response_status: ResponseStatus,
    pub response_object: Option<Value>,
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
pub struct User {
    #[serde(default)]
    pub username: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectRef {
    pub api_group: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct ResponseStatus {
    pub code: u16,
    pub message: String,
}
