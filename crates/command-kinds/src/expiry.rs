//! The end of commands, and the deletion that follows it.

use std::collections::BTreeMap;

use kube::api::ObjectMeta;
use operator_templates::Expression;
use serde::Deserialize;

use crate::fields::Fields;

/// When commands of a kind have ended, and when they are deleted after that.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expiry<E = Expression> {
    /// The time of its end; null before the end.
    pub finished_at: E,
    /// The seconds from its end to its deletion; null means forever.
    pub ttl_seconds: E,
    /// The marks of commands that something would create again.
    #[serde(default)]
    pub declared_by: Marks,
}

impl Expiry<String> {
    pub(crate) fn compile(self, fields: &Fields<'_>) -> Result<Expiry, String> {
        Ok(Expiry {
            finished_at: fields.compile("expire.finishedAt", &self.finished_at)?,
            ttl_seconds: fields.compile("expire.ttlSeconds", &self.ttl_seconds)?,
            declared_by: self.declared_by,
        })
    }
}

/// The annotations of objects that a tool creates anew with each sync or release.
const HOOKS: [&str; 2] = ["argocd.argoproj.io/hook", "helm.sh/hook"];

/// Labels and annotations of tools that keep a cluster in line with a declaration: Argo CD, Flux, Helm and others. They
/// re-create missing objects of their declaration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marks {
    #[serde(default)]
    labels: Vec<String>,
    #[serde(default)]
    annotations: Vec<String>,
}

impl Marks {
    /// The union of both.
    #[must_use]
    pub fn and(&self, more: &Self) -> Self {
        Self {
            labels: [&*self.labels, &more.labels].concat(),
            annotations: [&*self.annotations, &more.annotations].concat(),
        }
    }

    /// The first mark that an object carries. A hook, or an object with a generated name, is never created again because it
    /// is missing: its tool creates the next one whether it is there or not, so that nothing would be gained by keeping it.
    #[must_use]
    pub fn on(&self, metadata: &ObjectMeta) -> Option<Box<str>> {
        let is_hook = metadata.annotations.iter().flatten().any(|(key, _)| HOOKS.contains(&key.as_str()));
        if is_hook || metadata.generate_name.is_some() {
            return None;
        }
        let found = |keys: &[String], map: Option<&BTreeMap<String, String>>| {
            keys.iter()
                .find(|key| map.is_some_and(|map| map.contains_key(*key)))
                .map(|key| key.as_str().into())
        };
        found(&self.annotations, metadata.annotations.as_ref())
            .or_else(|| found(&self.labels, metadata.labels.as_ref()))
    }
}
