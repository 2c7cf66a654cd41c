//! Adds and removes one finalizer: ours, on exactly the observed object, and nothing else.

use catena_api::keys::BACKUP_FINALIZER;
use json_patch::{AddOperation, PatchOperation, RemoveOperation, TestOperation, jsonptr::PointerBuf};
use serde_json::{Value, json};

/// Whether ours is in the list.
#[must_use]
pub fn is_there(finalizers: &[String]) -> bool {
    finalizers.iter().any(|finalizer| finalizer == BACKUP_FINALIZER)
}

/// Adds ours to an object that has these finalizers and is not being deleted.
#[must_use]
pub fn add(uid: &str, finalizers: &[String]) -> Vec<PatchOperation> {
    let list = ["metadata", "finalizers"];
    let (seen, place, value) = if finalizers.is_empty() {
        (Value::Null, list.to_vec(), json!([BACKUP_FINALIZER]))
    } else {
        (json!(finalizers), [list.as_slice(), &["-"]].concat(), json!(BACKUP_FINALIZER))
    };
    vec![test(&["metadata", "uid"], json!(uid)), is_not_deleted(), test(&list, seen), put(&place, value)]
}

/// Removes ours from an object that is not being deleted and has not changed since it was observed: another label may
/// require its protection. `None` if it is missing.
#[must_use]
pub fn take_back(uid: &str, version: &str, finalizers: &[String]) -> Option<Vec<PatchOperation>> {
    let mut patch = remove_from_living(uid, finalizers)?;
    patch.insert(1, test(&["metadata", "resourceVersion"], json!(version)));
    Some(patch)
}

/// Removes ours from an object that is not being deleted. `None` if it is missing.
#[must_use]
pub fn remove_from_living(uid: &str, finalizers: &[String]) -> Option<Vec<PatchOperation>> {
    let mut patch = remove(uid, finalizers)?;
    patch.insert(1, is_not_deleted());
    Some(patch)
}

/// Removes ours, whether the object is being deleted or not. `None` if it is missing.
#[must_use]
pub fn remove(uid: &str, finalizers: &[String]) -> Option<Vec<PatchOperation>> {
    let index = finalizers.iter().position(|finalizer| finalizer == BACKUP_FINALIZER)?.to_string();
    let place = ["metadata", "finalizers", &index];
    Some(vec![
        test(&["metadata", "uid"], json!(uid)),
        test(&place, json!(BACKUP_FINALIZER)),
        PatchOperation::Remove(RemoveOperation { path: PointerBuf::from_tokens(place) }),
    ])
}

/// Sets an annotation of an object that has annotations.
#[must_use]
pub fn annotate(key: &str, value: &str) -> PatchOperation {
    put(&["metadata", "annotations", key], json!(value))
}

fn is_not_deleted() -> PatchOperation {
    test(&["metadata", "deletionTimestamp"], Value::Null)
}

fn test(path: &[&str], value: Value) -> PatchOperation {
    PatchOperation::Test(TestOperation { path: PointerBuf::from_tokens(path.iter().copied()), value })
}

fn put(path: &[&str], value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path: PointerBuf::from_tokens(path.iter().copied()), value })
}

#[cfg(test)]
mod tests {
    use json_patch::{Patch, patch};

    use super::*;

    fn object(finalizers: &[&str]) -> Value {
        json!({"metadata": {
            "uid": "u", "resourceVersion": "7", "deletionTimestamp": null, "finalizers": finalizers,
        }})
    }

    fn list(finalizers: &[&str]) -> Vec<String> {
        finalizers.iter().map(|finalizer| (*finalizer).to_owned()).collect()
    }

    #[test]
    fn only_ours_is_taken_away() {
        let seen = ["a.example/x", BACKUP_FINALIZER, "b.example/y"];
        let mut object = object(&seen);
        patch(&mut object, &Patch(remove("u", &list(&seen)).unwrap())).unwrap();
        assert_eq!(object["metadata"]["finalizers"], json!(["a.example/x", "b.example/y"]));
    }

    #[test]
    fn nothing_is_taken_from_another_object_or_from_another_list() {
        let seen = list(&[BACKUP_FINALIZER]);
        let patches = Patch(remove("other", &seen).unwrap());
        assert!(patch(&mut object(&[BACKUP_FINALIZER]), &patches).is_err());
        let patches = Patch(remove("u", &seen).unwrap());
        assert!(patch(&mut object(&["a.example/x", BACKUP_FINALIZER]), &patches).is_err());
    }

    #[test]
    fn what_was_deleted_or_changed_meanwhile_keeps_it() {
        let seen = list(&[BACKUP_FINALIZER]);
        let taken = |object: &mut Value, operations: Option<Vec<PatchOperation>>| {
            patch(object, &Patch(operations.unwrap())).is_ok()
        };
        assert!(taken(&mut object(&[BACKUP_FINALIZER]), take_back("u", "7", &seen)));
        assert!(!taken(&mut object(&[BACKUP_FINALIZER]), take_back("u", "6", &seen)));
        let mut deleted = object(&[BACKUP_FINALIZER]);
        deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(!taken(&mut deleted.clone(), take_back("u", "7", &seen)));
        assert!(!taken(&mut deleted.clone(), remove_from_living("u", &seen)));
        assert!(taken(&mut deleted, remove("u", &seen)));
    }

    #[test]
    fn what_is_being_deleted_gets_no_finalizer() {
        let mut object = object(&["a.example/x"]);
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(patch(&mut object, &Patch(add("u", &list(&["a.example/x"])))).is_err());
    }

    #[test]
    fn ours_is_appended_to_the_list_that_was_seen() {
        let mut object = object(&["a.example/x"]);
        patch(&mut object, &Patch(add("u", &list(&["a.example/x"])))).unwrap();
        assert_eq!(object["metadata"]["finalizers"], json!(["a.example/x", BACKUP_FINALIZER]));
        assert!(patch(&mut object, &Patch(add("u", &list(&["a.example/x"])))).is_err());
    }
}
