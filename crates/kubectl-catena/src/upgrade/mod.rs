//! The life of a definition: what a new version of it would do to the live objects, and the migration of stored objects.

mod check;
mod compare;
mod definition;
mod migrate;
mod path;
mod scratch;
mod sources;
mod trial;

#[cfg(test)]
pub use check::ObjectFields;
pub use check::{Checked, check};
pub use definition::Definition;
pub use migrate::{Migrated, Migration, migrate};
#[cfg(test)]
pub use path::LostField;
pub use scratch::{Leftover, ScratchId, remove_leftovers};
pub use sources::definitions;
