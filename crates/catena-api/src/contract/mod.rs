//! Contracts between controllers: the fields that one controller may rely on in the kind of another.

mod field_path;
mod output;
mod pods;
mod replicas;

pub use field_path::FieldPath;
pub use output::{Computed, Output};
pub use pods::{PodController, Pods};
pub use replicas::{REPLICAS_LABEL, REPLICAS_VERSION, ReplicaContract};
