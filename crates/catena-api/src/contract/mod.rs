//! What one controller may rely on in another's kind, by fields instead of by type.

mod field_path;
mod replicas;

pub use field_path::{FieldPath, InvalidFieldPath};
pub use replicas::{REPLICAS_LABEL, REPLICAS_VERSION, ReplicaContract};
