//! The namespace of a command's target.

use catena_api::reason;
use command_kinds::{Reference, Scope};
use kube::api::ObjectMeta;

use crate::verdict::Verdict;

/// The namespace of the target, if it can own a command with this metadata: garbage collection would delete a dependent
/// whose owner is elsewhere.
pub fn place<'c>(
    metadata: &'c ObjectMeta,
    to: &Reference,
    is_namespaced: bool,
) -> Result<Option<&'c str>, Verdict> {
    if to.kind.scope.is_some_and(|said| (said == Scope::Namespaced) != is_namespaced) {
        let (scope, said) = if is_namespaced { ("Namespaced", "Cluster") } else { ("Cluster", "Namespaced") };
        return Err(Verdict::refused(
            reason::SCOPE_MISMATCH,
            format!(
                "the scope of the {to} is {scope}, but the settings say {said}, and an admission policy checks rights on it accordingly; correct scope in target.kinds"
            ),
        ));
    }
    if !is_namespaced {
        return Ok(None);
    }
    match (metadata.namespace.as_deref(), to.namespace.as_deref()) {
        (None, _) => Err(Verdict::refused(
            reason::CROSS_NAMESPACE,
            format!("it is cluster-scoped, but the {to} is namespaced: such a target cannot own it"),
        )),
        (Some(own), Some(other)) if own != other => Err(Verdict::refused(
            reason::CROSS_NAMESPACE,
            format!(
                "the {to} is in the namespace {other}, but only a target in its own namespace {own} can own it; create the command in {other}"
            ),
        )),
        (own, _) => Ok(own),
    }
}
