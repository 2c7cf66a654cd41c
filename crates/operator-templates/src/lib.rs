//! Templates and expressions, with limits on their cost, and YAML as kubectl reads it: for settings by which people say
//! what a controller creates and what it decides on. No client, and no runtime.
//!
//! ```
//! use operator_templates::Expression;
//! use serde_json::json;
//!
//! let is_ready = Expression::compile("ready", "object.status.ready == object.spec.replicas", &["object"])?;
//! let object = json!({"spec": {"replicas": 2}, "status": {"ready": 2}});
//! assert!(is_ready.bool(&[("object", &object)])?);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod digest;
mod expression;
mod field_path;
mod templates;
mod yaml;

pub use {
    digest::Digest,
    expression::{Expression, ExpressionError},
    templates::{ParameterSpec, Rendered, Subject, TemplateError, Templates},
    yaml::Yaml,
};
