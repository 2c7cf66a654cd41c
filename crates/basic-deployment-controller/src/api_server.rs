//! A mocked API server: it answers as a test says, and keeps what it was sent.

use std::sync::Arc;

use http::{Request, Response, StatusCode, header::CONTENT_TYPE};
use kube::{Client, client::Body};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower_test::mock::{Handle, pair};

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
    /// It does it, and answers with this object.
    Object(Value),
    /// It does it, and answers with what was sent, as the object with this uid.
    Echo(&'static str),
    /// It refuses with this code and reason.
    Refusal(u16, &'static str),
    /// It may have done it, but its answer is lost.
    Lost,
    /// It does not answer.
    Silence,
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

/// A client of a server that answers each request so; requests that are answered by [`Answer::Silence`] are not kept.
pub fn answering(answer: impl FnMut(&Sent) -> Answer + Send + 'static) -> (Client, Log) {
    let (service, handle) = pair::<Request<Body>, Response<Body>>();
    let log = Log::default();
    tokio::spawn(serve(handle, answer, log.clone()));
    (Client::new(service, "default"), log)
}

async fn serve(
    mut handle: Handle<Request<Body>, Response<Body>>,
    mut answer: impl FnMut(&Sent) -> Answer,
    log: Log,
) {
    let mut unanswered = Vec::new();
    while let Some((request, respond)) = handle.next_request().await {
        let sent = read(request).await;
        match answer(&sent) {
            Answer::Silence => {
                unanswered.push(respond);
                continue;
            }
            Answer::Object(object) => respond.send_response(response(200, &object)),
            Answer::Echo(uid) => {
                let mut object = sent.body.clone();
                object["metadata"]["uid"] = uid.into();
                respond.send_response(response(200, &object));
            }
            Answer::Refusal(code, reason) => respond.send_response(response(code, &refusal(code, reason))),
            Answer::Lost => respond.send_error(std::io::Error::other("the connection was reset")),
        }
        log.0.lock().push(sent);
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
    let body = body.collect_bytes().await.unwrap();
    Sent { verb, uri: parts.uri.to_string(), body: serde_json::from_slice(&body).unwrap_or_default() }
}

fn response(code: u16, body: &Value) -> Response<Body> {
    let body = Body::from(body.to_string().into_bytes());
    Response::builder().status(StatusCode::from_u16(code).unwrap()).body(body).unwrap()
}

fn refusal(code: u16, reason: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
        "reason": reason, "message": format!("answer {code}"),
    })
}
