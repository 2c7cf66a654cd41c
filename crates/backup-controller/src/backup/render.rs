//! The content of a backup.

use std::collections::BTreeMap;

use catena_api::{
    backup::{ATTEMPT, MANIFEST, OBJECT, RESTORABLE},
    keys::{BACKUP_OF, BACKUP_TARGET},
};
use operator_templates::{Subject, Templates};
use serde_json::{Value, json};

use super::{Target, target::suffix};
use crate::{
    error::Unusable,
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
) -> Result<Value, Unusable> {
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
    let mut backup = templates.render_with(template, &subject, &more, &[of_kind])?;
    let name = metadata::text(&backup, "name");
    if !name.contains(suffix) {
        return Err(Unusable::NotUnique { backup: template.clone(), name: name.to_owned() });
    }
    if metadata::list(&backup, "ownerReferences").next().is_some() {
        return Err(Unusable::HasOwner { backup: template.clone() });
    }
    settle_namespace(&kind.backup, subject.namespace, &mut backup)?;
    let about = Target::of(kind, target, attempt);
    let metadata = &mut backup["metadata"];
    metadata["labels"][BACKUP_OF] = uid.into();
    metadata["annotations"][BACKUP_TARGET] = serde_json::to_string(&about).unwrap_or_default().into();
    Ok(backup)
}

fn settle_namespace(backup: &Backup, of_target: &str, object: &mut Value) -> Result<(), Unusable> {
    let wanted = match &backup.namespace {
        _ if backup.is_cluster_scoped => "",
        Some(namespace) => namespace,
        None if of_target.is_empty() => return Err(Unusable::NoNamespace { backup: backup.name.clone() }),
        None => of_target,
    };
    let found = metadata::text(object, "namespace");
    if !found.is_empty() && found != wanted {
        return Err(Unusable::OtherNamespace { backup: backup.name.clone(), found: found.to_owned() });
    }
    if !wanted.is_empty() {
        object["metadata"]["namespace"] = wanted.into();
    }
    Ok(())
}
