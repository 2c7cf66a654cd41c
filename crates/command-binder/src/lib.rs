//! The rules by which commands of any kind are bound to their targets: pure, for the controller and for whoever wants to
//! know what it would do.

pub mod command;
pub mod decide;
pub mod definition;
pub mod error;
pub mod kind;
pub mod observed;
pub mod place;
pub mod settings;
pub mod status;
pub mod verdict;

pub use settings::Settings;
