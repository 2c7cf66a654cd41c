//! Where the target of a command lives.

use kube::api::ObjectMeta;
use operator_kit::watch::ServedKind;

use crate::{command::Reference, kind::Scope, verdict::Verdict};

/// Where the target lives, if it can own a command with this metadata: a dependent whose owner is elsewhere is deleted by
/// garbage collection.
pub fn place<'c>(
    metadata: &'c ObjectMeta,
    to: &Reference,
    kind: &ServedKind,
) -> Result<Option<&'c str>, Verdict> {
    if to.kind.scope.is_some_and(|said| (said == Scope::Namespaced) != kind.is_namespaced) {
        let (lives, said) = if kind.is_namespaced { ("in", "outside of") } else { ("outside of", "in") };
        return Err(Verdict::refused(
            "ScopeMismatch",
            format!(
                "the {to} lives {lives} namespaces, and the settings say {said} them, as which an admission policy asks for rights on it; correct scope in target.kinds"
            ),
        ));
    }
    if !kind.is_namespaced {
        return Ok(None);
    }
    match (metadata.namespace.as_deref(), to.namespace.as_deref()) {
        (None, _) => Err(Verdict::refused(
            "CrossNamespace",
            format!("it lives outside of namespaces, and the {to} in one: such a target cannot own it"),
        )),
        (Some(own), Some(other)) if own != other => Err(Verdict::refused(
            "CrossNamespace",
            format!(
                "the {to} is in the namespace {other}, and only a target in its own namespace {own} can own it; create the command there"
            ),
        )),
        (own, _) => Ok(own),
    }
}
