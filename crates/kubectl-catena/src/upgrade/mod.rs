//! The life of a definition: what a new version of it would do to the live objects, and the migration of stored objects.

mod absent;
mod check;
mod definition;
mod migrate;
mod path;
mod scratch;
mod sources;
mod trial;

pub use absent::{Absent, absent};
#[cfg(test)]
pub use check::ObjectFields;
pub use check::{Checked, check};
pub use definition::Definition;
pub use migrate::{Migrated, Migration, migrate};
pub use path::lost;
#[cfg(test)]
pub use path::{LostField, Path};
pub use scratch::{Leftover, remove_leftovers, scratch_id};
pub use sources::definitions;
