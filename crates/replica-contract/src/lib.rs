//! A child as the replica contract shows it, for the controller of `BasicDeployments` and for tools that judge or restore what it
//! makes: the outputs of the child, and the name under which a revision of it is stored.

mod outputs;

use operator_templates::Digest;

pub use outputs::{Mapping, Outputs, Pause, Stalled};

/// The name of the revision that is stored for a rendering, by the name and the uid of its `BasicDeployment` and by its hash.
#[must_use]
pub fn revision_name(deployment: &str, uid: &str, hash: &str) -> String {
    format!("{deployment}-{}", Digest::short(&[uid, hash]))
}
