//! The programs of a control plane, and their prerequisites.

pub mod addresses;
pub mod certificates;
pub mod components;
pub mod keeper;
pub mod readiness;
