//! What one rendering is given.

use std::sync::Arc;

use minijinja::{Value as TemplateValue, context};

use super::{More, Parameters, Subject};

/// A template, and the values that it can use.
#[derive(Clone, Copy)]
pub(super) struct Input<'i> {
    /// The name of the template.
    pub template: &'i str,
    pub subject: &'i Subject<'i>,
    pub parameters: &'i Arc<Parameters>,
    pub more: &'i More<'i>,
}

impl Input<'_> {
    /// All values by their names.
    pub fn values(self) -> TemplateValue {
        let Self { subject, parameters, more, .. } = self;
        context! {
            name => subject.name,
            namespace => subject.namespace,
            uid => subject.uid,
            labels => subject.labels.cloned().unwrap_or_default(),
            annotations => subject.annotations.cloned().unwrap_or_default(),
            parameters => TemplateValue::from_dyn_object(parameters.clone()),
            suffix => subject.suffix,
            ..TemplateValue::from_iter(more.clone())
        }
    }
}
