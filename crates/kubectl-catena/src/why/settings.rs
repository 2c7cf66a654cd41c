//! An object whose template, or whose controller, waits for settings that are not in force.

use super::{
    advice::describe,
    answer::{Cause, Finding},
    command_kind::{BINDER, is_command},
    facts::Facts,
    refused_settings::RefusedSettings,
    responsible::controller_of,
};
use crate::{chain::Node, object::text};

/// An object that names a template that only the refused settings have.
pub fn check<'n>(node: &'n Node, facts: &Facts<'n>) -> Option<Finding<'n>> {
    if node.health.reason != "TemplateNotFound" {
        return None;
    }
    let controller = controller_of(&node.identity)?;
    let template = text(&node.object, "/spec/template").unwrap_or("default");
    let mut refused = facts.surroundings.refused_settings.iter();
    let refused = refused.find(|refused| refused.controller == controller && refused.brings(template))?;
    let cause = Cause::with(&refused.config_map, &refused.reason);
    let meaning = format!("brings its template {template:?}, but {controller} {}", cause.meaning);
    Some(Finding::at(node, cause.meaning(meaning).message(&refused.message).since(refused.since)))
}

/// The settings of the controllers of the chain that are not in force.
pub fn remarks(facts: &Facts, cause: Option<&Cause>) -> Vec<String> {
    let all = &facts.surroundings.refused_settings;
    let is_told = |refused: &RefusedSettings| cause.is_some_and(|cause| cause.object == refused.config_map);
    let concerned: Vec<&str> = concerned(facts);
    let open = all.iter().filter(|refused| concerned.contains(&&*refused.controller) && !is_told(refused));
    let told = open.map(|refused| {
        let RefusedSettings { controller, config_map, message, reason, .. } = refused;
        let namespace = config_map.namespace.as_deref().unwrap_or_default();
        let (meaning, _) = describe(reason);
        format!(
            "{controller} {meaning}, those of ConfigMap/{} in {namespace}: {}",
            config_map.name,
            message.trim_end_matches('.')
        )
    });
    told.collect()
}

/// The controllers that have to do with the asked object.
fn concerned<'n>(facts: &Facts<'n>) -> Vec<&'n str> {
    let mut names: Vec<&str> = facts.asked.all().filter_map(|node| controller_of(&node.identity)).collect();
    if facts.asked.all().any(is_command) || facts.surroundings.is_declared_command {
        names.push(BINDER);
    }
    if facts
        .asked
        .all()
        .any(|node| node.finalizers.iter().any(|held| held.name == catena_api::keys::BACKUP_FINALIZER))
    {
        names.push("backup-controller");
    }
    names
}
