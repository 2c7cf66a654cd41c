//! The only way to write: creates that may be repeated, patches and deletes that carry a uid, and each write
//! remembered until the caches show it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::http;
use kube::{
    Client, Resource,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
    core::{Request, response::Status},
    discovery::ApiResource,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::{sync::Semaphore, time::Instant};

use crate::{
    Category, Reported, Trimmed,
    consistency::{Consistency, Seen},
    metrics::Metrics,
    yaml,
};

/// Writes under way at once; the API server's own limit for one client class is of this order.
const SIDE_BY_SIDE: usize = 48;
/// Times that a write is sent again after the server said that it has too much to do (and did nothing).
const BUSY_TRIES: u32 = 4;

/// A write that did not happen, as far as is known.
#[derive(Debug, Error)]
pub enum WriteError {
    /// An object of the name is there.
    #[error("{kind} {name:?} already exists")]
    AlreadyExists {
        /// The object's kind.
        kind: String,
        /// The object's name.
        name: String,
    },
    /// The object is gone.
    #[error("{kind} {name:?} is gone")]
    Gone {
        /// The object's kind.
        kind: String,
        /// The object's name.
        name: String,
    },
    /// The object is another one by now, or changed meanwhile.
    #[error("{kind} {name:?} is not the one that was seen any more: {message}")]
    Changed {
        /// The object's kind.
        kind: String,
        /// The object's name.
        name: String,
        /// The server's words.
        message: String,
    },
    /// The namespace is being deleted and takes nothing new.
    #[error("the namespace is terminating and takes no new {kind}")]
    NamespaceTerminating {
        /// The object's kind.
        kind: String,
    },
    /// A quota is used up.
    #[error("a quota refuses {kind} {name:?}: {message}; raise the ResourceQuota or ask for less")]
    QuotaExceeded {
        /// The object's kind.
        kind: String,
        /// The object's name.
        name: String,
        /// The server's words.
        message: String,
    },
    /// The server's check of owner references does not know a kind yet whose CRD is new: it learns every 30 s.
    #[error(
        "the API server has not learned yet of the kind that owns {kind} {name:?}; it does so within 30 s"
    )]
    OwnerKindUnknown {
        /// The object's kind.
        kind: String,
        /// The object's name.
        name: String,
    },
    /// The server does not allow it.
    #[error(
        "{kind} {name:?} is refused: {message}; if a permission is missing, grant it to the controller's ServiceAccount"
    )]
    Forbidden {
        /// The object's kind.
        kind: String,
        /// The object's name.
        name: String,
        /// The server's words.
        message: String,
    },
    /// The server does not accept the object.
    #[error(
        "{kind} {name:?} is not accepted: {message}; if it comes from a template, correct that or spec.parameters"
    )]
    Invalid {
        /// The object's kind.
        kind: String,
        /// The object's name.
        name: String,
        /// The server's words.
        message: String,
    },
    /// The server has too much to do.
    #[error("the API server is busy: {message}")]
    Busy {
        /// The server's words.
        message: String,
        /// When it asked to be tried again.
        retry_after: Duration,
    },
    /// Anything else, such as a broken connection: it may have happened.
    #[error("writing {kind} {name:?} failed: {source}")]
    Unknown {
        /// The object's kind.
        kind: String,
        /// The object's name.
        name: String,
        /// Why.
        source: Box<kube::Error>,
    },
}

impl WriteError {
    /// That an object is gone.
    #[must_use]
    pub fn gone(kind: &str, name: &str) -> Self {
        Self::Gone { kind: kind.to_owned(), name: name.to_owned() }
    }

    fn of(error: kube::Error, kind: &str, name: &str) -> Self {
        let (kind, name) = (kind.to_owned(), name.to_owned());
        let kube::Error::Api(status) = error else {
            return Self::Unknown { kind, name, source: Box::new(error) };
        };
        let message = status.message.clone();
        match status.code {
            409 if status.reason == "AlreadyExists" => Self::AlreadyExists { kind, name },
            409 => Self::Changed { kind, name, message },
            404 => Self::Gone { kind, name },
            403 if has_cause(&status, "NamespaceTerminating") => Self::NamespaceTerminating { kind },
            403 if message.contains("cannot find RESTMapping") => Self::OwnerKindUnknown { kind, name },
            403 if message.contains("exceeded quota") => Self::QuotaExceeded { kind, name, message },
            403 => Self::Forbidden { kind, name, message },
            400 | 422 => Self::Invalid { kind, name, message },
            429 => Self::Busy { message, retry_after: retry_after(&status) },
            _ => Self::Unknown { kind, name, source: Box::new(kube::Error::Api(status)) },
        }
    }

    fn code(&self) -> u16 {
        match self {
            Self::AlreadyExists { .. } | Self::Changed { .. } => 409,
            Self::Gone { .. } => 404,
            Self::NamespaceTerminating { .. }
            | Self::QuotaExceeded { .. }
            | Self::OwnerKindUnknown { .. }
            | Self::Forbidden { .. } => 403,
            Self::Invalid { .. } => 422,
            Self::Busy { .. } => 429,
            Self::Unknown { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => status.code,
                _ => 0,
            },
        }
    }
}

impl Reported for WriteError {
    fn category(&self) -> Category {
        match self {
            Self::Invalid { .. } => Category::WaitsForChange,
            _ => Category::Transient,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::AlreadyExists { .. } => "AlreadyExists",
            Self::Gone { .. } => "NotFound",
            Self::Changed { .. } => "Conflict",
            Self::NamespaceTerminating { .. } => "NamespaceTerminating",
            Self::QuotaExceeded { .. } => "QuotaExceeded",
            Self::OwnerKindUnknown { .. } => "OwnerKindUnknown",
            Self::Forbidden { .. } => "Forbidden",
            Self::Invalid { .. } => "Invalid",
            Self::Busy { .. } => "ServerBusy",
            Self::Unknown { .. } => "WriteFailed",
        }
    }

    fn is_expected(&self) -> bool {
        matches!(self, Self::Changed { .. } | Self::Gone { .. } | Self::NamespaceTerminating { .. })
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after, .. } => Some(*retry_after),
            // What was seen is stale; the event that shows the truth is on its way.
            Self::Changed { .. } | Self::Gone { .. } => Some(Duration::from_secs(1)),
            Self::OwnerKindUnknown { .. } => Some(Duration::from_secs(3)),
            _ => None,
        }
    }
}

fn has_cause(status: &Status, reason: &str) -> bool {
    status.details.iter().flat_map(|details| &details.causes).any(|cause| cause.reason == reason)
}

fn retry_after(status: &Status) -> Duration {
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    Duration::from_secs(u64::from(seconds.max(1)))
}

/// What a server answers to a write.
pub type Written<T> = Result<T, WriteError>;

/// Writes as one field manager.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    manager: &'static str,
    primary: Seen,
    shared: Arc<Shared>,
}

struct Shared {
    consistency: Consistency,
    metrics: Arc<Metrics>,
    permits: Semaphore,
    statuses: Mutex<HashMap<String, Instant>>,
}

impl Writer {
    pub(crate) fn new(client: Client, manager: &'static str, metrics: Arc<Metrics>) -> Self {
        let shared = Shared {
            consistency: Consistency::default(),
            metrics,
            permits: Semaphore::new(SIDE_BY_SIDE),
            statuses: Mutex::default(),
        };
        Self { client, manager, primary: Seen::default(), shared: Arc::new(shared) }
    }

    /// Creates an object on behalf of the object with the uid `whose`; `seen` will show it.
    ///
    /// # Errors
    /// [`WriteError::AlreadyExists`] also after an earlier try of which the answer was lost: look whose it is.
    pub async fn create(
        &self,
        whose: &str,
        seen: &Seen,
        resource: &ApiResource,
        object: &Value,
    ) -> Written<()> {
        let (namespace, name) = place(object);
        let body = serde_json::to_vec(object).unwrap_or_default();
        let params = PostParams { field_manager: Some(self.manager.into()), ..PostParams::default() };
        let build = || request(resource, namespace).create(&params, body.clone());
        let answer: Trimmed = self.send("create", &resource.kind, name, build).await?;
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
        seen: &Seen,
        resource: &ApiResource,
        object: &Value,
    ) -> Written<Value> {
        let (namespace, name) = place(object);
        let force = object.pointer("/metadata/uid").is_some();
        let params = PatchParams { force, ..PatchParams::apply(self.manager) };
        let build = || request(resource, namespace).patch(name, &params, &Patch::Apply(object)).map(as_yaml);
        let answer: Value = self.send("apply", &resource.kind, name, build).await?;
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
        seen: &Seen,
        resource: &ApiResource,
        patch: &Value,
    ) -> Written<()> {
        let (namespace, name) = place(patch);
        let params = PatchParams { field_manager: Some(self.manager.into()), ..PatchParams::default() };
        let build = || request(resource, namespace).patch(name, &params, &Patch::Merge(patch));
        let answer: Trimmed = self.send("merge", &resource.kind, name, build).await?;
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
        seen: &Seen,
        resource: &ApiResource,
        namespace: &str,
        name: &str,
        uid: &str,
    ) -> Written<()> {
        let preconditions = Preconditions { uid: Some(uid.into()), resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match self
            .send::<Value>("delete", &resource.kind, name, || {
                request(resource, namespace).delete(name, &params)
            })
            .await
        {
            Ok(answer) => {
                self.remember(whose, seen, version(&answer));
                Ok(())
            }
            Err(WriteError::Gone { .. } | WriteError::Changed { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Applies the status of the object that is being reconciled.
    ///
    /// # Errors
    /// [`WriteError::Changed`] when the object was replaced by another one of its name.
    pub async fn apply_status<K, S>(&self, object: &K, status: &S) -> Written<()>
    where
        K: Resource<DynamicType = ()>,
        S: Serialize + Sync,
    {
        let meta = object.meta();
        let (name, uid) = (meta.name.as_deref().unwrap_or_default(), meta.uid.as_deref().unwrap_or_default());
        let resource = ApiResource::erase::<K>(&());
        let patch = json!({
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": name, "uid": uid},
            "status": status,
        });
        let namespace = meta.namespace.as_deref().unwrap_or_default();
        let params = PatchParams::apply(self.manager).force();
        let build = || {
            request(&resource, namespace)
                .patch_subresource("status", name, &params, &Patch::Apply(&patch))
                .map(as_yaml)
        };
        let answer: Trimmed = self.send("apply_status", &resource.kind, name, build).await?;
        self.shared.consistency.wrote(uid, &self.primary, answer.metadata.resource_version.as_deref());
        self.statuses().insert(uid.to_owned(), Instant::now());
        Ok(())
    }

    /// How long ago this process wrote the status of the object; `None` if it did not.
    #[must_use]
    pub fn status_age(&self, uid: &str) -> Option<Duration> {
        self.statuses().get(uid).map(Instant::elapsed)
    }

    /// What the primary watch has delivered.
    pub(crate) fn primary(&self) -> &Seen {
        &self.primary
    }

    /// Whether the caches show every write that was made for the object.
    pub(crate) fn is_current(&self, uid: &str) -> bool {
        self.shared.consistency.is_current(uid)
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.shared.consistency.forget(uid);
        self.statuses().remove(uid);
    }

    fn statuses(&self) -> std::sync::MutexGuard<'_, HashMap<String, Instant>> {
        self.shared.statuses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, whose: &str, seen: &Seen, resource_version: Option<&str>) {
        self.shared.consistency.wrote(whose, seen, resource_version);
    }

    async fn send<T: DeserializeOwned>(
        &self,
        verb: &'static str,
        kind: &str,
        name: &str,
        build: impl Fn() -> Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Written<T> {
        let mut tries = 0;
        loop {
            let request =
                build().map_err(|error| WriteError::of(kube::Error::BuildRequest(error), kind, name))?;
            let permit = self.shared.permits.acquire().await;
            let result =
                self.client.request::<T>(request).await.map_err(|error| WriteError::of(error, kind, name));
            drop(permit);
            let error = match result {
                Ok(answer) => {
                    self.shared.metrics.wrote(verb, 200);
                    return Ok(answer);
                }
                Err(error) => error,
            };
            self.shared.metrics.wrote(verb, error.code());
            match error {
                WriteError::Busy { retry_after, .. } if tries < BUSY_TRIES => {
                    tries += 1;
                    // Jitter, so that what was refused together does not come back together.
                    tokio::time::sleep(retry_after.mul_f64(0.5 + rand::random::<f64>())).await;
                }
                error => return Err(error),
            }
        }
    }
}

fn request(resource: &ApiResource, namespace: &str) -> Request {
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    Request::new(kube::api::DynamicObject::url_path(resource, namespace))
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
