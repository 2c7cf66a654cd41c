//! The order of ownership. Pure.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::manifest::Manifest;

/// Manifests in levels: the owners of a level are in the levels before it. Owners that own each other come last. Revisions come
/// before their siblings: a child that was rolled back is looked for among them.
pub fn levels(manifests: Vec<Manifest>) -> Vec<Vec<Manifest>> {
    let owners: HashMap<String, Vec<String>> = manifests
        .iter()
        .map(|manifest| {
            let owners = manifest.owners().into_iter().map(|owner| owner.uid);
            (manifest.identity().uid, owners.collect())
        })
        .collect();
    let mut depths: HashMap<&str, usize> = owners.keys().map(|uid| (uid.as_str(), 0)).collect();
    // A chain is at most as long as there are objects, and a circle ends there.
    for _ in 0..owners.len() {
        let mut has_changed = false;
        for (uid, above) in &owners {
            let deepest = above.iter().filter_map(|owner| depths.get(owner.as_str())).max();
            let depth = deepest.map_or(0, |depth| (depth + 1).min(owners.len()));
            if depths.insert(uid, depth) != Some(depth) {
                has_changed = true;
            }
        }
        if !has_changed {
            break;
        }
    }
    let depths: HashMap<String, usize> =
        depths.into_iter().map(|(uid, depth)| (uid.to_owned(), depth)).collect();
    let mut levels: BTreeMap<(usize, bool), Vec<Manifest>> = BTreeMap::new();
    for manifest in manifests {
        let identity = manifest.identity();
        let depth = depths.get(&identity.uid).copied().unwrap_or_default();
        let is_revision = identity.kind == "ControllerRevision";
        levels.entry((depth, !is_revision)).or_default().push(manifest);
    }
    levels.into_values().collect()
}

/// Owners by the uid of what they own.
pub type Owners = Vec<(String, Vec<String>)>;

/// The owners of each object.
pub fn owners(manifests: &[Manifest]) -> Owners {
    let uids = |manifest: &Manifest| manifest.owners().into_iter().map(|owner| owner.uid).collect();
    manifests.iter().map(|manifest| (manifest.identity().uid, uids(manifest))).collect()
}

/// Adds everything above lost objects to them: what owns a lost object must not go on without it.
pub fn lose_owners(lost: &mut HashSet<String>, owners: &Owners) {
    loop {
        let before = lost.len();
        for (uid, above) in owners {
            if lost.contains(uid) {
                lost.extend(above.iter().cloned());
            }
        }
        if lost.len() == before {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::archive::manifest::tests::manifest;

    fn owned(name: &str, owners: &[&str]) -> Manifest {
        let owners: Vec<Value> = owners
            .iter()
            .map(|name| json!({"apiVersion": "v1", "kind": "X", "name": name, "uid": format!("uid-of-{name}")}))
            .collect();
        manifest("X", name, &json!({"ownerReferences": owners}))
    }

    fn names(manifests: Vec<Manifest>) -> Vec<Vec<String>> {
        let level = |level: Vec<Manifest>| level.iter().map(|manifest| manifest.identity().name).collect();
        levels(manifests).into_iter().map(level).collect()
    }

    #[test]
    fn owners_come_first_even_through_several_levels() {
        let all = vec![
            owned("pod", &["set"]),
            owned("set", &["top"]),
            owned("top", &["gone"]),
            owned("other", &[]),
        ];
        assert_eq!(names(all), [vec!["top", "other"], vec!["set"], vec!["pod"]]);
    }

    #[test]
    fn revisions_come_before_what_is_looked_for_among_them() {
        let child = owned("web", &["top"]);
        let owner = json!({"ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "top", "uid": "uid-of-top"}]});
        let revision = manifest("ControllerRevision", "web-1", &owner);
        assert_eq!(
            names(vec![child, revision, owned("top", &[])]),
            [vec!["top"], vec!["web-1"], vec!["web"]]
        );
    }

    #[test]
    fn objects_that_own_each_other_end_nothing() {
        let all = vec![owned("a", &["b"]), owned("b", &["a"]), owned("c", &[])];
        assert_eq!(names(all).first().unwrap(), &["c"]);
    }

    #[test]
    fn what_owns_a_lost_object_is_lost_through_all_levels() {
        let all = [owned("top", &[]), owned("set", &["top"]), owned("claim", &["set"]), owned("other", &[])];
        let mut lost = HashSet::from(["uid-of-claim".to_owned()]);
        lose_owners(&mut lost, &owners(&all));
        assert_eq!(lost, ["claim", "set", "top"].map(|name| format!("uid-of-{name}")).into());
    }
}
