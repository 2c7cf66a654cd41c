//! What a pod is made from.

use catena_api::BasicReplicaSet;
use operator_kit::{
    object::ObjectId,
    render::{Rendered, Subject, TemplateError, Templates, sha256},
};

/// Stands for the suffix of a pod's name where only the revision is asked for.
const NO_POD: &str = "bcdfghjk";

/// What the pods of a set are made from: the rendered text, and the restart token if there is one.
///
/// # Errors
/// When the template gives no pod, or pods whose names do not differ.
pub fn revision(templates: &Templates, set: &BasicReplicaSet) -> Result<String, TemplateError> {
    let rendered = templates.render_one_of_many(&set.spec.template, &subject(set, NO_POD), "v1", "Pod")?;
    Ok(of(&rendered, set))
}

/// The revision of a set whose template renders to this.
#[must_use]
pub fn of(rendered: &Rendered, set: &BasicReplicaSet) -> String {
    let token = set.spec.restarted_at.as_deref();
    token.map_or_else(|| rendered.hash.clone(), |token| sha256(&format!("{}\n{token}", rendered.hash)))
}

/// What a template may say about a pod of a set.
#[must_use]
pub fn subject<'s>(set: &'s BasicReplicaSet, suffix: &'s str) -> Subject<'s> {
    let ObjectId { namespace, name, uid } = ObjectId::of(set);
    Subject {
        name,
        namespace,
        uid,
        labels: set.metadata.labels.as_ref(),
        annotations: set.metadata.annotations.as_ref(),
        parameters: &set.spec.parameters,
        suffix,
    }
}
