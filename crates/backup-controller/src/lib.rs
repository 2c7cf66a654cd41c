//! The rules by which a protected object is held until its backup is proven: pure, for the controller and for whoever
//! wants to know what it would do.

pub mod annotation;
pub mod backup;
pub mod decide;
pub mod entry;
pub mod error;
pub mod finalizer;
pub mod force_release;
pub mod manifest;
pub mod metadata;
pub mod observed;
pub mod settings;
pub mod status;

pub use settings::Settings;
