//! The revision of pods.

use catena_api::BasicReplicaSet;
use operator_kit::{
    object::ObjectId,
    render::{Rendered, Subject, TemplateError, Templates, sha256},
};

/// The suffix for renderings that only compute the revision.
const NO_POD: &str = "bcdfghjk";

/// The revision of the pods of a set: a hash of the rendered text, and of the restart token if there is one.
///
/// # Errors
/// When the template renders no pod, or pods whose names do not differ.
pub fn revision(templates: &Templates, set: &BasicReplicaSet) -> Result<String, TemplateError> {
    let rendered = templates.render_one_of_many(&set.spec.template, &subject(set, NO_POD), "v1", "Pod")?;
    Ok(of(&rendered, set))
}

/// The parameters of a set that its template does not read.
#[must_use]
pub fn unread(templates: &Templates, set: &BasicReplicaSet) -> Vec<String> {
    templates.unread(&set.spec.template, &subject(set, NO_POD))
}

/// The revision of a set whose template renders to this.
#[must_use]
pub fn of(rendered: &Rendered, set: &BasicReplicaSet) -> String {
    let token = set.spec.restarted_at.as_deref();
    token.map_or_else(|| rendered.hash.clone(), |token| sha256(&format!("{}\n{token}", rendered.hash)))
}

/// The values that a template can use for a pod of a set.
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
