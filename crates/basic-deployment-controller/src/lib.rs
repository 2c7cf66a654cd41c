//! The rules by which a `BasicDeployment` keeps its child. They are pure, so that the
//! controller, models and other tools can call them.

pub mod blocking_pod;
pub mod budget;
pub mod child;
pub mod child_kind;
pub mod decide;
pub mod desired;
pub mod drift;
pub mod events;
pub mod handed;
pub mod observed;
pub mod progress;
pub mod revision;
pub mod settings;
pub mod stall;
pub mod status;
pub mod step;
pub mod token;

pub use settings::Settings;

// The fixtures name this crate as the tests of the program do.
#[cfg(test)]
extern crate self as basic_deployment_controller;
#[cfg(test)]
mod examples_test;
#[cfg(test)]
mod fixtures;
