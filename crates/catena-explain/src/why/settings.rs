//! Settings of our controllers that are not in force, from their `ConfigMaps` and Events, and the objects that wait for them.

use std::collections::BTreeSet;

use catena_api::keys::{self, SETTINGS_VERSION};
use catena_cluster::{
    Cluster, Identity,
    protection::{BACKUP_CONTROLLER, COMPONENT},
    text,
};
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::{ResourceExt, api::ListParams};
use operator_templates::Digest;

use super::{BINDER, Cause, Facts, RefusedSettings, command, controllers, objects, unreported};
use crate::Node;

/// The Event about settings that are in force; those about others have the same action.
const TAKEN: &str = "SettingsTaken";
/// Longer notes of Events are cut, so that they cannot be compared.
const MAX_NOTE: usize = 1000;

/// Those of these settings that are not in force, as far as Events about them may be read.
pub async fn refused_settings(cluster: &Cluster, maps: &[ConfigMap]) -> Vec<RefusedSettings> {
    let versioned = maps.iter().filter(|map| map.annotations().contains_key(SETTINGS_VERSION));
    let namespaces: BTreeSet<_> = versioned.filter_map(|map| map.metadata.namespace.as_deref()).collect();
    let events = namespaces.into_iter().map(async |namespace| {
        let about = ListParams::default().fields("involvedObject.kind=ConfigMap");
        cluster.all(Some(namespace), about).await.unwrap_or_default()
    });
    let events = futures::future::join_all(events).await.concat();
    maps.iter().filter_map(|map| refusal(map, &events)).collect()
}

/// The newest Event about the present settings, unless they were taken since: others may be about settings that were corrected
/// meanwhile.
fn refusal(map: &ConfigMap, events: &[Event]) -> Option<RefusedSettings> {
    let version = map.annotations().get(SETTINGS_VERSION)?;
    let is_about = |event: &&Event| {
        let (action, note) = (event.action.as_deref().unwrap_or_default(), words(event).1);
        let is_of = |state: &[&str]| action == format!("Take{}", Digest::short(state));
        let is_cut = note.len() >= MAX_NOTE && action.starts_with("Take");
        // The controller knows its ConfigMap only by name.
        let (namespace, name) = (&event.metadata.namespace, &event.involved_object.name);
        (is_of(&[version]) || is_of(&[version, note]) || is_cut)
            && (namespace, name) == (&map.metadata.namespace, &map.metadata.name)
    };
    let newest = events.iter().filter(is_about).max_by_key(|event| event.creation_timestamp());
    let event = newest.filter(|event| words(event).0 != TAKEN)?;
    let (reason, message) = words(event);
    let cause = Cause::with(&Identity::in_metadata("v1", "ConfigMap", &map.metadata), reason);
    Some(RefusedSettings {
        controller: map.labels().get(COMPONENT).cloned().unwrap_or_default(),
        cause: cause.message(message).since(event.creation_timestamp().map(|time| time.0)),
        text: map.data.as_ref().and_then(|data| data.get("settings.yaml")).cloned().unwrap_or_default(),
    })
}

/// The reason and the note of an Event.
fn words(event: &Event) -> (&str, &str) {
    (event.reason.as_deref().unwrap_or_default(), event.message.as_deref().unwrap_or_default())
}

/// The refused settings that alone have the template that an object names.
pub fn cause(node: &Node, facts: &Facts) -> Option<Cause> {
    let is_missing = node.health.reason == "TemplateNotFound";
    let controller = controllers::controller_of(&node.identity).filter(|_| is_missing)?;
    let template = text(&node.object, "/spec/template").unwrap_or("default");
    let mut refused = facts.surroundings.refused_settings.iter();
    let refused = refused.find(|refused| refused.controller == controller && refused.brings(template))?;
    let meaning = format!("brings its template {template:?}, but {controller} {}", refused.cause.meaning);
    Some(refused.cause.clone().meaning(meaning))
}

/// The settings of the controllers of the chain that are not in force.
pub fn remarks(facts: &Facts, cause: Option<&Cause>) -> impl Iterator<Item = String> {
    let all = || facts.asked.all();
    let mut concerned = unreported::controllers(facts);
    if all().any(objects::is_command) || facts.surroundings.is_declared_command {
        concerned.extend([BINDER, command::RUNNER]);
    }
    if all().flat_map(|node| &node.finalizers).any(|held| held.name == keys::BACKUP_FINALIZER) {
        concerned.insert(BACKUP_CONTROLLER);
    }
    let is_told =
        move |refused: &RefusedSettings| cause.is_some_and(|cause| cause.object == refused.cause.object);
    let refused = facts.surroundings.refused_settings.iter();
    let open = refused.filter(move |refused| concerned.contains(&*refused.controller) && !is_told(refused));
    open.map(|RefusedSettings { controller, cause, .. }| {
        let namespace = cause.object.namespace.as_deref().unwrap_or_default();
        let message = cause.message.trim_end_matches('.');
        format!("{controller} {}, those of {} in {namespace}: {message}", cause.meaning, cause.object)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(version: &str) -> Event {
        let note =
            "templates.web: unexpected end; this process keeps the previous settings until that is fixed";
        serde_json::from_value(json!({
            "metadata": {"name": "e", "namespace": "catena-system", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "involvedObject": {"kind": "ConfigMap", "name": "d"}, "reason": "SettingsRefused", "message": note,
            "action": format!("Take{}", Digest::short(&[version, note])),
        }))
        .unwrap()
    }

    #[test]
    fn only_a_refusal_of_the_present_settings_counts() {
        let map: ConfigMap = serde_json::from_value(json!({
            "metadata": {
                "name": "d", "namespace": "catena-system", "uid": "u", "annotations": {SETTINGS_VERSION: "v2"},
                "labels": {COMPONENT: "basic-deployment-controller"},
            },
            "data": {"settings.yaml": "templates: {web: x}"},
        }))
        .unwrap();
        assert!(refusal(&map, &[event("v1")]).is_none(), "they were corrected");
        let refused = refusal(&map, &[event("v1"), event("v2")]).unwrap();
        assert!(refused.brings("web") && !refused.brings("default"));
        assert!(refused.cause.message.starts_with("templates.web"), "{}", refused.cause.message);
        let taken = |version: &str, time: &str| {
            let mut taken = event(version);
            taken.reason = Some("SettingsTaken".into());
            taken.action = Some(format!("Take{}", Digest::short(&[version])));
            taken.metadata.creation_timestamp = Some(serde_json::from_value(json!(time)).unwrap());
            taken
        };
        let (before, since) = ("2025-12-31T23:59:59Z", "2026-01-01T00:00:01Z");
        assert!(refusal(&map, &[taken("v2", since), event("v2")]).is_none(), "they are in force");
        for other in [taken("v1", since), taken("v2", before)] {
            assert!(refusal(&map, &[other, event("v2")]).is_some());
        }
    }
}
