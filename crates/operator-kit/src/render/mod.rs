//! Templates and expressions, with limits on their cost.

mod digest;
mod expression;
mod field_path;
mod object_name;
mod templates;
pub(crate) mod yaml;

pub use {
    digest::{sha256, short_digest},
    expression::{Expression, ExpressionError},
    object_name::is_object_name,
    templates::{ApiKind, Declarations, Parameter, Rendered, Subject, TemplateError, Templates},
};
