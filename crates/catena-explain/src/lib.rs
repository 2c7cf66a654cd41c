//! What an object consists of, and why it is not as it should be: its chain of owners and dependents, and the explanation of its
//! state.

mod chain;
mod why;

pub use chain::{Drawing, LostOwner, Node, Scope, draw, fetch, grow};
pub use why::{Answer, describe, explanation, explanation_aside, text};
