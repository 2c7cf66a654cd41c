//! What belongs to an object, and why it is not as it should be: the chain of its owners and dependents, fetched, joined into a
//! tree and drawn, and the explanation of its state.

mod dependents;
mod draw;
mod fetch;
mod tree;
mod why;

pub use draw::{Drawing, draw};
pub use fetch::{LostOwner, Scope, fetch};
pub use tree::Node;
pub use why::{Answer, describe, explanation, explanation_aside, text};

use self::{
    dependents::{DependentList, Selector},
    fetch::with_dependents,
    tree::{Finalizer, grow},
};
