//! The rules by which finished commands are deleted: pure, for the controller and for models of it.

pub mod command;
pub mod decide;
pub mod observed;

pub use command_kinds::Kinds as Settings;
