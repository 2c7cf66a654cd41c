use thiserror::Error;

use crate::report::{Category, Reported};

/// A template that did not render an object. The name of the template comes first.
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
    /// The template cannot be compiled: the problem and its place.
    #[error("the template {0:?} is broken: {1}; fix it in the controller's templates")]
    Broken(String, String),
    /// The template uses this parameter, which is not set.
    #[error("spec.parameters.{1} is missing: the template {0:?} requires it; set it")]
    MissingParameter(String, String),
    /// A parameter is set that the template does not declare: its name, and the name that was probably meant, or all names.
    #[error("spec.parameters.{1} is not a parameter of the template {0:?}: {2}")]
    UnknownParameter(String, String, String),
    /// A parameter has a value that its declaration does not allow: its name, and the problem and the remedy.
    #[error("spec.parameters.{1} is not valid for the template {0:?}: {2}")]
    InvalidParameter(String, String, String),
    /// The template failed with the values at hand: the problem and its place.
    #[error(
        "the template {0:?} cannot be rendered: {1}; correct its input, such as spec.parameters, or the template"
    )]
    Failed(String, String),
    /// It renders to something other than YAML: the problem and its place.
    #[error(
        "the template {0:?} does not render to YAML: {1}; the engine quotes values, so write {{{{ value }}}} without quotes around it, and a longer text inside the braces, such as {{{{ \"team-\" ~ value }}}}"
    )]
    NotYaml(String, String),
    /// A value becomes structure: the parameter that could be structure, as a part of the message; empty unless there is
    /// one only.
    #[error(
        "the template {0:?} has a value in the middle of a text, where it changes the structure of the object{1}; use another value, or let the template have the whole text inside the braces, for example {{{{ \"team-\" ~ value }}}}"
    )]
    Structure(String, String),
    /// It renders something other than one object, which this describes.
    #[error(
        "the template {0:?} renders {1}, but must render one object with apiVersion, kind and metadata.name; correct the template, or the parameter on which that depends"
    )]
    NotAnObject(String, String),
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
    #[error("the template {0:?} renders no metadata.name; add one, for example {{{{ name }}}}")]
    NoName(String),
    /// It renders an invalid name or namespace: the field and its value.
    #[error(
        "the template {0:?} renders the {1} {2:?}, which is not valid; correct spec.parameters, or the template"
    )]
    NotAName(String, &'static str, String),
    /// It renders this name for all objects of one subject.
    #[error(
        "the template {0:?} renders the name {1:?}, which does not contain suffix: many objects are created from the template, and only suffix keeps their names apart; write, for example, {{{{ name ~ \"-\" ~ suffix }}}}"
    )]
    NotUnique(String, String),
    /// It renders labels or annotations, in this field, that are not a map.
    #[error(
        "the template {0:?} renders {1} that is not a map of strings; write one entry per line, or {{{{ labels }}}}"
    )]
    NotAMap(String, &'static str),
    /// It renders an object for this other namespace.
    #[error(
        "the template {0:?} sets metadata.namespace to {1:?}; remove it, because the object is created in the namespace of its owner"
    )]
    OtherNamespace(String, String),
    /// It renders too much text.
    #[error("the template {0:?} renders more than 3 MiB, which no API server accepts; make it smaller")]
    TooLong(String),
}

impl Reported for TemplateError {
    fn category(&self) -> Category {
        Category::WaitsForChange
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "TemplateNotFound",
            Self::MissingParameter(..) => "ParameterMissing",
            Self::UnknownParameter(..) => "ParameterUnknown",
            Self::InvalidParameter(..) => "ParameterInvalid",
            Self::NotUnique(..) => "NotUnique",
            _ => "TemplateFailed",
        }
    }
}
