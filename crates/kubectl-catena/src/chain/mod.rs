//! The chain of an object: fetched, joined into a tree, and drawn.

mod dependents;
mod draw;
mod fetch;
mod health;
mod labelled_kinds;
mod pods;
mod tree;

use self::{
    dependents::{DependentList, Selector},
    labelled_kinds::LabelledKinds,
};
pub use draw::{Drawing, draw};
pub use fetch::{LostOwner, Scope, fetch, with_dependents};
pub use health::{Health, State, ended, replicas};
pub use labelled_kinds::{
    command_kinds, configured_commands, declared_commands, is_our_command, labelled_kinds,
};
pub use pods::{last_words, shortened};
pub use tree::{Finalizer, Node, grow};
