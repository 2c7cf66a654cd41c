//! The rules by which commands are carried out. They are pure, so that the controller, models and other tools can call them.

pub mod command;
pub mod decide;
pub mod line;
pub mod observed;
pub mod status;

pub use command_kinds::Kinds as Settings;

// The fixtures name this crate as the tests of the program do.
#[cfg(test)]
extern crate self as command_runner;
#[cfg(test)]
mod fixtures;
