//! The objects of the chain as JSON, and their conversion into the controllers' own types.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use basic_deployment_controller::child_kind::ChildKind;
use catena_api::{BasicDeployment, keys};
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::{Resource, api::ObjectMeta};
use operator_watch::PrunedObject;
use serde_json::{Value, json};

use super::settings::{DEPLOYMENTS, OTHER};
use crate::{
    metadata::{real_meta, resource},
    server::{
        self,
        object::{self, Kind, Meta, Text},
    },
};

pub type Object = object::Object<Json, Json>;
/// An object of this model as the server keeps it.
pub type Stored = object::Stored<Json, Json>;
pub type Server = server::Server<Json, Json>;
pub type Operation = server::operation::Operation<Json, Json>;
pub type Answer = server::operation::Answer<Json, Json>;

pub const CHILDREN: [Kind; 2] = [Kind::ReplicaSet, Kind::Workload];
pub const COMMANDS: [Kind; 2] = [Kind::Restart, Kind::Rollback];
/// The only namespace.
pub const NAMESPACE: &str = "shop";
/// The name of the only `BasicDeployment`, and of its child.
pub const NAME: &str = "web";
/// The field manager of backups, which the server records on a create.
pub const BACKUP_MANAGER: &str = "backup-controller";

/// A JSON value that is cheap to copy and to hash.
///
/// As a spec, it holds all fields of an object but its metadata and status.
#[derive(Clone, Debug)]
pub struct Json(Arc<(u64, Value)>);

impl Json {
    pub fn value(&self) -> &Value {
        &self.0.1
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        Self(Arc::new((hasher.finish(), value)))
    }
}

impl Default for Json {
    fn default() -> Self {
        Value::Null.into()
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

impl Eq for Json {}

impl Hash for Json {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.0.hash(state);
    }
}

/// The status of a backup that has ended.
pub fn ended(is_success: bool) -> Json {
    let condition = if is_success { "Complete" } else { "Failed" };
    json!({"conditions": [{"type": condition, "status": "True"}]}).into()
}

/// An object to create.
pub fn object(kind: Kind, name: &str, spec: Value) -> Object {
    Object { meta: Meta::new(kind, name), spec: spec.into(), status: Json::default() }
}

/// The metadata in Kubernetes' own type.
pub fn metadata(object: &Object) -> ObjectMeta {
    ObjectMeta { namespace: Some(NAMESPACE.into()), ..real_meta(&object.meta) }
}

/// The object as a watch shows it.
pub fn pruned(object: &Object) -> PrunedObject {
    let mut data = object.spec.value().clone();
    data["status"] = object.status.value().clone();
    PrunedObject { metadata: metadata(object), data }
}

/// The whole object as a GET shows it.
pub fn whole(object: &Object) -> Value {
    let PrunedObject { metadata, mut data } = pruned(object);
    let kind = resource(object.meta.key.kind);
    (data["apiVersion"], data["kind"]) = (kind.api_version.into(), kind.kind.into());
    data["metadata"] = json!(metadata);
    if let Some(manager) = data.as_object_mut().and_then(|data| data.remove("createdBy")) {
        let mut fields = json!({"f:metadata": {"f:annotations": {}}});
        fields["f:metadata"]["f:annotations"][format!("f:{}", keys::BACKUP_TARGET)] = json!({});
        let entry = json!({"manager": manager, "operation": "Update", "fieldsV1": fields});
        data["metadata"]["managedFields"] = json!([entry]);
    }
    data
}

/// The `BasicDeployment` as its controller reads it.
pub fn real_deployment(object: &Object) -> BasicDeployment {
    serde_json::from_value(whole(object)).expect("the model's BasicDeployments are valid")
}

/// The labels or annotations of a rendered object.
pub fn texts(rendered: &Value, map: &str) -> BTreeMap<Text, Text> {
    let texts = rendered["metadata"][map].as_object().into_iter().flatten();
    texts.map(|(key, value)| (key.as_str().into(), value.as_str().unwrap_or_default().into())).collect()
}

/// The kind of a rendered object.
pub fn kind_of(rendered: &Value) -> Kind {
    let is = |kind: &str| rendered["kind"] == kind;
    match () {
        () if is(&ControllerRevision::kind(&())) => Kind::Revision,
        () if is("Workload") => Kind::Workload,
        () => Kind::ReplicaSet,
    }
}

/// The kind of children that the template of a `BasicDeployment` gives.
pub fn kind_of_child(deployment: &Object) -> Kind {
    let is_other = deployment.spec.value()["spec"]["template"] == OTHER;
    if is_other { Kind::Workload } else { Kind::ReplicaSet }
}

/// A kind of children in the settings of their controller.
pub fn settings_of(kind: Kind) -> &'static Arc<ChildKind> {
    let mut kinds = DEPLOYMENTS.children.iter();
    let found = kinds.find(|listed| listed.kind == resource(kind).kind);
    found.expect("only children are read as children")
}

/// The desired replicas and the image of a `BasicDeployment` or its child.
pub fn desire(object: &Object) -> (i64, &str) {
    let spec = &object.spec.value()["spec"];
    (spec["replicas"].as_i64().unwrap_or(1), spec["parameters"]["image"].as_str().unwrap_or_default())
}

/// Whether a child serves its present spec with all replicas.
pub fn serves(child: &Object) -> bool {
    let status = child.status.value();
    status["observedGeneration"].as_i64() == Some(child.meta.generation)
        && status["active"].as_i64() == Some(desire(child).0)
        && status["updated"] == status["active"]
}

/// The status of a condition; empty if it is missing.
pub fn condition<'o>(object: &'o Object, type_: &str) -> &'o str {
    let conditions = object.status.value()["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == type_);
    found.and_then(|condition| condition["status"].as_str()).unwrap_or_default()
}
