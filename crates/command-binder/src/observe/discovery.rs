//! Kinds of commands that are described by their own definitions.

use std::sync::Arc;

use catena_api::keys;
use command_binder::{definition::describe, kind::CommandKind};
use k8s_openapi::{
    api::core::v1::ObjectReference,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, Client, discovery::ApiResource};
use operator_kit::{
    object::ObjectId,
    watch::{Cache, Row, TrimmedObject, Watch, Watches},
};

/// All definitions are one group.
const GROUP: &str = "all";

/// Called for each definition that describes no kind of commands, with the reason.
pub type OnMalformed = Arc<dyn Fn(&ObjectReference, &str) + Send + Sync>;

/// A definition with the label of commands.
pub struct Discovered {
    name: Box<str>,
    uid: Box<str>,
    /// The kind, or the reason why the definition does not describe one.
    pub kind: Result<Arc<CommandKind>, String>,
}

impl Row for Discovered {
    fn id(&self) -> ObjectId<'_> {
        ObjectId { namespace: "", name: &self.name, uid: &self.uid }
    }

    fn group(&self) -> Option<&str> {
        Some(GROUP)
    }
}

/// The definitions that describe kinds of commands.
pub struct Definitions(Arc<Cache<Discovered>>);

impl Definitions {
    /// Follows them, and calls `changed` at each change.
    pub fn follow(
        client: Client,
        watches: &Watches,
        on_malformed: OnMalformed,
        changed: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let resource = ApiResource::erase::<CustomResourceDefinition>(&());
        let watch = Watch::<TrimmedObject>::new(
            Api::all_with(client, &resource),
            "CustomResourceDefinition with the label catena.dev/command",
        )
        .labelled(&format!("{}=true", keys::COMMAND_KIND));
        let trim = move |definition: TrimmedObject| {
            let kind = describe(&definition);
            if let Err(problem) = &kind {
                let reference = ObjectReference {
                    api_version: Some(resource.api_version.clone()),
                    kind: Some(resource.kind.clone()),
                    uid: definition.metadata.uid.clone(),
                    name: definition.metadata.name.clone(),
                    ..ObjectReference::default()
                };
                on_malformed(&reference, problem);
            }
            let ObjectId { name, uid, .. } = ObjectId::of(&definition);
            Discovered { name: name.into(), uid: uid.into(), kind: kind.map(Arc::new) }
        };
        Self(watches.cache(watch, trim, move |_| changed()))
    }

    /// The kinds that are described.
    pub fn kinds(&self) -> Vec<Arc<CommandKind>> {
        let mut kinds: Vec<_> =
            self.0.group("", GROUP).iter().filter_map(|found| found.kind.as_ref().ok().cloned()).collect();
        kinds.sort_by(|a, b| a.id.cmp(&b.id));
        kinds
    }
}
