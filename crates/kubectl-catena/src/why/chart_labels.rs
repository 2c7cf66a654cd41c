//! The labels of the charts, by which the controllers of an installation are found.

/// The label of everything that the charts install.
pub const OURS: &str = "app.kubernetes.io/part-of=catena";
/// The label that names the controller, whatever its objects are called. A Lease, which no upgrade may touch, has only
/// the name.
pub const COMPONENT: &str = "app.kubernetes.io/component";
