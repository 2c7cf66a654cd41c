//! Writes: each carries a uid, and the next decision waits until the caches show it.

pub mod owner;
mod repeated_writes;
mod slow_start;
mod write_error;
mod writer;

pub(crate) use writer::Gate;
pub use {
    slow_start::{Batch, Failed, slow_start},
    write_error::{WriteCause, WriteError},
    writer::{OnBehalf, Writer, Written},
};
