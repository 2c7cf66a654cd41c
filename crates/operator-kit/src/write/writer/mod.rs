//! The only way to write: creates that may be repeated, patches and deletes that carry a uid, and each write
//! remembered until the caches show it.

mod busy;
mod excess;
mod room;
mod status;

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};

use axum::http::{self, HeaderValue, header::ACCEPT};
use json_patch::PatchOperation;
use kube::{
    Client, Resource,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions},
    core::Request,
    discovery::ApiResource,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::{sync::Semaphore, time::Instant};

use busy::Busy;
use room::Room;

use crate::{
    render::yaml,
    report::{StatusAge, metrics::Metrics},
    watch::{
        Bounded, Source, Trimmed, Watched,
        consistency::{Consistency, Watermark},
    },
    write::{
        WriteError,
        repeated_writes::{Repeated, RepeatedWrites, content},
    },
};

/// Writes under way at once; the API server's own limit for one client class is of this order.
const SIDE_BY_SIDE: usize = 48;

/// The metadata of an object alone; a server that does not know it answers with all of it.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// What a server answers to a write.
pub type Written<T> = Result<T, WriteError>;

/// Writes as one field manager.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    manager: &'static str,
    primary: Watermark,
    shared: Arc<Shared>,
}

struct Shared {
    consistency: Consistency,
    repeated: RepeatedWrites,
    metrics: Arc<Metrics>,
    permits: Semaphore,
    room: Room,
    statuses: Mutex<HashMap<String, Status>>,
}

/// What is remembered of an object's status.
enum Status {
    /// This process wrote it then.
    Written(Instant),
    /// It was not written yet; the object was first asked about then.
    Unwritten(Instant),
}

impl Writer {
    /// A writer without an [`Operator`](crate::run::Operator), such as one over a mocked client in a test.
    #[must_use]
    pub fn over(client: Client, manager: &'static str) -> Self {
        Self::new(client, manager, Arc::default())
    }

    pub(crate) fn new(client: Client, manager: &'static str, metrics: Arc<Metrics>) -> Self {
        let shared = Shared {
            consistency: Consistency::default(),
            repeated: RepeatedWrites::default(),
            metrics,
            permits: Semaphore::new(SIDE_BY_SIDE),
            room: Room::default(),
            statuses: Mutex::default(),
        };
        Self { client, manager, primary: Watermark::default(), shared: Arc::new(shared) }
    }

    /// Creates an object on behalf of the object with the uid `whose`; `seen` will show it.
    ///
    /// # Errors
    /// [`WriteError::AlreadyExists`] also after an earlier try of which the answer was lost: look whose it is.
    pub async fn create(
        &self,
        whose: &str,
        seen: &Watermark,
        resource: &ApiResource,
        object: &Value,
    ) -> Written<()> {
        let body = serde_json::to_vec(object).unwrap_or_default();
        let mut busy = Busy::default();
        loop {
            match self.create_once(whose, seen, resource, place(object), &body).await {
                Err(error) if busy.passes(&error).await => {}
                ended => return ended,
            }
        }
    }

    async fn create_once(
        &self,
        whose: &str,
        seen: &Watermark,
        resource: &ApiResource,
        (namespace, name): (&str, &str),
        body: &[u8],
    ) -> Written<()> {
        let params = PostParams { field_manager: Some(self.manager.into()), ..PostParams::default() };
        let build = || request(resource, namespace).create(&params, body.to_vec()).map(answered_by_metadata);
        let answer: Trimmed = self.send_once(whose, "create", &resource.kind, name, build).await?;
        self.remember(whose, seen, answer.metadata.resource_version.as_deref());
        Ok(())
    }

    /// Applies an object (server-side apply), and gives what the server made of it.
    ///
    /// With a `metadata.uid` it takes fields over from other managers, and only of that very object. Without
    /// one it is meant to create: of an object that somebody else made meanwhile it takes no field over (but adds
    /// those that are not there), so look for one before.
    ///
    /// # Errors
    /// [`WriteError::Changed`] when the name is another object's.
    pub async fn apply(
        &self,
        whose: &str,
        seen: &Watermark,
        resource: &ApiResource,
        object: &Value,
    ) -> Written<Value> {
        let (namespace, name) = place(object);
        let force = object.pointer("/metadata/uid").is_some();
        let params = PatchParams { force, ..PatchParams::apply(self.manager) };
        let build = || request(resource, namespace).patch(name, &params, &Patch::Apply(object)).map(as_yaml);
        let Bounded { value: answer, .. } = self.send(whose, "apply", &resource.kind, name, build).await?;
        self.remember(whose, seen, version(&answer));
        Ok(answer)
    }

    /// Merges a patch that names the uid of what is patched: for single fields, where an apply would have to
    /// repeat all others.
    ///
    /// # Errors
    /// [`WriteError::Changed`] when the object is another one by now.
    pub async fn merge(
        &self,
        whose: &str,
        seen: &Watermark,
        resource: &ApiResource,
        patch: &Value,
    ) -> Written<()> {
        let (namespace, name) = place(patch);
        let params = PatchParams { field_manager: Some(self.manager.into()), ..PatchParams::default() };
        let build = || request(resource, namespace).patch(name, &params, &Patch::Merge(patch));
        let answer: Trimmed = self.send(whose, "merge", &resource.kind, name, build).await?;
        self.remember(whose, seen, answer.metadata.resource_version.as_deref());
        Ok(())
    }

    /// Changes an object by a JSON patch, for lists of which only one item is ours. The patch tests what it
    /// relies on; at the least the uid.
    ///
    /// # Errors
    /// [`WriteError::Changed`] when one of its tests does not hold any more.
    pub async fn amend(
        &self,
        whose: &str,
        seen: &Watermark,
        resource: &ApiResource,
        place: (&str, &str),
        patch: &[PatchOperation],
    ) -> Written<()> {
        let (namespace, name) = place;
        let params = PatchParams { field_manager: Some(self.manager.into()), ..PatchParams::default() };
        let patch: Patch<()> = Patch::Json(json_patch::Patch(patch.to_vec()));
        let build = || request(resource, namespace).patch(name, &params, &patch);
        let answer: Trimmed = self
            .send(whose, "amend", &resource.kind, name, build)
            .await
            .map_err(WriteError::of_failed_test)?;
        self.remember(whose, seen, answer.metadata.resource_version.as_deref());
        Ok(())
    }

    /// Deletes an object, if it still is the one with this uid. That it is gone already is a success.
    ///
    /// # Errors
    /// [`WriteError::Forbidden`] and the like.
    pub async fn delete(
        &self,
        whose: &str,
        seen: &Watermark,
        resource: &ApiResource,
        namespace: &str,
        name: &str,
        uid: &str,
    ) -> Written<()> {
        let preconditions = Preconditions { uid: Some(uid.into()), resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match self.send_delete(whose, seen, resource, (namespace, name), &params).await {
            Err(WriteError::Gone { .. } | WriteError::Changed { .. }) => Ok(()),
            ended => ended,
        }
    }

    /// Deletes an object that is still exactly as its watch showed it; what it owns follows in the background.
    /// That it is gone already is a success.
    ///
    /// # Errors
    /// [`WriteError::Changed`] when it changed meanwhile, or was replaced by another one of its name.
    pub async fn delete_as_seen<R>(&self, object: &Watched<R>) -> Written<()> {
        let ObjectMeta { namespace, name, uid, resource_version, .. } = &object.metadata;
        let place = (namespace.as_deref().unwrap_or_default(), name.as_deref().unwrap_or_default());
        let preconditions = Preconditions { uid: uid.clone(), resource_version: resource_version.clone() };
        // Said aloud, because some kinds, such as Job, orphan what they own unless told otherwise.
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        let whose = uid.as_deref().unwrap_or_default();
        let Source { resource, seen, .. } = &*object.source;
        match self.send_delete(whose, seen, resource, place, &params).await {
            Err(WriteError::Gone { .. }) => Ok(()),
            ended => ended,
        }
    }

    async fn send_delete(
        &self,
        whose: &str,
        seen: &Watermark,
        resource: &ApiResource,
        (namespace, name): (&str, &str),
        params: &DeleteParams,
    ) -> Written<()> {
        let build = || request(resource, namespace).delete(name, params);
        let answer: Trimmed = self.send(whose, "delete", &resource.kind, name, build).await?;
        self.remember(whose, seen, answer.metadata.resource_version.as_deref());
        Ok(())
    }

    /// How long the status of the object has been as it is.
    #[must_use]
    pub fn status_age(&self, uid: &str) -> StatusAge {
        let mut statuses = self.statuses();
        match statuses.get(uid) {
            Some(Status::Written(then)) => StatusAge::Written(then.elapsed()),
            Some(Status::Unwritten(then)) => StatusAge::Unwritten(then.elapsed()),
            None => {
                statuses.insert(uid.to_owned(), Status::Unwritten(Instant::now()));
                StatusAge::Unwritten(Duration::ZERO)
            }
        }
    }

    /// What the primary watch has delivered.
    pub(crate) fn primary(&self) -> &Watermark {
        &self.primary
    }

    /// Whether the caches show every write that was made for the object.
    pub(crate) fn is_current(&self, uid: &str) -> bool {
        self.shared.consistency.is_current(uid)
    }

    /// What was written too often on behalf of an object since this was last asked.
    pub(crate) fn repeated(&self, uid: &str) -> Option<Repeated> {
        self.shared.repeated.take(uid)
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.shared.consistency.forget(uid);
        self.shared.repeated.take(uid);
        self.statuses().remove(uid);
    }

    fn statuses(&self) -> MutexGuard<'_, HashMap<String, Status>> {
        self.shared.statuses.lock()
    }

    fn remember(&self, whose: &str, seen: &Watermark, resource_version: Option<&str>) {
        self.shared.consistency.wrote(whose, seen, resource_version);
    }

    async fn send<T: DeserializeOwned>(
        &self,
        whose: &str,
        verb: &'static str,
        kind: &str,
        name: &str,
        build: impl Fn() -> Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Written<T> {
        let mut busy = Busy::default();
        loop {
            match self.send_once(whose, verb, kind, name, &build).await {
                Err(error) if busy.passes(&error).await => {}
                ended => return ended,
            }
        }
    }

    async fn send_once<T: DeserializeOwned>(
        &self,
        whose: &str,
        verb: &'static str,
        kind: &str,
        name: &str,
        build: impl Fn() -> Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Written<T> {
        let request =
            build().map_err(|error| WriteError::of(kube::Error::BuildRequest(error), kind, name))?;
        let content = content(&request);
        let permit = self.shared.permits.acquire().await;
        let result =
            self.client.request::<T>(request).await.map_err(|error| WriteError::of(error, kind, name));
        drop(permit);
        // What is refused has its backoff; that something is there already is no failure to many.
        if matches!(result, Ok(_) | Err(WriteError::AlreadyExists { .. })) {
            let write = || Repeated { verb, kind: kind.to_owned(), name: name.to_owned() };
            self.shared.repeated.record(whose, content, write);
        }
        match &result {
            Ok(_) => {
                self.shared.metrics.wrote(verb, 200);
                tracing::debug!(verb, kind, name, "wrote");
            }
            Err(error) => self.shared.metrics.wrote(verb, error.code()),
        }
        result
    }
}

fn request(resource: &ApiResource, namespace: &str) -> Request {
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    Request::new(kube::api::DynamicObject::url_path(resource, namespace))
}

/// Asks for no more of the object in the answer than its metadata: the rest is what was sent.
fn answered_by_metadata(mut request: http::Request<Vec<u8>>) -> http::Request<Vec<u8>> {
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static(METADATA));
    request
}

/// The API server reads the body of an apply as YAML.
fn as_yaml(request: http::Request<Vec<u8>>) -> http::Request<Vec<u8>> {
    request.map(|body| match String::from_utf8(body) {
        Ok(json) => yaml::escape(&json).into_bytes(),
        Err(error) => error.into_bytes(),
    })
}

fn version(answer: &Value) -> Option<&str> {
    answer.pointer("/metadata/resourceVersion").and_then(Value::as_str)
}

fn place(object: &Value) -> (&str, &str) {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    (text("/metadata/namespace"), text("/metadata/name"))
}
