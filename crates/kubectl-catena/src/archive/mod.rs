//! A backup of objects as a folder of files, and their restoration with owners of new uids.

mod collect;
mod commands;
mod create;
mod definitions;
mod folder;
mod index;
mod manifest;
mod order;
mod rebind;
mod restore;

pub use collect::{Saved, collect};
#[cfg(test)]
pub use restore::Note;
pub use restore::{Report, restore};
