//! The rules by which a protected object is held until its backup is proven. They are pure, so that the controller,
//! models and other tools can call them.

pub mod annotation;
pub mod backup;
pub mod decide;
pub mod finalizer;
pub mod force_release;
pub mod manifest;
pub mod metadata;
pub mod observed;
pub mod refusal;
pub mod settings;
pub mod status;

pub use settings::Settings;

// The fixtures name this crate as the tests of the program do.
#[cfg(test)]
extern crate self as backup_controller;
#[cfg(test)]
mod fixtures;
