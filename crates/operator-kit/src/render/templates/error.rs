use thiserror::Error;

use crate::report::Failure;

/// A template that did not render an object.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// There is no template with this name.
    #[error(
        "spec.template: there is no template {template:?}; use one of those configured ({known}) or have it added under `templates` in the values of the controller of this kind"
    )]
    Unknown {
        /// The requested name.
        template: String,
        /// The existing names.
        known: String,
    },
    /// The template cannot be compiled.
    #[error("the template {template:?} is broken: {problem}; fix it in the controller's templates")]
    Broken {
        /// The template.
        template: String,
        /// The problem and its place.
        problem: String,
    },
    /// The template uses a parameter that is not set.
    #[error("spec.parameters.{parameter} is missing: the template {template:?} requires it; set it")]
    MissingParameter {
        /// The template.
        template: String,
        /// The parameter.
        parameter: String,
    },
    /// A parameter is set that the template does not declare.
    #[error("spec.parameters.{parameter} is not a parameter of the template {template:?}: {advice}")]
    UnknownParameter {
        /// The template.
        template: String,
        /// The parameter.
        parameter: String,
        /// The name that was probably meant, or all names.
        advice: String,
    },
    /// A parameter has a value that its declaration does not allow.
    #[error("spec.parameters.{parameter} is not valid for the template {template:?}: {problem}")]
    InvalidParameter {
        /// The template.
        template: String,
        /// The parameter.
        parameter: String,
        /// The problem and the remedy.
        problem: String,
    },
    /// The template failed with the values at hand.
    #[error(
        "the template {template:?} cannot be rendered: {problem}; correct its input, such as spec.parameters, or the template"
    )]
    Failed {
        /// The template.
        template: String,
        /// The problem and its place.
        problem: String,
    },
    /// It renders to something other than YAML.
    #[error(
        "the template {template:?} does not render to YAML: {problem}; the engine quotes values, so write {{{{ value }}}} without quotes around it, and a longer text inside the braces, such as {{{{ \"team-\" ~ value }}}}"
    )]
    NotYaml {
        /// The template.
        template: String,
        /// The problem and its place.
        problem: String,
    },
    /// A value becomes structure.
    #[error(
        "the template {template:?} has a value in the middle of a text, where it changes the structure of the object{parameter}; use another value, or let the template have the whole text inside the braces, for example {{{{ \"team-\" ~ value }}}}"
    )]
    Structure {
        /// The template.
        template: String,
        /// The parameter that could be structure, as a part of the message; empty unless there is one only.
        parameter: String,
    },
    /// It renders something other than one object.
    #[error(
        "the template {template:?} renders {found}, but must render one object with apiVersion, kind and metadata.name; correct the template, or the parameter on which that depends"
    )]
    NotAnObject {
        /// The template.
        template: String,
        /// The description of the rendering.
        found: String,
    },
    /// It renders an object of another kind.
    #[error(
        "the template {template:?} renders {found:?}, but the controller is configured for {wanted:?}; change one of the two"
    )]
    WrongKind {
        /// The template.
        template: String,
        /// The rendered kind.
        found: String,
        /// The kind that is configured.
        wanted: String,
    },
    /// It renders an object without a name.
    #[error("the template {template:?} renders no metadata.name; add one, for example {{{{ name }}}}")]
    NoName {
        /// The template.
        template: String,
    },
    /// It renders an invalid name or namespace.
    #[error(
        "the template {template:?} renders the {field} {found:?}, which is not valid; correct spec.parameters, or the template"
    )]
    NotAName {
        /// The template.
        template: String,
        /// The field.
        field: &'static str,
        /// The value that it renders.
        found: String,
    },
    /// It renders the same name for all objects of one subject.
    #[error(
        "the template {template:?} renders the name {name:?}, which does not contain suffix: many objects are created from the template, and only suffix keeps their names apart; write, for example, {{{{ name ~ \"-\" ~ suffix }}}}"
    )]
    NotUnique {
        /// The template.
        template: String,
        /// The name.
        name: String,
    },
    /// It renders labels or annotations that are not a map.
    #[error(
        "the template {template:?} renders {field} that is not a map of strings; write one entry per line, or {{{{ labels }}}}"
    )]
    NotAMap {
        /// The template.
        template: String,
        /// The field.
        field: &'static str,
    },
    /// It renders an object for another namespace.
    #[error(
        "the template {template:?} sets metadata.namespace to {found:?}; remove it, because the object is created in the namespace of its owner"
    )]
    OtherNamespace {
        /// The template.
        template: String,
        /// The namespace that it sets.
        found: String,
    },
    /// It renders too much text.
    #[error(
        "the template {template:?} renders more than 3 MiB, which no API server accepts; make it smaller"
    )]
    TooLong {
        /// The template.
        template: String,
    },
}

impl TemplateError {
    pub(super) fn broken(template: &str, problem: &str) -> Self {
        Self::Broken { template: template.to_owned(), problem: problem.to_owned() }
    }

    /// One `PascalCase` word for a condition or an Event.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "TemplateNotFound",
            Self::MissingParameter { .. } => "ParameterMissing",
            Self::UnknownParameter { .. } => "ParameterUnknown",
            Self::InvalidParameter { .. } => "ParameterInvalid",
            Self::NotUnique { .. } => "NotUnique",
            _ => "TemplateFailed",
        }
    }
}

impl From<&TemplateError> for Failure {
    fn from(error: &TemplateError) -> Self {
        Self::stalled(error.reason(), error.to_string())
    }
}
