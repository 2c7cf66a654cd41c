//! The rules by which commands of any kind are bound to their targets: pure, for the controller and for whoever wants to
//! know what it would do.

pub mod command;
pub mod decide;
pub mod definition;
pub mod kind;
pub mod observed;
pub mod settings;
mod status;

pub use settings::Settings;
