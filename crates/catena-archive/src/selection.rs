//! The part of a backup that belongs to one namespace. Pure.

use std::{
    collections::{BTreeSet, HashSet},
    path::Path,
};

use anyhow::{Result, ensure};

use super::{Manifest, order};

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
    order::add_owners(&mut chosen, &order::owners(&manifests));
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
