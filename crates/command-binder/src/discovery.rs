//! Kinds of commands that their definitions describe themselves.

use std::sync::Arc;

use catena_api::keys;
use k8s_openapi::{
    api::core::v1::ObjectReference,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, Client, discovery::ApiResource};
use operator_kit::{Cache, Events, Row, TrimmedObject, Watch, Watches};
use serde::Deserialize;
use serde_json::Value;

use crate::kind::{BindingFile, CommandKind, KindFile};

/// All definitions are one group.
const GROUP: &str = "all";

/// A definition with the label of commands.
pub struct Discovered {
    uid: Box<str>,
    /// The kind, or why the definition does not describe one.
    pub kind: Result<Arc<CommandKind>, String>,
}

impl Row for Discovered {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn namespace(&self) -> &'static str {
        ""
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
        events: Events,
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
                let name = definition.metadata.name.clone();
                tracing::warn!(definition = name, "{problem}");
                let reference = ObjectReference {
                    api_version: Some(resource.api_version.clone()),
                    kind: Some(resource.kind.clone()),
                    uid: definition.metadata.uid.clone(),
                    name,
                    ..ObjectReference::default()
                };
                events.warn(&reference, "InvalidBinding", problem);
            }
            Discovered { uid: definition.metadata.uid.unwrap_or_default().into(), kind: kind.map(Arc::new) }
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Annotation {
    #[serde(flatten)]
    binding: BindingFile,
}

fn describe(definition: &TrimmedObject) -> Result<CommandKind, String> {
    let annotation = definition.metadata.annotations.as_ref().and_then(|all| all.get(keys::BINDING));
    let annotation = annotation.ok_or_else(|| {
        format!("the annotation {} is missing; it says how commands of this kind are bound", keys::BINDING)
    })?;
    let Annotation { binding } = serde_saphyr::from_str(annotation)
        .map_err(|error| format!("the annotation {} is not understood: {error}", keys::BINDING))?;
    let spec = &definition.data["spec"];
    let resource = served(spec).ok_or("the definition serves no version; serve one")?;
    CommandKind::compile(KindFile::discovered(resource, binding))
        .map_err(|problem| format!("the annotation {}: {problem}", keys::BINDING))
}

/// The kind in the version that is stored if it is served, else in the first that is.
fn served(spec: &Value) -> Option<ApiResource> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let versions = spec["versions"].as_array()?;
    let served = || versions.iter().filter(|version| version["served"] == true);
    let version = served().find(|version| version["storage"] == true).or_else(|| served().next())?;
    let (group, version) = (text(&spec["group"])?, text(&version["name"])?);
    let api_version = format!("{group}/{version}");
    let (kind, plural) = (text(&spec["names"]["kind"])?, text(&spec["names"]["plural"])?);
    Some(ApiResource { group, version, api_version, kind, plural })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(binding: &str) -> TrimmedObject {
        serde_json::from_value(json!({
            "metadata": {"name": "d", "uid": "u", "annotations": {keys::BINDING: binding}},
            "spec": {
                "group": "ops.example", "scope": "Namespaced",
                "names": {"plural": "drains", "kind": "Drain"},
                "versions": [
                    {"name": "v1", "served": false, "storage": true},
                    {"name": "v2", "served": true, "storage": false},
                ],
            },
        }))
        .unwrap()
    }

    #[test]
    fn a_definition_describes_its_commands_in_a_version_that_is_served() {
        let kind = describe(&definition(
            "{target: {name: object.spec.pod, kinds: [{version: v1, resource: pods, kind: Pod}]}}",
        ))
        .unwrap();
        assert_eq!((&*kind.id, &*kind.resource.api_version), ("drains.ops.example", "ops.example/v2"));
    }

    #[test]
    fn a_mistake_in_a_definition_is_named() {
        let cases = [
            ("{}", "target"),
            ("{tarjet: {}}", "tarjet"),
            ("{target: {name: objct.x, kinds: [{version: v1, resource: p, kind: P}]}}", "no variable objct"),
            ("{target: {name: object.x, kinds: []}}", "target.kinds: is empty"),
        ];
        for (binding, expected) in cases {
            let problem = describe(&definition(binding)).unwrap_err();
            assert!(problem.contains(expected) && problem.contains(keys::BINDING), "{binding}: {problem}");
        }
    }
}
