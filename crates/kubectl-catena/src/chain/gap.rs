use serde::Serialize;

/// An unread part of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Gap {
    /// The part.
    pub what: String,
    /// The reason.
    pub why: String,
}
