//! Stores every object of a definition in its storage version, and takes the other versions out of `status.storedVersions`.
//!
//! The server converts by changing only the version, so a version without a field drops its value. Each object is read in all
//! versions in which it may be stored. One that would lose a value is named, and left as it is.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use catena_cluster::{Change, Cluster, Gap, How, Kind, ObjectName, errors, read_failure};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Definition, LostField, ObjectFields, Refused,
    definition::{self},
    lost, objects, trial,
};

/// Attempts to write an object that somebody else changes meanwhile.
const ATTEMPTS: usize = 10;
/// Every replica of the API server must have learned of a new storage version before an object is written.
const SETTLING_TIME: Duration = Duration::from_secs(3);

/// The options of a migration.
#[derive(Clone, Debug, Default)]
pub struct Migration {
    /// The version in which objects are to be stored; none for the present storage version.
    pub to: Option<String>,
    /// Fields whose loss is accepted, such as `spec.rules[].color`.
    pub drop: Vec<String>,
    /// Versions whose values are given up unread, because they are stored, but not served.
    pub unread: Vec<String>,
    /// Whether nothing is written.
    pub dry_run: bool,
}

/// The result of a migration.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Migrated {
    /// The name of the definition.
    pub name: String,
    /// The version in which objects are stored.
    pub storage_version: String,
    /// The versions in which objects may be stored now.
    pub stored_versions: Vec<String>,
    /// The number of objects in the storage version; with a dry run, that would be.
    pub objects: usize,
    /// Objects that would lose fields, and were left as they are.
    pub left: Vec<ObjectFields>,
    /// Objects that the server refuses in the storage version.
    pub refused: Vec<Refused>,
    /// Objects that could not be migrated for another reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Gap>,
}

enum Outcome {
    Migrated,
    Gone,
    WouldLose(Vec<LostField>),
    Refused(Refused),
    Failed(String),
}

impl Migrated {
    /// Whether all objects are in the storage version.
    pub fn is_complete(&self) -> bool {
        self.left.is_empty() && self.refused.is_empty() && self.failed.is_empty()
    }
}

/// Migrates the objects of a definition. Repeated after an interruption, it goes over all objects again: the server does not
/// write those that are already stored in the storage version.
pub async fn migrate(cluster: &Cluster, name: &str, options: &Migration) -> Result<Migrated> {
    let found = definition::installed(cluster, name)
        .await
        .map_err(|error| definition::refused(cluster, name, "get", error))?;
    let mut definition = found.with_context(|| {
        format!("there is no definition {name:?}: only objects of custom kinds are migrated")
    })?;
    if let Some(version) = options.to.as_deref().filter(|version| *version != definition.storage()) {
        // From the change of the storage version on, each write of anybody drops what that version lacks.
        let planned = store_in(cluster, &definition, version, true).await?;
        let tried = pass(cluster, &planned, options, true).await?;
        if options.dry_run {
            return Ok(tried);
        }
        if !tried.is_complete() {
            let stored_versions = definition.stored().into_iter().map(str::to_owned).collect();
            return Ok(Migrated { stored_versions, ..tried });
        }
        definition = store_in(cluster, &definition, version, false).await?;
    }
    pass(cluster, &definition, options, options.dry_run).await
}

/// Goes over all objects of a definition; a dry run asks the server about each, without any effect.
async fn pass(
    cluster: &Cluster,
    definition: &Definition,
    options: &Migration,
    dry_run: bool,
) -> Result<Migrated> {
    let name = definition.name();
    let storage = definition.storage().to_owned();
    let stored: Vec<String> = definition.stored().into_iter().map(str::to_owned).collect();
    let mut result = Migrated {
        name: name.to_owned(),
        storage_version: storage.clone(),
        stored_versions: stored.clone(),
        ..Migrated::default()
    };
    let others: Vec<String> = stored.iter().filter(|version| **version != storage).cloned().collect();
    if others.is_empty() {
        return Ok(result);
    }
    ensure!(
        definition.is_served(&storage),
        "version {storage} of {name} is the storage version, but not served, so that objects cannot be compared with it: set \
         served: true for it"
    );
    let (served, hidden): (Vec<String>, Vec<String>) =
        others.into_iter().partition(|version| definition.is_served(version));
    if let Some(version) = hidden.iter().find(|version| !options.unread.contains(version)) {
        bail!(
            "objects of {name} may be stored in version {version}, which is not served, so that nobody can see what they would \
             lose: set served: true for it, or give up what only that version holds with --unread {version}"
        );
    }
    // What a webhook makes of an object is its own decision.
    let compared = if definition.is_converted_by_webhook() { Vec::new() } else { served };
    if !dry_run {
        tokio::time::sleep(SETTLING_TIME).await;
    }
    let object = Object {
        cluster,
        definition,
        kind: definition.kind(&storage),
        compared,
        drop: &options.drop,
        dry_run,
    };
    let migrate = async |found| object.migrate(found).await;
    objects::each(cluster, definition, &storage, "migrating", migrate, |place, outcome| {
        result.add(place, outcome);
    })
    .await?;
    if result.is_complete() && !dry_run {
        forget_others(cluster, definition).await?;
        result.stored_versions = vec![storage];
    }
    Ok(result)
}

impl Migrated {
    fn add(&mut self, object: ObjectName, outcome: Outcome) {
        match outcome {
            Outcome::Migrated => self.objects += 1,
            Outcome::Gone => {}
            Outcome::WouldLose(fields) => self.left.push(ObjectFields { object, fields }),
            Outcome::Refused(refused) => self.refused.push(refused),
            Outcome::Failed(why) => self.failed.push(Gap::new(object.to_string(), why)),
        }
    }
}

/// What the migration of an object needs.
struct Object<'m> {
    cluster: &'m Cluster,
    definition: &'m Definition,
    kind: Kind,
    compared: Vec<String>,
    drop: &'m [String],
    dry_run: bool,
}

impl Object<'_> {
    async fn migrate(&self, object: Value) -> Outcome {
        let mut object = object;
        for _ in 0..ATTEMPTS {
            match self.attempt(&object).await {
                Ok(Some(outcome)) => return outcome,
                Err(kube::Error::Api(status)) if status.code == 422 => {
                    return Outcome::Refused(Refused {
                        object: ObjectName::of(&object),
                        causes: trial::causes(&status),
                    });
                }
                Err(error) => return Outcome::Failed(read_failure(&error)),
                // Somebody changed it meanwhile, so that it has to be compared again.
                Ok(None) => {}
            }
            match objects::read(self.cluster, &self.kind, &object).await {
                Ok(Some(present)) => object = present,
                Ok(None) => return Outcome::Gone,
                Err(error) => return Outcome::Failed(read_failure(&error)),
            }
        }
        Outcome::Failed("others change it all the time; migrate again".to_owned())
    }

    /// `None` if the object has changed meanwhile.
    async fn attempt(&self, object: &Value) -> kube::Result<Option<Outcome>> {
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        let mut fields = Vec::new();
        for other in &self.compared {
            let form = objects::read(self.cluster, &self.definition.kind(other), object).await?;
            let Some(form) = form else { return Ok(Some(Outcome::Gone)) };
            if version(&form) != version(object) {
                return Ok(None);
            }
            let lost = lost(&form, object, self.definition.schema(other)).into_iter();
            fields.extend(lost.filter(|field| !field.is_default && !self.drop.contains(&field.general())));
        }
        if !fields.is_empty() {
            return Ok(Some(Outcome::WouldLose(fields)));
        }
        // It changes nothing but the version in which the server stores the object.
        let patch =
            json!({"metadata": {"uid": object["metadata"]["uid"], "resourceVersion": version(object)}});
        let ObjectName { namespace, name } = ObjectName::of(object);
        let (place, how) = (namespace.as_deref(), How { dry_run: self.dry_run, ..How::default() });
        let write = async || {
            self.cluster.at(&self.kind, place, &name).write::<Value>(Change::Merge(&patch), how).await
        };
        match trial::retried(write).await {
            Ok(_) => Ok(Some(Outcome::Migrated)),
            Err(kube::Error::Api(status)) if status.is_conflict() => Ok(None),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Some(Outcome::Gone)),
            Err(error) => Err(error),
        }
    }
}

/// Makes a version the storage version; a dry run says what would come of it.
async fn store_in(
    cluster: &Cluster,
    definition: &Definition,
    version: &str,
    dry_run: bool,
) -> Result<Definition> {
    let name = definition.name();
    ensure!(
        definition.is_served(version),
        "{name} does not serve a version {version:?}: correct --to, or apply a definition that serves it"
    );
    let mut changed = definition.document().clone();
    for known in changed["spec"]["versions"].as_array_mut().into_iter().flatten() {
        known["storage"] = (known["name"] == version).into();
    }
    let how = How { dry_run, ..How::default() };
    let written = cluster.at(&Kind::definitions(), None, name).write(Change::Replace(&changed), how).await;
    Definition::new(written.map_err(|error| definition::refused(cluster, name, "update", error))?)
}

/// Takes all versions but the storage version out of `status.storedVersions`, if the definition is still the one whose objects
/// were migrated.
async fn forget_others(cluster: &Cluster, before: &Definition) -> Result<()> {
    let name = before.name();
    for _ in 0..ATTEMPTS {
        let present = definition::installed(cluster, name)
            .await
            .map_err(|error| definition::refused(cluster, name, "get", error))?;
        let present = present.with_context(|| format!("the definition {name} was deleted meanwhile"))?;
        let [then, now] = [before, &present].map(|definition| {
            let metadata = &definition.document()["metadata"];
            (metadata["uid"].clone(), metadata["generation"].clone())
        });
        ensure!(then == now, "the definition {name} was changed meanwhile: migrate again");
        let mut changed = present.document().clone();
        changed["status"]["storedVersions"] = json!([before.storage()]);
        let (change, how) = (Change::Replace(&changed), How { subresource: "status", ..How::default() });
        match cluster.at(&Kind::definitions(), None, name).write::<Value>(change, how).await {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.is_conflict() => {}
            Err(error) => {
                let kind = ("CustomResourceDefinition", "customresourcedefinitions/status");
                return Err(errors::refused(kind, name, None, "update", error));
            }
        }
    }
    Err(anyhow!("others change the definition {name} all the time: migrate again"))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use catena_cluster::testing::cluster;
    use http::{Method, Request, Response};
    use kube::{Client, client::Body};
    use tower::service_fn;

    use super::*;
    use crate::upgrade::definition::tests::definition;

    /// Stored in v1; only v1 has the field `color`.
    fn two_versions() -> Value {
        let mut document = definition(&json!({"color": {"type": "string"}}));
        let mut second = document["spec"]["versions"][0].clone();
        second["name"] = "v2".into();
        second["storage"] = false.into();
        second["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = json!({});
        document["spec"]["versions"].as_array_mut().unwrap().push(second);
        document["status"] = json!({"storedVersions": ["v1"]});
        document
    }

    /// A server with an object that would lose its color in v2, and the writes that it was sent.
    fn server() -> (Cluster, Arc<Mutex<Vec<String>>>) {
        let writes = Arc::new(Mutex::new(Vec::new()));
        let log = writes.clone();
        let service = service_fn(move |request: Request<Body>| {
            let log = log.clone();
            async move {
                let (parts, body) = request.into_parts();
                let metadata = json!({"namespace": "shop", "name": "a", "uid": "u", "resourceVersion": "1"});
                if parts.method != Method::GET {
                    log.lock().unwrap().push(parts.uri.to_string());
                }
                let answer = if parts.method == Method::PUT {
                    serde_json::from_slice(&body.collect_bytes().await.unwrap()).unwrap()
                } else if parts.uri.path().contains("customresourcedefinitions") {
                    two_versions()
                } else if parts.uri.path().starts_with("/apis/example.com/v1/") {
                    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata, "spec": {"color": "red"}})
                } else {
                    let object = json!({"apiVersion": "example.com/v2", "kind": "Thing", "metadata": metadata, "spec": {}});
                    let is_list = parts.uri.path().ends_with("things");
                    if is_list {
                        json!({"kind": "ThingList", "metadata": {}, "items": [object]})
                    } else {
                        object
                    }
                };
                Response::builder().body(Body::from(answer.to_string().into_bytes()))
            }
        });
        (Cluster { client: Client::new(service, "shop"), ..cluster().0 }, writes)
    }

    #[tokio::test(start_paused = true)]
    async fn the_storage_version_stays_while_an_object_would_lose_a_value() {
        let (cluster, writes) = server();
        let to = Migration { to: Some("v2".into()), ..Migration::default() };
        let migrated = migrate(&cluster, "things.example.com", &to).await.unwrap();
        assert_eq!(migrated.left[0].fields[0].path, "spec.color");
        assert_eq!(migrated.stored_versions, ["v1"]);
        let sent = writes.lock().unwrap().clone();
        assert!(sent.iter().all(|write| write.contains("dryRun=All")), "{sent:?}");
        let to = Migration { drop: vec!["spec.color".into()], ..to };
        // The server of this test does not keep the new definition.
        migrate(&cluster, "things.example.com", &to).await.ok();
        let sent = writes.lock().unwrap().clone();
        let is_tried = |write: &String| write.contains("dryRun=All");
        assert!(
            sent.iter().any(|write| write.contains("customresourcedefinitions") && !is_tried(write)),
            "{sent:?}"
        );
    }
}
