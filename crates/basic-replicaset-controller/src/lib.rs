//! The decisions and reports about a `BasicReplicaSet`: pure, for the controller and for models of it.

pub mod adoption;
pub mod decide;
pub mod interner;
pub mod observed;
pub mod pod;
pub mod revision;
pub mod settings;
pub mod status;
pub mod step;

pub use settings::Settings;
