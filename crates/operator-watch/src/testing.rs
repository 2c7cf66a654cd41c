//! A mocked API server for tests: it gives the answers of a test, and records the requests. For tests that give this crate
//! any text: what it makes of it.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use http::{
    HeaderValue, Request, Response, StatusCode,
    header::{CONTENT_TYPE, DATE},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Client, Resource, client::Body, runtime::watcher::Event};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tower_test::mock::{Handle, pair};

use crate::{
    ApiError, Cache, Row, Watch, Watches,
    cache::SharedRows,
    decode::{Received, Unreadable},
    stream::{WatchLine, read_page},
};

/// Time within which Events are published.
const EVENT_TIMEOUT: Duration = Duration::from_secs(60);

impl<R: Row> Cache<R> {
    /// One that is filled by the test alone. It needs a runtime.
    #[must_use]
    pub fn unwatched() -> Arc<Self> {
        let (client, _log) = answering(|_| Answer::Silence);
        let watch = Watches::default().watch_changes(Watch::metadata_of::<ConfigMap>(&client), |_| {});
        Arc::new(Self { rows: SharedRows::default(), watch })
    }

    /// Applies an event, as its watch would.
    pub fn apply(&self, event: Event<R>)
    where
        R: Resource,
    {
        let received = |object| Received(Ok(object));
        let event = match event {
            Event::Apply(object) => Event::Apply(received(object)),
            Event::Delete(object) => Event::Delete(received(object)),
            Event::InitApply(object) => Event::InitApply(received(object)),
            Event::Init => Event::Init,
            Event::InitDone => Event::InitDone,
        };
        self.rows.write().take(event, Arc::new);
    }
}

impl ApiError {
    /// All reasons that a failed request, or an object that cannot be read, may have.
    pub const REASONS: &[&str] = &[
        "AlreadyExists",
        "Conflict",
        "DefinitionTerminating",
        "Forbidden",
        "Invalid",
        "KindNotServed",
        "LookUpFailed",
        "NamespaceMissing",
        "NamespaceTerminating",
        "NotFound",
        "OwnerKindUnknown",
        "QuotaExceeded",
        "QuotaRefused",
        "ServerBusy",
        "StatusRefused",
        "Unreadable",
        "WriteFailed",
    ];
}

/// The parts of a request that tests compare.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// The method, and for a patch its type.
    pub verb: String,
    /// Path and query.
    pub uri: String,
    /// The body; null if there is none.
    pub body: Value,
}

/// The server's reaction to a request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It answers with a code and a body.
    Json(u16, Value),
    /// It performs the request, and answers with this object.
    Object(Value),
    /// It performs the request, and answers with the body of the request, or with an empty object if there was none.
    Done,
    /// It performs the request, and answers with the body of the request, as the object with this uid.
    Echo(&'static str),
    /// It refuses with this code and reason.
    Refusal(u16, &'static str),
    /// It may have performed the request, but its answer is lost.
    Lost,
    /// It does not answer.
    Silence,
}

/// The requests to a server, in order.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<Sent>>>);

impl Log {
    /// The requests since the last call.
    #[must_use]
    pub fn take(&self) -> Vec<Sent> {
        std::mem::take(&mut self.0.lock())
    }

    /// Takes the requests after the end of `executor`, because Events are published in the background until their queue
    /// is closed. Time must be paused.
    pub async fn take_after<T>(&self, executor: T) -> Vec<Sent> {
        drop(executor);
        tokio::time::sleep(EVENT_TIMEOUT).await;
        self.take()
    }
}

/// A refusal with this code; a 404 is about the object, and a 409 is a conflict.
#[must_use]
pub fn refused(code: u16) -> Answer {
    let reason = match code {
        404 => "NotFound",
        409 => "Conflict",
        _ => "",
    };
    Answer::Refusal(code, reason)
}

/// The answers in turn, and then the last one forever.
pub fn in_turn(answers: &[Answer]) -> impl FnMut(&Sent) -> Answer + Send + 'static {
    let last = answers.last().cloned().unwrap_or(Answer::Done);
    let mut answers: VecDeque<_> = answers.iter().cloned().collect();
    move |_| answers.pop_front().unwrap_or_else(|| last.clone())
}

/// A client of a server that answers each request by `answer`; requests that are answered by [`Answer::Silence`] are
/// not recorded. It needs a runtime.
pub fn answering(answer: impl FnMut(&Sent) -> Answer + Send + 'static) -> (Client, Log) {
    mocked(None, answer)
}

/// Like [`answering`], with a server that sends a Date header, such as `Mon, 01 Jun 2026 12:00:00 GMT`.
pub fn answering_at(
    date: &'static str,
    answer: impl FnMut(&Sent) -> Answer + Send + 'static,
) -> (Client, Log) {
    mocked(Some(date), answer)
}

fn mocked(date: Option<&'static str>, answer: impl FnMut(&Sent) -> Answer + Send + 'static) -> (Client, Log) {
    let (service, handle) = pair::<Request<Body>, Response<Body>>();
    let log = Log::default();
    tokio::spawn(serve(handle, date, answer, log.clone()));
    (Client::new(service, "default"), log)
}

async fn serve(
    mut handle: Handle<Request<Body>, Response<Body>>,
    date: Option<&'static str>,
    mut answer: impl FnMut(&Sent) -> Answer,
    log: Log,
) {
    let mut unanswered = Vec::new();
    while let Some((request, respond)) = handle.next_request().await {
        let sent = read(request).await;
        let (code, body) = match answer(&sent) {
            Answer::Silence => {
                unanswered.push(respond);
                continue;
            }
            Answer::Lost => {
                log.0.lock().push(sent);
                respond.send_error(std::io::Error::other("the connection was reset"));
                continue;
            }
            Answer::Json(code, body) => (code, body),
            Answer::Object(object) => (200, object),
            Answer::Done if sent.body.is_object() => (200, sent.body.clone()),
            Answer::Done => (200, json!({"metadata": {}})),
            Answer::Echo(uid) => {
                // A patch that is a list says nothing else of the object.
                let mut object = if sent.body.is_array() { Value::Null } else { sent.body.clone() };
                object["metadata"]["uid"] = uid.into();
                (200, object)
            }
            Answer::Refusal(code, reason) => (code, refusal(code, reason, &sent.uri)),
        };
        log.0.lock().push(sent);
        let mut response = Response::new(Body::from(body.to_string().into_bytes()));
        *response.status_mut() = StatusCode::from_u16(code).unwrap_or_default();
        if let Some(date) = date {
            response.headers_mut().insert(DATE, HeaderValue::from_static(date));
        }
        respond.send_response(response);
    }
}

async fn read(request: Request<Body>) -> Sent {
    let (parts, body) = request.into_parts();
    let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let verb = match kind {
        "application/merge-patch+json" => "MERGE".to_owned(),
        "application/apply-patch+yaml" => "APPLY".to_owned(),
        "application/json-patch+json" => "AMEND".to_owned(),
        _ => parts.method.to_string(),
    };
    let body = body.collect_bytes().await.unwrap_or_default();
    Sent { verb, uri: parts.uri.to_string(), body: serde_json::from_slice(&body).unwrap_or_default() }
}

/// Like that of an API server, it names the object.
fn refusal(code: u16, reason: &str, uri: &str) -> Value {
    let name = uri.split('?').next().and_then(|path| path.rsplit('/').next());
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
        "reason": reason, "message": format!("answer {code}"), "details": {"name": name},
    })
}

/// The objects of a page of a list, each for itself, or why the page is not understood.
pub fn page<K: DeserializeOwned>(text: &str) -> Result<Vec<Result<K, String>>, String> {
    let mut objects = Vec::new();
    let read = |Received(object)| objects.push(object.map_err(|unreadable: Unreadable| unreadable.error));
    read_page(text.as_bytes(), read).map_err(|error| error.to_string())?;
    Ok(objects)
}

/// Whether a line of a watch is understood, even if the object in it is not.
#[must_use]
pub fn is_watch_line<K: DeserializeOwned>(text: &str) -> bool {
    WatchLine::<Received<K>>::read(text).is_ok()
}
