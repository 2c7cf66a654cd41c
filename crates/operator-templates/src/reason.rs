//! The reasons why a template rendered no object, each one `PascalCase` word.

/// A template renders the same name for all objects of one subject.
pub const NOT_UNIQUE: &str = "NotUnique";
/// A parameter has a value that its declaration does not allow.
pub const PARAMETER_INVALID: &str = "ParameterInvalid";
/// A required parameter is not set.
pub const PARAMETER_MISSING: &str = "ParameterMissing";
/// A parameter is set that the template does not declare.
pub const PARAMETER_UNKNOWN: &str = "ParameterUnknown";
/// A template is broken, or renders something else than it must.
pub const TEMPLATE_FAILED: &str = "TemplateFailed";
/// There is no template of the name.
pub const TEMPLATE_NOT_FOUND: &str = "TemplateNotFound";

/// All of them.
pub const ALL: &[&str] = &[
    NOT_UNIQUE,
    PARAMETER_INVALID,
    PARAMETER_MISSING,
    PARAMETER_UNKNOWN,
    TEMPLATE_FAILED,
    TEMPLATE_NOT_FOUND,
];
