//! A definition under a group of its own, in which live objects are tried. It is removed at the end of a check.
//!
//! A killed check leaves it behind. So a check says on it until when it is in use, and the next check removes what is not.

use std::time::Duration;

use anyhow::{Context, Error, Result, bail, ensure};
use catena_api::keys;
use catena_cluster::{Change, Cluster, How, Kind};
use catena_terminal::until;
use jiff::{SignedDuration, Timestamp};
use kube::api::ListParams;
use operator_templates::Digest;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{Definition, definition};

/// Begins the name of each group: kinds of groups that come first in the alphabet keep their short names.
const GROUP_PREFIX: &str = "zz-upgrade-check";
/// Time for which a check claims its definition.
const CLAIM: SignedDuration = SignedDuration::from_secs(120);
/// Time between extensions of the claim.
const CLAIM_INTERVAL: Duration = Duration::from_secs(30);
/// The server takes a moment to serve a new kind.
const SERVED_TIMEOUT: Duration = Duration::from_secs(30);
const SERVED_INTERVAL: Duration = Duration::from_millis(100);
/// Time for which a definition of the same name may still be there, while it is being removed.
const LEAVING_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for the removal: a signal does not end it.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(10);
/// Time in which the server may still come to a creation without an answer.
const UNANSWERED_TIMEOUT: Duration = Duration::from_secs(3);
const UNANSWERED_INTERVAL: Duration = Duration::from_millis(200);

/// A part of the group's name that is known in advance, so that rights to the group can be granted.
///
/// # Errors
/// When it cannot be a part of one.
pub fn scratch_id(id: &str) -> Result<String> {
    let is_label = (1..=40).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    ensure!(is_label, "it must consist of 1 to 40 lower-case letters and digits");
    Ok(id.to_owned())
}

/// Whether a scratch definition is there.
enum Creation {
    /// It may be there: the server was not asked yet, or has not answered.
    Unanswered,
    /// It is, with this uid.
    Done(String),
    Refused,
}

/// A scratch definition. Its name is its own, and is known before it is created, so that it can be removed at any time.
pub struct Scratch<'c> {
    pub cluster: &'c Cluster,
    /// The definition whose schemas it has.
    pub model: &'c Definition,
    pub definition: Definition,
    creation: Creation,
}

/// A scratch definition of another check.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Leftover {
    /// Its name.
    pub name: String,
    /// Whether it was removed. Otherwise a running check may use it.
    pub removed: bool,
    /// The time until which a check claims it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub in_use_until: String,
    /// Why it was not removed, although no check claims it any more.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub denied: String,
}

impl<'c> Scratch<'c> {
    /// The scratch definition of a definition, which is not created yet.
    pub fn planned(cluster: &'c Cluster, model: &'c Definition, id: Option<&str>) -> Self {
        let now = Timestamp::now();
        let its_own = || Digest::short(&[&now.as_nanosecond().to_string(), &std::process::id().to_string()]);
        let group = format!("{GROUP_PREFIX}-{}.{}", id.map_or_else(its_own, str::to_owned), keys::GROUP);
        let definition = model.scratch(&group, &(now + CLAIM).to_string());
        Self { cluster, model, definition, creation: Creation::Unanswered }
    }

    /// Creates it. It must be [removed](Self::remove), also if this does not come to its end.
    pub async fn create(&mut self) -> Result<()> {
        let created = until(SERVED_INTERVAL, LEAVING_TIMEOUT, async || {
            self.creation = Creation::Unanswered;
            let created = self.write(Change::Create(self.definition.document())).await;
            self.creation = match &created {
                Ok(created) => {
                    Creation::Done(created["metadata"]["uid"].as_str().unwrap_or_default().to_owned())
                }
                Err(kube::Error::Api(status)) if (400..500).contains(&status.code) => Creation::Refused,
                Err(_) => Creation::Unanswered,
            };
            match created {
                Ok(_) => Ok(true),
                // One of the same id that is being removed takes a moment to go.
                Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(false),
                Err(error) => Err(definition::refused(self.cluster, self.definition.name(), "create", error)),
            }
        });
        ensure!(
            created.await?,
            "another check uses {}, or one was killed less than two minutes ago: try again later",
            self.definition.name()
        );
        Ok(())
    }

    async fn write(&self, change: Change<'_>) -> kube::Result<Value> {
        let kind = Kind::definitions();
        self.cluster.at(&kind, None, self.definition.name()).write(change, How::default()).await
    }

    /// Waits until its objects can be tried.
    pub async fn until_served(&self, version: &str) -> Result<()> {
        let (kind, name) = (self.definition.kind(version), self.definition.name());
        let served = until(SERVED_INTERVAL, SERVED_TIMEOUT, async || {
            match self.cluster.first(1, &kind, None, ListParams::default().limit(1)).await {
                Ok(_) => Ok(true),
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 503) => Ok(false),
                Err(error) => Err(error).context("the scratch definition cannot be used"),
            }
        });
        if !served.await? {
            let found = self.cluster.at(&Kind::definitions(), None, name).read::<Value>().await;
            let why = match found {
                Ok(found) => found.unwrap_or_default()["status"]["conditions"].to_string(),
                Err(error) => error.to_string(),
            };
            let seconds = SERVED_TIMEOUT.as_secs();
            bail!("the server does not serve the scratch definition {name} after {seconds} s: {why}");
        }
        Ok(())
    }

    /// Extends the claim while `work` runs.
    pub async fn while_claimed<T>(&self, work: impl Future<Output = T>) -> T {
        let extend = async {
            loop {
                sleep(CLAIM_INTERVAL).await;
                let until = (Timestamp::now() + CLAIM).to_string();
                let patch = json!({"metadata": {"annotations": {keys::SCRATCH_UNTIL: until}}});
                // If it fails, it is tried again before the claim ends.
                self.write(Change::Merge(&patch)).await.ok();
            }
        };
        tokio::select! {
            done = work => done,
            never = extend => never,
        }
    }

    /// Deletes it by the claim that it was planned with, because another check may use one of the same id.
    async fn delete_unanswered(&self) -> kube::Result<bool> {
        let name = self.definition.name();
        let claim = |of: &Value| of["metadata"]["annotations"][keys::SCRATCH_UNTIL].clone();
        let found = self.cluster.at(&Kind::definitions(), None, name).read::<Value>().await?;
        match found.filter(|found| claim(found) == claim(self.definition.document())) {
            Some(found) => delete(self.cluster, name, found["metadata"]["uid"].as_str()).await,
            None => Ok(false),
        }
    }

    /// Removes it, if it is there.
    pub async fn remove(self) -> Result<()> {
        let (cluster, name) = (self.cluster, self.definition.name());
        let removed = match &self.creation {
            Creation::Refused => return Ok(()),
            Creation::Done(uid) => {
                let deleted = timeout(REMOVAL_TIMEOUT, delete(cluster, name, Some(uid))).await;
                deleted.map_err(Error::from).and_then(|deleted| Ok(deleted?))
            }
            Creation::Unanswered => {
                let deleted = async || Ok(self.delete_unanswered().await?);
                until(UNANSWERED_INTERVAL, UNANSWERED_TIMEOUT, deleted).await
            }
        };
        removed.map(drop).with_context(|| {
            format!("the scratch definition {name} is left: delete it with `kubectl delete customresourcedefinition {name}`")
        })
    }
}

/// Removes the scratch definitions that no check claims any more, and names the others.
///
/// # Errors
/// When they cannot be listed, or one cannot be deleted for another reason than a missing right.
pub async fn remove_leftovers(cluster: &Cluster) -> Result<Vec<Leftover>> {
    let kind = Kind::definitions();
    let labelled = ListParams::default().labels(&format!("{}=true", keys::SCRATCH));
    let listed = cluster.metadata(&kind, None, labelled).await;
    let mut leftovers = Vec::new();
    for metadata in listed.map_err(|error| cluster.refused(&kind, "", "list", error))? {
        let name = metadata.name.unwrap_or_default();
        // The label alone proves nothing: somebody may have put it on a definition with objects.
        // One that is being deleted is neither in use nor left over.
        if !name.contains(&format!(".{GROUP_PREFIX}-")) || metadata.deletion_timestamp.is_some() {
            continue;
        }
        let until =
            metadata.annotations.and_then(|mut all| all.remove(keys::SCRATCH_UNTIL)).unwrap_or_default();
        let mut leftover = Leftover { name, ..Leftover::default() };
        if until.parse::<Timestamp>().is_ok_and(|until| until < Timestamp::now()) {
            match delete(cluster, &leftover.name, metadata.uid.as_deref()).await {
                Ok(_) => leftover.removed = true,
                // The Job of a chart may only delete its own.
                Err(kube::Error::Api(status)) if status.is_forbidden() => {
                    leftover.denied.clone_from(&status.message);
                }
                Err(error) => return Err(definition::refused(cluster, &leftover.name, "delete", error)),
            }
        } else {
            leftover.in_use_until = until;
        }
        leftovers.push(leftover);
    }
    Ok(leftovers)
}

/// Deletes a definition; `false` if it is not there.
async fn delete(cluster: &Cluster, name: &str, uid: Option<&str>) -> kube::Result<bool> {
    match cluster.at(&Kind::definitions(), None, name).delete(uid).await {
        Err(kube::Error::Api(status)) if status.is_conflict() => Ok(false),
        deleted => deleted,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use catena_cluster::testing::cluster;
    use http::{Method, Request, Response, StatusCode};
    use kube::{Client, client::Body};
    use tower::service_fn;

    use super::*;
    use crate::{check, definition::tests::definition};

    /// The requests of a check that is interrupted while it creates its definition, and then removes it. The server comes to the
    /// creation only after the first look, or somebody else has made one of that name.
    async fn interrupted(is_of_others: bool) -> Vec<String> {
        let (requests, created) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Value::Null)));
        let log = requests.clone();
        let service = service_fn(move |request: Request<Body>| {
            let (log, created) = (log.clone(), created.clone());
            async move {
                let (method, path) = (request.method().clone(), request.uri().path().to_owned());
                let body = request.into_body().collect_bytes().await?;
                let line = format!("{method} {path}");
                let is_first = !log.lock().unwrap().contains(&line);
                log.lock().unwrap().push(line);
                let missing =
                    json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404});
                let (status, answer) = match method {
                    Method::POST => {
                        let mut sent: Value = serde_json::from_slice(&body).unwrap();
                        sent["metadata"]["uid"] = "u".into();
                        if is_of_others {
                            sent["metadata"]["annotations"][keys::SCRATCH_UNTIL] =
                                "2999-01-01T00:00:00Z".into();
                        }
                        *created.lock().unwrap() = sent;
                        futures::future::pending().await
                    }
                    Method::GET if path.contains("zz-upgrade-check") && is_first => {
                        (StatusCode::NOT_FOUND, missing)
                    }
                    Method::GET if path.contains("zz-upgrade-check") => {
                        (StatusCode::OK, created.lock().unwrap().clone())
                    }
                    Method::DELETE => (StatusCode::OK, json!({"kind": "Status", "status": "Success"})),
                    _ => (StatusCode::OK, definition(&json!({}))),
                };
                let body = Body::from(answer.to_string().into_bytes());
                Ok::<_, kube::Error>(Response::builder().status(status).body(body).unwrap())
            }
        });
        let cluster = Cluster { client: Client::new(service, "shop"), ..cluster().0 };
        let new = Definition::new(definition(&json!({}))).unwrap();
        let mut scratch = None;
        let checked = check(&cluster, &new, Some("ci"), &mut scratch);
        timeout(Duration::from_secs(1), checked).await.unwrap_err();
        scratch.unwrap().remove().await.unwrap();
        let requests = requests.lock().unwrap();
        requests.iter().filter(|line| line.starts_with("DELETE")).cloned().collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_that_is_interrupted_while_it_creates_its_definition_removes_it() {
        let deleted = interrupted(false).await;
        let name = "/customresourcedefinitions/things.zz-upgrade-check-ci.catena.dev";
        assert!(deleted.len() == 1 && deleted[0].ends_with(name), "{deleted:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_that_is_interrupted_leaves_the_definition_of_another_check_of_its_id() {
        assert!(interrupted(true).await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_definition_that_a_silent_server_does_not_remove_is_named() {
        let service =
            service_fn(|_: Request<Body>| futures::future::pending::<kube::Result<Response<Body>>>());
        let cluster = Cluster { client: Client::new(service, "shop"), ..cluster().0 };
        let model = Definition::new(definition(&json!({}))).unwrap();
        let mut scratch = Scratch::planned(&cluster, &model, Some("ci"));
        scratch.creation = Creation::Done("u".into());
        let told = timeout(Duration::from_secs(60), scratch.remove()).await.unwrap().unwrap_err();
        assert!(told.to_string().contains("things.zz-upgrade-check-ci.catena.dev is left"), "{told}");
    }

    #[tokio::test]
    async fn a_scratch_definition_that_is_being_deleted_is_not_left_over() {
        let scratch = |name: &str, deleted: Option<&str>| {
            let name = format!("{name}.zz-upgrade-check-1.catena.dev");
            let annotations = json!({keys::SCRATCH_UNTIL: "2999-01-01T00:00:00Z"});
            json!({"metadata": {"name": name, "annotations": annotations, "deletionTimestamp": deleted}})
        };
        let list = json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": {},
            "items": [scratch("going", Some("2026-01-01T00:00:00Z")), scratch("used", None)],
        });
        let service = service_fn(move |_: Request<Body>| {
            let answer = Response::new(Body::from(list.to_string().into_bytes()));
            async move { Ok::<_, std::convert::Infallible>(answer) }
        });
        let cluster = Cluster { client: Client::new(service, "shop"), ..cluster().0 };
        let leftovers = remove_leftovers(&cluster).await.unwrap();
        let names: Vec<&str> = leftovers.iter().map(|leftover| &*leftover.name).collect();
        assert_eq!(names, ["used.zz-upgrade-check-1.catena.dev"]);
    }
}
