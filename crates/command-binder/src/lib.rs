//! The rules by which commands of any kind are bound to their targets. They are pure, so that the controller, models
//! and other tools can call them.

pub mod command;
pub mod decide;
pub mod observed;
pub mod place;
pub mod status;
pub mod verdict;

pub use command_kinds::Kinds as Settings;

// The fixtures name this crate as the tests of the program do.
#[cfg(test)]
extern crate self as command_binder;
#[cfg(test)]
mod fixtures;
