//! Kinds of commands that are described by their own definitions.

use std::sync::Arc;

use catena_api::keys;
use command_binder::{definition::describe, kind::CommandKind};
use k8s_openapi::{
    api::core::v1::ObjectReference,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, Client, discovery::ApiResource};
use operator_watch::{Cache, ObjectId, Row, TrimmedObject, Watch, Watches};

/// All definitions are one group.
const GROUP: &str = "all";

/// A definition with the label of commands.
pub struct Discovered {
    name: Box<str>,
    uid: Box<str>,
    /// The kind, or the reason why the definition does not describe one.
    pub kind: Result<Arc<CommandKind>, String>,
}

impl Discovered {
    fn of(definition: &TrimmedObject) -> Self {
        let ObjectId { name, uid, .. } = ObjectId::of(definition);
        Self { name: name.into(), uid: uid.into(), kind: describe(definition).map(Arc::new) }
    }

    /// The definition and the mistake in it, if there is one.
    fn malformed(&self) -> Option<(ObjectReference, String)> {
        let problem = self.kind.as_ref().err()?.clone();
        let ApiResource { api_version, kind, .. } = ApiResource::erase::<CustomResourceDefinition>(&());
        let definition = ObjectReference {
            api_version: Some(api_version),
            kind: Some(kind),
            name: Some(self.name.to_string()),
            uid: Some(self.uid.to_string()),
            ..ObjectReference::default()
        };
        Some((definition, problem))
    }
}

impl Row for Discovered {
    fn id(&self) -> ObjectId<'_> {
        ObjectId { namespace: "", name: &self.name, uid: &self.uid }
    }

    fn index_key(&self) -> Option<&str> {
        Some(GROUP)
    }
}

/// The definitions that describe kinds of commands.
pub struct Definitions(Arc<Cache<Discovered>>);

impl Definitions {
    /// Follows them, and calls `changed` at each change.
    pub fn follow(client: Client, watches: &Watches, changed: impl Fn() + Send + Sync + 'static) -> Self {
        let resource = ApiResource::erase::<CustomResourceDefinition>(&());
        let watch = Watch::<TrimmedObject>::new(
            Api::all_with(client, &resource),
            "CustomResourceDefinition with the label catena.dev/command",
        )
        .labelled(&format!("{}=true", keys::COMMAND_KIND));
        Self(watches.cache(watch, |definition| Discovered::of(&definition), move |_| changed()))
    }

    /// The kinds that are described.
    pub fn kinds(&self) -> Vec<Arc<CommandKind>> {
        let mut kinds: Vec<_> =
            self.0.group("", GROUP).iter().filter_map(|found| found.kind.as_ref().ok().cloned()).collect();
        kinds.sort_by(|a, b| a.id.cmp(&b.id));
        kinds
    }

    /// The definitions that describe no kind, each with the mistake in it.
    pub fn malformed(&self) -> Vec<(ObjectReference, String)> {
        self.0.group("", GROUP).iter().filter_map(|found| found.malformed()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_definition_that_describes_no_kind_is_known_with_the_mistake_in_it() {
        let definition = json!({"metadata": {"name": "drains.ops.example", "uid": "u"}});
        let found = Discovered::of(&serde_json::from_value(definition).unwrap());
        let (definition, problem) = found.malformed().unwrap();
        let ObjectReference { api_version, kind, name, uid, .. } = definition;
        assert_eq!(
            [api_version, kind, name, uid].map(Option::unwrap),
            ["apiextensions.k8s.io/v1", "CustomResourceDefinition", "drains.ops.example", "u"]
        );
        assert!(problem.contains("the annotation catena.dev/binding is missing"), "{problem}");
    }
}
