//! The installation under test.

/// The namespace that `cargo xtask test` installs the charts in.
pub(crate) const NAMESPACE: &str = "catena-system";
