//! The manifest of a child, and the changes that the trials make to it. Pure.

use anyhow::{Context, Result, bail, ensure};
use catena_api::contract::ReplicaContract;
use catena_cluster::Kind;
use operator_templates::Yaml;
use serde_json::{Value, json};

/// An image that nobody can pull: the domain `invalid` has no hosts (RFC 2606).
const MISSING_IMAGE: &str = "registry.invalid/catena/contract-check:missing";

/// The manifest of a child.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest(Value);

impl Manifest {
    /// Reads one object of the kind. Its namespace is ignored.
    ///
    /// # Errors
    /// When it is not exactly one, or of another kind.
    pub fn read(text: &str, kind: &Kind) -> Result<Self> {
        let mut documents = Yaml::read_all(text).context("it is not YAML")?;
        documents.retain(|document| !document.is_null());
        let mut object = match documents.len() {
            0 => bail!("it is empty: write one object"),
            1 => documents.remove(0),
            many => bail!("it has {many} documents: write one object"),
        };
        let [version, name] = ["apiVersion", "kind"].map(|field| object[field].as_str().unwrap_or_default());
        let (wanted, kind) = (&*kind.resource.api_version, &*kind.resource.kind);
        ensure!(
            (version, name) == (wanted, kind),
            "it is a {name:?} of {version:?}, but the checked kind is {kind:?} of {wanted:?}"
        );
        ensure!(object["metadata"]["name"].is_string(), "metadata.name is missing: give the object a name");
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("namespace");
        }
        Ok(Self(object))
    }

    /// The name of the object.
    pub(crate) fn name(&self) -> &str {
        self.0["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// The child with a number of replicas and a restart token.
    pub(crate) fn child(&self, contract: &ReplicaContract, replicas: usize, token: Option<&str>) -> Value {
        let mut child = self.0.clone();
        contract.replicas.set(&mut child, json!(replicas));
        if let (Some(path), Some(token)) = (&contract.restarted_at, token) {
            path.set(&mut child, json!(token));
        }
        child
    }

    /// The same with images that nobody can pull.
    ///
    /// # Errors
    /// When it has no images.
    pub fn with_missing_images(&self) -> Result<Self> {
        let mut object = self.0.clone();
        if replace_images(&mut object) == 0 {
            bail!(
                "it has no field image, so that the check cannot make it one that never serves: give it with --bad-template"
            );
        }
        Ok(Self(object))
    }
}

/// Replaces the texts of all fields named image, and counts them.
fn replace_images(value: &mut Value) -> usize {
    match value {
        Value::Object(fields) => fields
            .iter_mut()
            .map(|(name, field)| {
                if name == "image" && field.is_string() {
                    *field = MISSING_IMAGE.into();
                    return 1;
                }
                replace_images(field)
            })
            .sum(),
        Value::Array(items) => items.iter_mut().map(replace_images).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {

    use catena_cluster::testing::kinds;

    use super::*;

    fn read(text: &str) -> Result<Manifest> {
        Manifest::read(text, kinds().find("deployments").unwrap())
    }

    const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {template: {spec: {containers: [{image: a}, {image: b}]}}}
";

    #[test]
    fn a_child_has_the_inputs_at_the_places_of_the_contract_and_no_namespace() {
        let child = read(WEB).unwrap().child(&ReplicaContract::default(), 3, Some("now"));
        assert_eq!(child["spec"]["replicas"], 3);
        assert_eq!(child["spec"]["restartedAt"], "now");
        assert_eq!(child["metadata"], json!({"name": "web"}));
    }

    #[test]
    fn a_bad_child_has_no_image_that_can_be_pulled() {
        let bad = read(WEB).unwrap().with_missing_images().unwrap();
        let containers = &bad.0["spec"]["template"]["spec"]["containers"];
        assert_eq!(*containers, json!([{"image": MISSING_IMAGE}, {"image": MISSING_IMAGE}]));
        let plain = read("{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}").unwrap();
        assert!(plain.with_missing_images().unwrap_err().to_string().contains("--bad-template"));
    }

    #[test]
    fn a_file_without_exactly_one_object_is_refused_with_the_number_of_its_documents() {
        let error = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(error(&format!("{WEB}---{WEB}")), "it has 2 documents: write one object");
        assert_eq!(error(&format!("---{WEB}---{WEB}---{WEB}")), "it has 3 documents: write one object");
        for empty in ["", "\n", "# none\n", "---\n", "---\n---\n"] {
            assert_eq!(error(empty), "it is empty: write one object", "{empty:?}");
        }
        for one in [format!("---{WEB}"), format!("{WEB}---\n"), format!("# a\n---{WEB}---\n# b\n")] {
            assert_eq!(read(&one).unwrap().name(), "web", "{one}");
        }
        assert!(error("a: [").contains("is not YAML"));
    }

    #[test]
    fn a_manifest_of_another_kind_or_without_a_name_is_refused() {
        let error = read("{apiVersion: v1, kind: Pod, metadata: {name: web}}").unwrap_err().to_string();
        assert!(error.contains("\"Pod\"") && error.contains("\"Deployment\""), "{error}");
        let error = read("{apiVersion: apps/v1, kind: Deployment}").unwrap_err().to_string();
        assert!(error.contains("metadata.name"), "{error}");
    }
}
