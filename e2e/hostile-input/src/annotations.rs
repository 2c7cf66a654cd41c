//! Annotations: the text of a controller may have been copied, edited or forged.

use backup_controller::{annotation::BackupStatus, force_release::ForceRelease, manifest::restorable};
use catena_api::keys;
use command_kinds::definition::describe;
use operator_watch::PrunedObject;
use serde_json::json;

use crate::parts;

const UID: &str = "5f1f5b3a-0f4e-4b1e-9d5c-3c1c3f7f8a90";

pub fn read(input: &[u8]) {
    let (status, rest) = parts::first_and_rest(input);
    let release = rest.first().cloned().unwrap_or_default();
    let object = |uid: &str, status: &str| {
        json!({"metadata": {
            "name": "web", "namespace": "shop", "uid": uid, "finalizers": [keys::BACKUP_FINALIZER],
            "annotations": {keys::BACKUP_STATUS: status, keys::FORCE_RELEASE: release},
        }})
    };
    let held = object(UID, &status);
    let said = BackupStatus::of(&held);
    assert_eq!(said.is_some(), said.as_ref().is_some_and(|said| said.uid == UID && said.attempt > 0));
    if let Some(said) = &said {
        assert_eq!(
            BackupStatus::of(&object(UID, &said.text())).as_ref(),
            Some(said),
            "it is read as it was written"
        );
        assert_eq!(BackupStatus::of(&object("copy", &status)), None, "a copy has said nothing");
    }
    let _ = ForceRelease::of(&held);
    assert_eq!(restorable(&held)["metadata"], json!({"name": "web", "namespace": "shop"}));
    describes(&status);
}

/// A definition says in an annotation how its commands are bound.
fn describes(binding: &str) {
    let definition = json!({
        "metadata": {"name": "d", "uid": "u", "annotations": {keys::BINDING: binding}},
        "spec": {
            "group": "ops.example", "names": {"plural": "drains", "kind": "Drain"},
            "versions": [{"name": "v1", "served": true, "storage": true}],
        },
    });
    let definition = serde_json::from_value::<PrunedObject>(definition);
    let definition = definition.unwrap_or_else(|error| panic!("the definition: {error}"));
    if let Err(problem) = describe(&definition) {
        assert!(problem.contains(keys::BINDING), "the annotation is named: {problem}");
    }
}
