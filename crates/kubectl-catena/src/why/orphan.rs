//! A child without its parent.

use catena_api::keys;

use crate::chain::Node;

/// A child without its parent, which nothing keeps in line any more.
pub fn remark(node: &Node) -> Option<String> {
    let labels = node.object.metadata.labels.as_ref()?;
    let is_orphan = node.object.metadata.owner_references.iter().flatten().next().is_none();
    (labels.contains_key(keys::DEPLOYMENT_UID) && is_orphan && node.deleted.is_none())
        .then(|| "it was left behind by a BasicDeployment that was deleted without it, and nothing keeps it in line; one of its name, spec and template adopts it".to_owned())
}
