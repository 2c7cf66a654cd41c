//! Which object is meant.

mod id;
mod named;

pub use {id::ObjectId, named::Named};
