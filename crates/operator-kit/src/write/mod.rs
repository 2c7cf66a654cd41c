//! Writes: each carries a uid, and the next decision waits until the caches show it.

mod located;
pub mod owner;
mod repeated_writes;
mod slow_start;
mod writer;

pub(crate) use writer::Gate;
pub use {
    located::located,
    slow_start::{Batch, slow_start},
    writer::{OnBehalf, Writer, Written, try_create},
};
