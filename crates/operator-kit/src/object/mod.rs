//! The identity of an object, for writes and for messages.

mod id;
mod named;

pub use {id::ObjectId, named::Named};
