//! What a kind of commands is: its objects, their targets, how they run, and when they expire. command-binder, command-runner and
//! command-reaper read one description, from their settings or from the annotation of a definition.

pub mod definition;
pub mod discovery;
pub mod expiry;
mod fields;
pub mod kind;
pub mod reference;
pub mod registry;
pub mod run;
pub mod schemas;
pub mod settings;
pub mod targets;

pub use kind::{CommandKind, KindFile, Mode, Scope, TargetKind, TargetReference};
pub use reference::{Object, Reference};
pub use registry::Registry;
pub use settings::Kinds;
pub use targets::Targets;
