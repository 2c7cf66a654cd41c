//! The desired child.

use std::sync::Arc;

use catena_api::{BasicDeployment, contract::FieldPath, keys, reason};
use operator_kit::write::{Ownership, Writer};
use operator_templates::{Digest, Rendered, Subject};
use operator_watch::{ApiError, Cause, Failure, ObjectId};
use serde_json::{Value, json};

use crate::{
    child::{Child, projection},
    child_kind::ChildKind,
    handed::Handed,
    settings::Settings,
};

/// The metadata that a template can set.
const OWN_METADATA: [&str; 3] = ["name", "labels", "annotations"];

/// The desired state of a child.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// Its kind.
    pub kind: Arc<ChildKind>,
    /// The object, without replicas and restart token.
    pub object: Value,
    /// The hash of the rendering.
    pub hash: String,
    /// The restart token of the `BasicDeployment`, if that has one.
    pub token: Option<String>,
    /// The fields that it gets beside the replicas.
    pub handed: Handed,
}

/// The current rendering of spec and template. Its suffix follows from all the rest of it, so that a child whose name ends with
/// the suffix is another one for each rendering.
pub fn render(deployment: &BasicDeployment, settings: &Settings) -> Result<Rendered, Failure> {
    let (spec, subject, templates) = (&deployment.spec, subject(deployment), &settings.templates);
    let kinds: Vec<_> = settings.children.iter().map(|kind| kind.name()).collect();
    let of = |subject| {
        templates.render(&spec.template, subject, &kinds).map_err(|error| match error.other_kind {
            Some(found) => settings.not_listed(&format!("the template {:?}", spec.template), &found),
            None => Failure::stalled(error.reason, error.message),
        })
    };
    let mut rendered = of(&subject)?;
    if templates.reads_suffix(&spec.template) {
        rendered = of(&Subject { suffix: &Digest::short(&[&rendered.hash]), ..subject })?;
    }
    let not_taken = |field: &str, why: &str| {
        let message = format!(
            "the template {:?} sets {field}, which the controller {why}; remove it from the template",
            spec.template
        );
        Failure::stalled(reason::TEMPLATE_FAILED, message)
    };
    if let Some(field) = unused_metadata(&rendered.object) {
        let why = "does not hand on: of the metadata, a template sets name, labels and annotations";
        return Err(not_taken(&field, why));
    }
    let kind = settings.kind_of(&rendered.object)?;
    if let Some((_, field)) = kind.fields().written().find(|(_, field)| field.get(&rendered.object).is_some())
    {
        return Err(not_taken(&field.to_string(), "sets from the BasicDeployment"));
    }
    if let Some(owner) = Ownership::controller_of(&deployment.metadata)
        && kind.is((&owner.api_version, &owner.kind))
    {
        let message = format!(
            "{} {:?} has this BasicDeployment for a child, and the template {:?} renders a {} again: such a chain has no end; render another kind",
            owner.kind, owner.name, spec.template, kind.kind
        );
        return Err(Failure::stalled(reason::RECURSION, message));
    }
    Ok(rendered)
}

/// A field of the rendered metadata that [`Desired::new`] would drop.
fn unused_metadata(rendered: &Value) -> Option<String> {
    let mut fields = rendered["metadata"].as_object()?.iter();
    let is_unused = |(field, value): &(&String, &Value)| {
        // Written manifests have creationTimestamp: null.
        !value.is_null() && field.as_str() != "namespace" && !OWN_METADATA.contains(&field.as_str())
    };
    fields.find(is_unused).map(|(field, _)| format!("metadata.{field}"))
}

/// The parameters of a `BasicDeployment` that its template does not read.
#[must_use]
pub fn unread(deployment: &BasicDeployment, settings: &Settings) -> Vec<String> {
    settings.templates.unread(&deployment.spec.template, &subject(deployment))
}

/// Adds the values of the fields to an error, if the server rejects the child and names fields.
pub fn with_source(error: ApiError, deployment: &BasicDeployment, settings: &Settings) -> ApiError {
    let is_it = |kind: &&Arc<ChildKind>| kind.kind == error.object.kind;
    let Some(kind) = settings.children.iter().find(is_it) else { return error };
    let is_unknown = error.cause == Cause::UnknownField;
    let is_named = |path: &FieldPath| is_unknown && error.fields.contains(&path.to_string());
    let contract = kind.fields();
    if let Some((name, _)) = contract.written().chain(contract.handed()).find(|(_, path)| is_named(path)) {
        return error
            .with_template(&format!("contract.{name} of {} in the controller's settings", kind.kind));
    }
    let (template, subject) = (&deployment.spec.template, subject(deployment));
    Writer::with_source(error, &settings.templates, template, &subject, (&kind.api_version, &kind.kind))
}

/// The values that a template can use for the child of a deployment.
#[must_use]
pub fn subject(deployment: &BasicDeployment) -> Subject<'_> {
    let (meta, spec) = (&deployment.metadata, &deployment.spec);
    let ObjectId { namespace, name, uid } = meta.into();
    Subject {
        name,
        namespace,
        uid,
        labels: meta.labels.as_ref(),
        annotations: meta.annotations.as_ref(),
        parameters: &spec.parameters,
        suffix: "",
    }
}

impl Desired {
    /// A rendering, marked as the deployment's. Anybody who may write revisions may have written a stored one, so only
    /// the metadata that a template can set is kept, and never another namespace.
    #[must_use]
    pub fn new(deployment: &BasicDeployment, rendered: Rendered, kind: Arc<ChildKind>) -> Self {
        let Rendered { mut object, hash } = rendered;
        // A stored rendering may have the API version that was listed then.
        object["apiVersion"] = kind.api_version.as_str().into();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.retain(|field, _| OWN_METADATA.contains(&field.as_str()));
        }
        object["metadata"]["namespace"] = deployment.metadata.namespace.clone().into();
        object["metadata"]["labels"][keys::DEPLOYMENT_UID] = deployment.metadata.uid.clone().into();
        object["metadata"]["annotations"][keys::HASH] = hash.as_str().into();
        object["metadata"]["ownerReferences"] = json!([Ownership::owner_reference(deployment)]);
        let token = deployment.spec.restarted_at.clone();
        Self { handed: Handed::of(&deployment.spec, &kind), kind, object, hash, token }
    }

    /// The restart token of an apply, if any: one that was applied once and is missing in a later apply would be removed.
    #[must_use]
    pub fn token_for<'t>(&'t self, child: Option<&'t Child>) -> Option<&'t str> {
        self.token.as_deref().or_else(|| child?.restarted_at())
    }

    /// The body of an apply to a child, or of the creation of one.
    #[must_use]
    pub fn body(&self, replicas: i32, child: Option<&Child>) -> Value {
        let contract = self.kind.fields();
        let mut object = self.object.clone();
        contract.replicas.set(&mut object, replicas.into());
        let token = self.token_for(child);
        if let (Some(restarted_at), Some(token)) = (&contract.restarted_at, token) {
            restarted_at.set(&mut object, token.into());
        }
        self.handed.set_in(&mut object);
        if let Some(child) = child {
            object["metadata"]["uid"] = child.uid.as_str().into();
            // A token of before, such as that of a former leader, would take a restart back.
            if token.is_some() {
                object["metadata"]["resourceVersion"] = child.version.as_str().into();
            }
        }
        object
    }

    /// The child's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// The values of an object in the fields that this one sets. The owner is compared by uid elsewhere, the
    /// namespace is known from the look-up, and the status is its controller's.
    #[must_use]
    pub fn seen_in(&self, observed: &Value) -> Value {
        projection(&self.comparable(), observed)
    }

    /// This object, in the form of [`Desired::seen_in`] for an object in its desired state.
    #[must_use]
    pub fn comparable(&self) -> Value {
        let mut object = self.object.clone();
        object.as_object_mut().map(|fields| fields.remove("status"));
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.retain(|field, _| OWN_METADATA.contains(&field.as_str()));
        }
        // The parent's values hold, and are compared apart.
        self.handed.0.iter().for_each(|(path, _)| path.remove(&mut object));
        object
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::deployment;

    fn rendering(metadata: &str) -> Result<Rendered, Failure> {
        rendering_of(&deployment(), metadata)
    }

    fn rendering_of(deployment: &BasicDeployment, metadata: &str) -> Result<Rendered, Failure> {
        let template = format!(
            "{{apiVersion: catena.dev/v1alpha1, kind: BasicReplicaSet, metadata: {metadata}, spec: {{}}}}"
        );
        let child = json!({"apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet"});
        let settings = json!({"children": [child], "templates": {"default": template}});
        render(deployment, &serde_json::from_value(settings).unwrap())
    }

    #[test]
    fn a_child_of_the_kind_that_has_the_deployment_for_a_child_is_refused() {
        let owned_by = |owner: Value| {
            let mut deployment = deployment();
            deployment.metadata.owner_references = Some(vec![serde_json::from_value(owner).unwrap()]);
            rendering_of(&deployment, "{name: web}")
        };
        let owner = json!({
            "apiVersion": "catena.dev/v2", "kind": "BasicReplicaSet", "name": "top", "uid": "u", "controller": true,
        });
        let refusal = owned_by(owner.clone()).unwrap_err();
        let told = refusal.to_string();
        assert!(told.contains("BasicReplicaSet \"top\"") && told.contains("\"default\""), "{told}");
        for (field, value) in [("controller", json!(false)), ("kind", json!("Top"))] {
            let mut other = owner.clone();
            other[field] = value;
            assert!(owned_by(other).is_ok(), "{field}");
        }
    }

    #[test]
    fn metadata_that_no_child_gets_is_refused_by_its_field() {
        for field in ["finalizers: [a.dev/b]", "ownerReferences: []", "generateName: web-"] {
            let refusal = rendering(&format!("{{name: web, {field}}}")).unwrap_err();
            let name = field.split(':').next().unwrap();
            assert!(refusal.to_string().contains(&format!("sets metadata.{name}, which")), "{refusal}");
        }
        let usual = "{name: web, namespace: shop, labels: {a: b}, annotations: {}, creationTimestamp: null}";
        assert!(rendering(usual).is_ok());
    }
}
