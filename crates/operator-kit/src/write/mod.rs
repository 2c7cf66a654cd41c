//! Writes: each carries a uid, and the next decision waits until the caches show it.

pub mod owner;
mod repeated_writes;
mod slow_start;
mod strict;
mod trial;
mod write_error;
mod writer;

pub(crate) use writer::Gate;
pub use {
    slow_start::{Batch, Failed, slow_start},
    trial::try_create,
    write_error::{WriteCause, WriteError, unknown_fields},
    writer::{OnBehalf, Writer, Written},
};
