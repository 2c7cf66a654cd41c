//! The objects of a restoration, and their order. Pure.
//!
//! Namespaces and the data that others read come first, also before their owners: controllers make missing data anew. Everything
//! else comes after its owners, and after the objects that its spec names.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    path::Path,
};

use anyhow::{Result, ensure};

use super::{Manifest, references};

/// The core kinds that come first, in this order: a token is deleted while its ServiceAccount is missing, and a claim is bound to
/// its volume.
const FIRST: [&str; 6] =
    ["Namespace", "ServiceAccount", "Secret", "ConfigMap", "PersistentVolume", "PersistentVolumeClaim"];

fn place_among_first(manifest: &Manifest) -> Option<usize> {
    let identity = manifest.identity();
    let place = FIRST.iter().position(|kind| *kind == identity.kind)?;
    (identity.api_version == "v1").then_some(place)
}

/// Whether an object comes before its owners, which are set later.
pub fn comes_before_owners(manifest: &Manifest) -> bool {
    place_among_first(manifest).is_some() && !manifest.owners().is_empty()
}

/// Manifests in the order of their restoration. In a circle, an owner counts more than an object that is only named. Revisions
/// come before their siblings: a child that was rolled back is looked for among them.
pub fn in_order(manifests: Vec<Manifest>) -> Vec<Manifest> {
    let (mut ordered, mut rest): (Vec<_>, Vec<_>) =
        manifests.into_iter().partition(|manifest| place_among_first(manifest).is_some());
    ordered.sort_by_key(place_among_first);
    let uid = |manifest: &Manifest| manifest.identity().uid;
    let owners = owners(&rest);
    let named = references::references(&rest);
    let mut waiting: HashSet<String> = rest.iter().map(uid).collect();
    while !rest.is_empty() {
        let follows = |earlier: &Owners, manifest: &Manifest| {
            !earlier.get(&uid(manifest)).into_iter().flatten().any(|uid| waiting.contains(uid))
        };
        let (mut next, mut later): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|manifest| follows(&owners, manifest) && follows(&named, manifest));
        if next.is_empty() {
            let first = later.iter().position(|manifest| follows(&owners, manifest)).unwrap_or_default();
            next.push(later.remove(first));
        }
        next.sort_by_key(|manifest| manifest.identity().kind != "ControllerRevision");
        for manifest in &next {
            waiting.remove(&uid(manifest));
        }
        ordered.extend(next);
        rest = later;
    }
    ordered
}

/// Owners by the uid of what they own.
pub type Owners = HashMap<String, Vec<String>>;

/// The owners of each object.
pub fn owners(manifests: &[Manifest]) -> Owners {
    let uids = |manifest: &Manifest| manifest.owners().into_iter().map(|owner| owner.uid).collect();
    manifests.iter().map(|manifest| (manifest.identity().uid, uids(manifest))).collect()
}

/// Adds the uids of everything above some objects to theirs.
pub fn add_owners(uids: &mut HashSet<String>, owners: &Owners) {
    let mut open: Vec<String> = uids.iter().cloned().collect();
    while let Some(uid) = open.pop() {
        let above = owners.get(&uid).into_iter().flatten();
        open.extend(above.filter(|above| uids.insert((*above).clone())).cloned());
    }
}

/// The objects of a namespace, the owners above them, and the definitions of their kinds.
///
/// # Errors
/// When there are none.
pub fn only_in(namespace: &str, folder: &Path, mut manifests: Vec<Manifest>) -> Result<Vec<Manifest>> {
    let namespaces: BTreeSet<String> =
        manifests.iter().filter_map(|manifest| manifest.identity().namespace).collect();
    ensure!(
        namespaces.contains(namespace),
        "the backup in {} holds no object of namespace {namespace:?}, but of {}: correct -n, which chooses what is restored",
        folder.display(),
        if namespaces.is_empty() { "none".to_owned() } else { Vec::from_iter(namespaces).join(", ") }
    );
    let is_in = |manifest: &&Manifest| {
        let object = manifest.identity();
        let is_itself = object.api_version == "v1" && object.kind == "Namespace" && object.name == namespace;
        is_itself || object.namespace.as_deref() == Some(namespace)
    };
    let mut chosen: HashSet<String> =
        manifests.iter().filter(is_in).map(|manifest| manifest.identity().uid).collect();
    add_owners(&mut chosen, &owners(&manifests));
    let objects = manifests.iter().map(Manifest::identity).filter(|object| chosen.contains(&object.uid));
    let kinds: HashSet<_> = objects.map(|object| (object.group().to_owned(), object.kind)).collect();
    let defines_one = |manifest: &Manifest| {
        let kind = (manifest.text("/spec/group").to_owned(), manifest.text("/spec/names/kind").to_owned());
        manifest.is_definition() && kinds.contains(&kind)
    };
    manifests.retain(|manifest| chosen.contains(&manifest.identity().uid) || defines_one(manifest));
    Ok(manifests)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::manifest::tests::manifest;

    fn owned_by(owners: &[&str]) -> Value {
        let owners: Vec<Value> = owners
            .iter()
            .map(|name| json!({"apiVersion": "v1", "kind": "X", "name": name, "uid": format!("uid-of-{name}")}))
            .collect();
        json!({"ownerReferences": owners})
    }

    fn owned(name: &str, owners: &[&str]) -> Manifest {
        manifest("X", name, &owned_by(owners))
    }

    fn names(manifests: Vec<Manifest>) -> Vec<String> {
        in_order(manifests).iter().map(|manifest| manifest.identity().name).collect()
    }

    #[test]
    fn owners_come_first_even_through_several_levels() {
        let all = vec![
            owned("pod", &["set"]),
            owned("set", &["top"]),
            owned("top", &["gone"]),
            owned("other", &[]),
        ];
        assert_eq!(names(all), ["top", "other", "set", "pod"]);
    }

    #[test]
    fn data_comes_first_also_before_its_owner_and_then_what_is_named() {
        let of = |kind: &str, name: &str, spec: Value| manifest(kind, name, &json!({"spec": spec}));
        let mut secret = owned_by(&["web"]);
        secret["apiVersion"] = "v1".into();
        let all = vec![
            of("Certificate", "web", json!({"secretName": "key", "issuerRef": {"name": "ca"}})),
            of("Issuer", "ca", json!({"ca": {"secretName": "web"}})),
            manifest("PersistentVolumeClaim", "claim", &json!({"apiVersion": "v1"})),
            manifest("Secret", "key", &secret),
            manifest("Secret", "foreign", &json!({})),
            manifest("Namespace", "shop", &json!({"apiVersion": "v1"})),
        ];
        assert!(comes_before_owners(&all[3]) && !comes_before_owners(&all[2]));
        assert_eq!(names(all), ["shop", "key", "claim", "ca", "foreign", "web"]);
    }

    #[test]
    fn revisions_come_before_what_is_looked_for_among_them() {
        let child = owned("web", &["top"]);
        let revision = manifest("ControllerRevision", "web-1", &owned_by(&["top"]));
        assert_eq!(names(vec![child, revision, owned("top", &[])]), ["top", "web-1", "web"]);
    }

    #[test]
    fn circles_end_nothing_and_an_owner_counts_more_than_a_name() {
        let all = vec![owned("a", &["b"]), owned("b", &["a"]), owned("c", &[])];
        assert_eq!(names(all), ["c", "a", "b"]);
        // As of a composite: it names what it owns.
        let mut part = owned_by(&["whole"]);
        part["spec"] = json!({"clusterName": "whole"});
        let whole =
            manifest("Cluster", "whole", &json!({"spec": {"parts": [{"kind": "Part", "name": "part"}]}}));
        assert_eq!(names(vec![manifest("Part", "part", &part), whole]), ["whole", "part"]);
    }

    #[test]
    fn owners_are_added_through_all_levels() {
        let all = [owned("top", &[]), owned("set", &["top"]), owned("claim", &["set"]), owned("other", &[])];
        let mut lost = HashSet::from(["uid-of-claim".to_owned()]);
        add_owners(&mut lost, &owners(&all));
        assert_eq!(lost, ["claim", "set", "top"].map(|name| format!("uid-of-{name}")).into());
    }

    #[test]
    fn a_namespace_comes_with_its_owners_and_the_definitions_of_its_kinds() {
        let wide = |kind: &str, name: &str, spec: Value| {
            manifest(kind, name, &json!({"namespace": null, "apiVersion": "x.dev/v1", "spec": spec}))
        };
        let owner = json!({"apiVersion": "x.dev/v1", "kind": "Tenant", "name": "a", "uid": "uid-of-a"});
        let definition = |kind: &str, group: &str| {
            wide("CustomResourceDefinition", kind, json!({"group": group, "names": {"kind": kind}}))
        };
        let all = vec![
            manifest("BasicDeployment", "web", &json!({"ownerReferences": [owner]})),
            manifest("BasicDeployment", "api", &json!({"namespace": "other"})),
            manifest("Namespace", "shop", &json!({"namespace": null, "apiVersion": "v1"})),
            wide("Tenant", "a", Value::Null),
            wide("Tenant", "b", Value::Null),
            definition("BasicDeployment", "catena.dev"),
            definition("Tenant", "x.dev"),
            definition("Reindex", "acme.dev"),
        ];
        let chosen = only_in("shop", Path::new("dir"), all.clone()).unwrap();
        let names: Vec<String> = chosen.iter().map(|manifest| manifest.identity().name).collect();
        assert_eq!(names, ["web", "shop", "a", "BasicDeployment", "Tenant"]);
        let told = only_in("sohp", Path::new("dir"), all).unwrap_err().to_string();
        assert!(
            told.starts_with("the backup in dir holds no object of namespace \"sohp\", but of other, shop:"),
            "{told}"
        );
    }
}
