//! Templates and expressions, with limits on their cost.

mod digest;
mod expression;
pub(crate) mod field_path;
mod object_name;
mod renderings;
mod templates;
pub(crate) mod yaml;

pub use {
    digest::{sha256, short_digest},
    expression::{Expression, ExpressionError, is_same_quantity},
    object_name::is_object_name,
    renderings::Renderings,
    templates::{ApiKind, Declarations, Parameter, Rendered, Subject, TemplateError, Templates},
    yaml::{YamlError, documents, from_yaml, to_yaml},
};
