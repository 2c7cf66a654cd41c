//! The rules by which a `JobReplicas` keeps its Jobs. They are pure: no client, no clock.

pub mod decide;
pub mod job;
pub mod kind;
pub mod observed;
pub mod settings;
pub mod status;

pub use settings::Settings;
