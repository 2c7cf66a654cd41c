//! A mocked API server: it answers as a test says, and keeps what it was sent.

use std::sync::Arc;

use http::{Request, Response, header::CONTENT_TYPE};
use kube::{Client, client::Body};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower_test::mock::{Handle, pair};

/// The time at which the server answers.
pub const DATE: &str = "Mon, 01 Jun 2026 12:00:00 GMT";

/// A request as far as tests tell requests apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// The method, and for a patch which kind of patch it is.
    pub verb: String,
    /// Path and query.
    pub uri: String,
    /// The body; null where there is none.
    pub body: Value,
}

/// What the server does with a request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It answers with a code and a body.
    Json(u16, Value),
    /// It does it, and answers with what was sent, or, to a patch of single fields, with an object without any.
    Done,
    /// It refuses with this code and reason.
    Refusal(u16, &'static str),
    /// It may have done it, but its answer is lost.
    Lost,
}

/// What a server was sent, in order.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<Sent>>>);

impl Log {
    /// What was sent since this was last asked.
    pub fn take(&self) -> Vec<Sent> {
        std::mem::take(&mut self.0.lock())
    }
}

/// A client of a server that answers each path with a code and a body.
pub fn server(date: Option<&'static str>, answer: impl Fn(&str) -> (u16, Value) + Send + 'static) -> Client {
    let by_path = move |sent: &Sent| {
        let (code, body) = answer(sent.uri.split('?').next().unwrap_or_default());
        Answer::Json(code, body)
    };
    answering(date, by_path).0
}

/// A client of a server that answers each request so.
pub fn answering(
    date: Option<&'static str>,
    answer: impl FnMut(&Sent) -> Answer + Send + 'static,
) -> (Client, Log) {
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
    while let Some((request, respond)) = handle.next_request().await {
        let sent = read(request).await;
        let (code, body) = match answer(&sent) {
            Answer::Json(code, body) => (code, body),
            Answer::Done if sent.body.is_object() => (200, sent.body.clone()),
            Answer::Done => (200, json!({"metadata": {}})),
            Answer::Refusal(code, reason) => (code, refusal(code, reason)),
            Answer::Lost => {
                log.0.lock().push(sent);
                respond.send_error(std::io::Error::other("the connection was reset"));
                continue;
            }
        };
        log.0.lock().push(sent);
        let mut response = Response::builder().status(code);
        if let Some(date) = date {
            response = response.header("date", date);
        }
        respond.send_response(response.body(Body::from(body.to_string().into_bytes())).unwrap());
    }
}

async fn read(request: Request<Body>) -> Sent {
    let (parts, body) = request.into_parts();
    let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let verb = match kind {
        "application/merge-patch+json" => "MERGE".to_owned(),
        "application/json-patch+json" => "AMEND".to_owned(),
        _ => parts.method.to_string(),
    };
    let body = body.collect_bytes().await.unwrap();
    Sent { verb, uri: parts.uri.to_string(), body: serde_json::from_slice(&body).unwrap_or_default() }
}

fn refusal(code: u16, reason: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
        "reason": reason, "message": format!("answer {code}"),
    })
}
