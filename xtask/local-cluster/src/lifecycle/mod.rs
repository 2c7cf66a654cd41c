//! The life of a local cluster: brought up, supervised, taken down.

pub mod bring_up;
pub mod supervision;
pub mod supervisor;
