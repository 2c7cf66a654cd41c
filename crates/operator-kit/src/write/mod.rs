//! Writes: each carries a uid, and the next decision waits until the caches show it.

mod located;
mod owner;
mod repeated_writes;
mod slow_start;
mod writer;

pub(crate) use writer::Gate;
pub use {
    located::located,
    owner::Ownership,
    slow_start::Batch,
    writer::{OnBehalf, Writer},
};
