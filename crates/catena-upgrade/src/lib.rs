//! The life of a definition: what a new version of it would do to the live objects, and the migration of stored objects.

mod absent;
mod check;
mod definition;
mod migrate;
mod objects;
mod scratch;
mod sources;
mod trial;

use self::{
    scratch::Scratch,
    trial::{Cause, Verdict},
};
pub use absent::{Absent, absent};
pub use check::{Checked, ObjectFields, Refused, check};
pub use definition::Definition;
pub use migrate::{Migrated, Migration, migrate};
pub use scratch::{Leftover, remove_leftovers, scratch_id};
pub use sources::definitions;
