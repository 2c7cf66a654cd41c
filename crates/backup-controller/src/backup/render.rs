//! The content of a backup.

use std::collections::BTreeMap;

use catena_api::{
    backup::{ATTEMPT, MANIFEST, OBJECT, RESTORABLE},
    keys::{BACKUP_OF, BACKUP_TARGET},
    reason,
};
use operator_templates::{Subject, Templates};
use operator_watch::Failure;
use serde_json::{Value, json};

use super::{Target, target::suffix};
use crate::{
    manifest::restorable,
    metadata,
    settings::{Backup, ProtectedKind},
};

/// A backup of an object.
pub fn render(
    templates: &Templates,
    kind: &ProtectedKind,
    target: &Value,
    attempt: u32,
) -> Result<Value, Failure> {
    let suffix = &suffix(kind, target, attempt);
    let Backup { name: template, resource, .. } = &*kind.backup;
    let texts = |map: &str| -> BTreeMap<String, String> {
        let map = target.get("metadata").and_then(|metadata| metadata.get(map));
        map.and_then(|map| serde_json::from_value(map.clone()).ok()).unwrap_or_default()
    };
    let uid = metadata::text(target, "uid");
    let (labels, annotations) = (texts("labels"), texts("annotations"));
    let subject = Subject {
        name: metadata::text(target, "name"),
        namespace: metadata::text(target, "namespace"),
        uid,
        labels: Some(&labels),
        annotations: Some(&annotations),
        parameters: &BTreeMap::new(),
        suffix,
    };
    let restorable = &restorable(target);
    let manifest = &json!(serde_json::to_string_pretty(restorable).unwrap_or_default());
    let more = [(OBJECT, target), (MANIFEST, manifest), (RESTORABLE, restorable), (ATTEMPT, &json!(attempt))];
    let of_kind = (&*resource.api_version, &*resource.kind);
    let mut backup = templates
        .render_with(template, &subject, &more, &[of_kind])
        .map_err(|error| Failure::stalled(error.reason, error.message))?;
    let name = metadata::text(&backup, "name");
    if !name.contains(suffix) {
        let message = format!(
            "the template {template:?} renders the name {name:?}, which does not contain the suffix, so that two backups would have the same name; write, for example, {{{{ name ~ \"-\" ~ suffix }}}}"
        );
        return Err(Failure::stalled(reason::BACKUP_NAME_NOT_UNIQUE, message));
    }
    if metadata::list(&backup, "ownerReferences").next().is_some() {
        let message = format!(
            "the template {template:?} sets metadata.ownerReferences, so that the backup would be deleted with its owner; remove that field"
        );
        return Err(Failure::stalled(reason::BACKUP_HAS_OWNER, message));
    }
    settle_namespace(&kind.backup, subject.namespace, &mut backup)?;
    let about = Target::of(kind, target, attempt);
    let metadata = &mut backup["metadata"];
    metadata["labels"][BACKUP_OF] = uid.into();
    metadata["annotations"][BACKUP_TARGET] = serde_json::to_string(&about).unwrap_or_default().into();
    Ok(backup)
}

fn settle_namespace(backup: &Backup, of_target: &str, object: &mut Value) -> Result<(), Failure> {
    let name = &backup.name;
    let wanted = match &backup.namespace {
        _ if backup.is_cluster_scoped => "",
        Some(namespace) => namespace,
        None if of_target.is_empty() => {
            let message = format!(
                "backups.{name}.namespace is not set, and the object is cluster-scoped, so that its backup has no namespace; set it"
            );
            return Err(Failure::stalled(reason::BACKUP_WITHOUT_NAMESPACE, message));
        }
        None => of_target,
    };
    let found = metadata::text(object, "namespace");
    if !found.is_empty() && found != wanted {
        let message = format!(
            "the template {name:?} sets metadata.namespace to {found:?}; remove it, and set backups.{name}.namespace instead"
        );
        return Err(Failure::stalled(reason::BACKUP_IN_OTHER_NAMESPACE, message));
    }
    if !wanted.is_empty() {
        object["metadata"]["namespace"] = wanted.into();
    }
    Ok(())
}
