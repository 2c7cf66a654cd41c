//! Stores every object of a definition in its storage version, and takes the other versions out of `status.storedVersions`.
//!
//! The server converts by changing only the version, so a version without a field drops its value. Each object is read in all
//! versions in which it may be stored. One that would lose a value is named, and left as it is.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use catena_cluster::{Change, Cluster, Gap, How, Kind, ObjectName, errors, lost, read_failure};
use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Definition, ObjectFields, Refused, Verdict, definition, objects, trial};

/// Attempts to write an object that somebody else changes meanwhile.
const ATTEMPTS: usize = 10;
/// Every replica of the API server must have learned of a new storage version before an object is written.
const SETTLING_TIME: Duration = Duration::from_secs(3);

/// The options of a migration.
#[derive(Args, Clone, Debug, Default)]
pub struct Migration {
    /// Make this version the storage version first, for example for the way back to a former definition
    #[arg(long, value_name = "VERSION")]
    pub to: Option<String>,
    /// A field whose values may be lost, as a message of this command names it, without positions in lists: spec.rules[].color;
    /// can be given several times
    #[arg(long, value_name = "FIELD")]
    pub drop: Vec<String>,
    /// A version that is stored, but not served: what only it holds is given up unread; can be given several times
    #[arg(long, value_name = "VERSION")]
    pub unread: Vec<String>,
    /// Only report what would happen
    #[arg(long)]
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

impl Migrated {
    /// The result before any object is looked at.
    fn before(definition: &Definition) -> Self {
        Self {
            name: definition.name().to_owned(),
            storage_version: definition.storage().to_owned(),
            stored_versions: definition.stored().into_iter().map(str::to_owned).collect(),
            ..Self::default()
        }
    }

    /// Whether all objects are in the storage version.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.left.is_empty() && self.refused.is_empty() && self.failed.is_empty()
    }
}

/// Migrates the objects of a definition. Repeated after an interruption, it goes over all objects again: the server does not
/// write those that are already stored in the storage version.
///
/// # Errors
/// When there is no such definition, one of its versions cannot be read, or somebody changes it meanwhile.
pub async fn migrate(cluster: &Cluster, name: &str, options: &Migration) -> Result<Migrated> {
    let mut definition = definition::installed(cluster, name).await?.with_context(|| {
        format!("there is no definition {name:?}: only objects of custom kinds are migrated")
    })?;
    if let Some(version) = options.to.as_deref().filter(|version| *version != definition.storage()) {
        // From the change of the storage version on, each write of anybody drops what that version lacks.
        let planned = store_in(cluster, &definition, version, true).await?;
        let tried = Pass { cluster, definition: &planned, options, dry_run: true }.run().await?;
        if options.dry_run {
            return Ok(tried);
        }
        if !tried.is_complete() {
            let Migrated { storage_version, stored_versions, .. } = Migrated::before(&definition);
            return Ok(Migrated { storage_version, stored_versions, ..tried });
        }
        definition = store_in(cluster, &definition, version, false).await?;
    }
    Pass { cluster, definition: &definition, options, dry_run: options.dry_run }.run().await
}

/// A walk over all objects of a definition; a dry run asks the server about each, without any effect.
struct Pass<'m> {
    cluster: &'m Cluster,
    definition: &'m Definition,
    options: &'m Migration,
    dry_run: bool,
}

impl Pass<'_> {
    async fn run(&self) -> Result<Migrated> {
        let Self { cluster, definition, options, dry_run } = *self;
        let (name, storage) = (definition.name(), definition.storage());
        let mut result = Migrated::before(definition);
        let others: Vec<&str> =
            definition.stored().into_iter().filter(|version| *version != storage).collect();
        if others.is_empty() {
            return Ok(result);
        }
        ensure!(
            definition.is_served(storage),
            "version {storage} of {name} is the storage version, but not served, so that objects cannot be compared with it: set \
             served: true for it"
        );
        let (served, hidden): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|version| definition.is_served(version));
        let is_given_up = |version: &str| options.unread.iter().any(|unread| unread == version);
        if let Some(version) = hidden.into_iter().find(|version| !is_given_up(version)) {
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
        let migrate = async |found| self.migrate(&compared, found).await;
        let add = |place, migrated| result.add(place, migrated);
        objects::each(cluster, definition, storage, "migrating", migrate, add).await?;
        if result.is_complete() && !dry_run {
            forget_others(cluster, definition).await?;
            result.stored_versions = vec![storage.to_owned()];
        }
        Ok(result)
    }

    /// Stores an object in the storage version. `None` if it is gone.
    async fn migrate(&self, compared: &[&str], object: Value) -> Result<Option<Verdict>, String> {
        let kind = self.definition.kind(self.definition.storage());
        let mut present = Some(object);
        for _ in 0..ATTEMPTS {
            let Some(object) = &present else { return Ok(None) };
            let verdict = self.attempt(&kind, compared, object).await;
            let verdict = verdict.map_err(|error| read_failure(&error))?;
            if verdict.is_some() {
                return Ok(verdict);
            }
            // Somebody changed it meanwhile, so that it has to be compared again.
            let read = objects::read(self.cluster, &kind, object).await;
            present = read.map_err(|error| read_failure(&error))?;
        }
        Err("others change it all the time; migrate again".to_owned())
    }

    /// `None` if the object has changed or gone meanwhile.
    async fn attempt(&self, kind: &Kind, compared: &[&str], object: &Value) -> kube::Result<Option<Verdict>> {
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        let mut verdict = Verdict::default();
        for other in compared {
            let form = objects::read(self.cluster, &self.definition.kind(other), object).await?;
            let Some(form) = form.filter(|form| version(form) == version(object)) else { return Ok(None) };
            verdict.lost.extend(lost(&form, object, self.definition.schema(other)));
        }
        verdict.lost.retain(|field| !field.is_default && !self.options.drop.contains(&field.general()));
        if !verdict.lost.is_empty() {
            return Ok(Some(verdict));
        }
        // It changes nothing but the version in which the server stores the object.
        let patch =
            json!({"metadata": {"uid": object["metadata"]["uid"], "resourceVersion": version(object)}});
        let ObjectName { namespace, name } = ObjectName::of(object);
        let (place, how) = (namespace.as_deref(), How { dry_run: self.dry_run, ..How::default() });
        let write =
            async || self.cluster.at(kind, place, &name).write::<Value>(Change::Merge(&patch), how).await;
        match trial::retried(write).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => return Ok(None),
            Err(kube::Error::Api(status)) if status.code == 422 => verdict.refused = trial::causes(&status),
            Err(error) => return Err(error),
        }
        Ok(Some(verdict))
    }
}

impl Migrated {
    /// Adds what came of an object, which is migrated unless it would lose a field or is refused. One that is gone has no
    /// verdict.
    fn add(&mut self, object: ObjectName, migrated: Result<Option<Verdict>, String>) {
        match migrated {
            Err(why) => self.failed.push(Gap::new(object.to_string(), why)),
            Ok(None) => {}
            Ok(Some(Verdict { lost: fields, .. })) if !fields.is_empty() => {
                self.left.push(ObjectFields { object, fields });
            }
            Ok(Some(Verdict { refused: causes, .. })) if !causes.is_empty() => {
                self.refused.push(Refused { object, causes });
            }
            Ok(Some(_)) => self.objects += 1,
        }
    }
}

/// Makes a version the storage version; a dry run says what would come of it.
async fn store_in(cluster: &Cluster, old: &Definition, version: &str, dry_run: bool) -> Result<Definition> {
    let name = old.name();
    ensure!(
        old.is_served(version),
        "{name} does not serve a version {version:?}: correct --to, or apply a definition that serves it"
    );
    let mut changed = old.document().clone();
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
        let present = definition::installed(cluster, name).await?;
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

    use catena_cluster::testing::{answering, cluster, status};
    use http::{Method, Request, Response};
    use kube::{Client, client::Body};
    use tower::service_fn;

    use super::*;
    use crate::definition::tests::definition;

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
        assert_eq!((&*migrated.storage_version, &*migrated.stored_versions), ("v1", &["v1".to_owned()][..]));
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

    #[tokio::test(start_paused = true)]
    async fn a_refused_object_is_named_and_one_that_goes_meanwhile_is_not() {
        let definition = Definition::new(two_versions()).unwrap();
        let object =
            json!({"metadata": {"namespace": "shop", "name": "a", "uid": "u", "resourceVersion": "1"}});
        let mut migrated = Migrated::default();
        for (code, expected) in [(422, (0, 1, 0)), (404, (0, 1, 0)), (200, (1, 1, 0)), (403, (1, 1, 1))] {
            let (cluster, _) = answering(move |method, _, body| match (method, code) {
                (&Method::PATCH, 200) => (http::StatusCode::OK, body.clone()),
                (&Method::PATCH, code) => status(code, "Refused", "no"),
                _ => status(404, "NotFound", "not found"),
            });
            let options = Migration::default();
            let pass = Pass { cluster: &cluster, definition: &definition, options: &options, dry_run: false };
            migrated.add(ObjectName::of(&object), pass.migrate(&[], object.clone()).await);
            let counts = (migrated.objects, migrated.refused.len(), migrated.failed.len());
            assert_eq!(counts, expected, "{migrated:?}");
        }
        assert!(migrated.left.is_empty() && !migrated.is_complete());
        assert_eq!(migrated.refused[0].causes[0].message, "no");
    }
}
