//! Defaults of the specs, and what the generated definitions need before an API server takes them.

use std::collections::BTreeMap;

use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::{
        CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
    },
    apimachinery::pkg::util::intstr::IntOrString,
};

pub(crate) fn one_replica() -> i32 {
    1
}

pub(crate) fn default_template() -> String {
    "default".into()
}

/// As for a Deployment: ten minutes.
pub(crate) fn progress_deadline() -> i32 {
    600
}

/// As for a Deployment: a quarter of the replicas.
pub(crate) fn quarter() -> IntOrString {
    IntOrString::String("25%".into())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

/// Adds what the derive cannot say.
pub(crate) fn finish(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        let root = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut());
        let spec = root.and_then(|root| root.properties.as_mut()).and_then(|fields| fields.get_mut("spec"));
        for field in spec.and_then(|spec| spec.properties.as_mut()).into_iter().flat_map(BTreeMap::values_mut)
        {
            bound_values(field);
            default_replaces_null(field);
        }
    }
    for version in &mut crd.spec.versions {
        if let Some(root) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            join_lines(root);
        }
    }
    crd
}

/// `kubectl explain` wraps texts by itself; the line breaks of the source would stand in the middle of its lines.
fn join_lines(field: &mut JSONSchemaProps) {
    if let Some(description) = &mut field.description {
        *description =
            description.split("\n\n").map(|part| part.replace('\n', " ")).collect::<Vec<_>>().join("\n\n");
    }
    field.properties.iter_mut().flat_map(BTreeMap::values_mut).for_each(join_lines);
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut field.items {
        join_lines(items);
    }
}

/// A parameter holds at most 32 KiB, so that an object with a few of them stays below etcd's limit.
fn bound_values(field: &mut JSONSchemaProps) {
    if let Some(JSONSchemaPropsOrBool::Schema(value)) = field.additional_properties.as_mut() {
        value.max_length = Some(32 * 1024);
    }
}

/// The API server puts the default in place of a null only where null is not allowed.
fn default_replaces_null(field: &mut JSONSchemaProps) {
    if field.default.is_some() {
        field.nullable = None;
    }
}
