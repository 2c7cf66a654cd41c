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
mod report;
mod restore;

pub use collect::{Saved, collect};
#[cfg(test)]
pub use report::Note;
pub use report::Report;
pub use restore::restore;
