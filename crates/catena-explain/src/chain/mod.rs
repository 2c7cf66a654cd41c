//! The chain of an object: fetched, joined into a tree, and drawn.

mod dependents;
mod draw;
mod fetch;
mod tree;

use self::dependents::{DependentList, Selector};
pub use draw::{Drawing, draw};
pub use fetch::{LostOwner, Scope, fetch, with_dependents};
pub use tree::{Finalizer, Node, grow};
