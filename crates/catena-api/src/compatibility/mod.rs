//! The rules for a definition that replaces another one: what was stored and what was written under the old definition
//! stays valid and complete under the new one. Pure: definitions are JSON, and the findings say what breaks which rule.

mod definition;
mod finding;
mod path;
mod schema;
mod validation;
mod versions;

pub use definition::changes;
pub use finding::{Finding, Rule};
pub use versions::policy;

#[cfg(test)]
mod tests;
