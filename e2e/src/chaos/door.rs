//! The way of one process through a proxy to the API server, with the faults that befall it.

use std::{ops::Deref, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes, to_bytes},
    http::{Request, Response, Uri, request::Parts},
};
use hyper::body::Incoming;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{
    answer::{self, Answer},
    plan::{Commit, Ending, ListFault, Moment, WriteFault},
    precondition::broken_by,
    proxy::{End, Shared},
    scope::{Purpose, narrowed},
    state::Answered,
    watch,
};

/// Time that a process has to read an answer before it is killed, and that a signal takes.
const MOMENT: Duration = Duration::from_millis(20);

/// The way of one process.
pub(super) struct Door {
    pub(super) shared: Arc<Shared>,
    /// Its number among those of the proxy, from 0.
    pub(super) number: usize,
}

impl Deref for Door {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

/// The connection closes without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection closes without an answer, as planned")]
pub(super) struct Dropped;

impl Door {
    /// Passes a request on.
    pub(super) async fn hand_on(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Dropped> {
        let (parts, body) = request.into_parts();
        let body = to_bytes(Body::new(body), usize::MAX).await.map_err(|_| Dropped)?;
        self.until_open(self.number).await;
        match Purpose::of(&parts.method, &parts.uri) {
            Purpose::Write => self.write(&parts, body).await,
            Purpose::List => self.list(&parts).await,
            Purpose::Watch(resource) => {
                let (head, events) = self.send(&parts, body).await?.into_parts();
                let events = watch::passed_on(self.shared.clone(), self.number, resource, events);
                Ok(Response::from_parts(head, events))
            }
            Purpose::Other => Ok(self.whole(self.ask(&parts, body).await?)),
        }
    }

    async fn write(&self, parts: &Parts, body: Bytes) -> Result<Response<Body>, Dropped> {
        let media =
            parts.headers.get("content-type").and_then(|media| media.to_str().ok()).unwrap_or_default();
        let broken = broken_by(&parts.method, &parts.uri, media, &body);
        let fault = {
            let mut state = self.state();
            state.offences.extend(broken.map(|rule| format!("{rule}: {} {}", parts.method, parts.uri)));
            state.write()
        };
        let crash = fault.as_ref().and_then(WriteFault::crash);
        if let Some(WriteFault::HandOver(how)) = &fault
            && crash.is_none()
        {
            self.hand_over(*how).await;
        }
        match &fault {
            Some(WriteFault::Delay { millis }) => sleep(Duration::from_millis(*millis)).await,
            Some(WriteFault::BlackHole { .. }) => self.until_open(self.number).await,
            Some(WriteFault::Refuse { code, commit: Commit::Before }) => {
                return Ok(self.whole(answer::error(*code)));
            }
            Some(WriteFault::Drop(Commit::Before)) => return Err(Dropped),
            _ => {}
        }
        if crash == Some(Moment::Unsent) {
            return Err(self.die().await);
        }
        let arrived = Instant::now();
        let answer = self.ask(parts, body).await?;
        self.record(arrived, parts, &answer);
        match (fault, crash) {
            (_, Some(Moment::Unanswered)) => return Err(self.die().await),
            (Some(WriteFault::Refuse { code, .. }), _) => return Ok(self.whole(answer::error(code))),
            (Some(WriteFault::Drop(_)), _) => return Err(Dropped),
            (Some(WriteFault::Garble), _) => return Ok(self.whole(answer::garbled())),
            (Some(WriteFault::TimeTravel { back, millis }), _) => {
                self.state().travel(back, millis);
                self.die_soon();
            }
            (_, Some(_)) => self.die_soon(),
            _ => {}
        }
        Ok(self.whole(answer))
    }

    fn record(&self, at: Instant, parts: &Parts, answer: &Answer) {
        let version = serde_json::from_slice::<Value>(answer.body()).unwrap_or_default();
        let version = version.pointer("/metadata/resourceVersion").and_then(Value::as_str).map(str::to_owned);
        let mut state = self.state();
        let write = format!("{} {} → {}", parts.method, parts.uri.path(), answer.status().as_u16());
        state.writes.push(Answered { at, door: self.number, write });
        state.versions.extend(version);
    }

    async fn list(&self, parts: &Parts) -> Result<Response<Body>, Dropped> {
        let fault = self.state().list();
        if let Some(ListFault::Refuse(code)) = fault {
            return Ok(self.whole(answer::error(code)));
        }
        let mut parts = parts.clone();
        let past = self.state().travel.clone().filter(|travel| Instant::now() < travel.until);
        if let Some(past) = past
            && let Some(uri) = as_of(&parts.uri, &past.version)
        {
            parts.uri = uri;
        }
        let answer = self.ask(&parts, Bytes::new()).await?;
        Ok(match fault {
            Some(ListFault::Stall) => answer::stalled(answer),
            Some(ListFault::Cut) => answer::cut(answer),
            Some(ListFault::Garble) => self.whole(answer::garbled()),
            _ => self.whole(answer),
        })
    }

    fn whole(&self, answer: Answer) -> Response<Body> {
        let slow_until = self.state().slow_until;
        answer::whole(answer, slow_until)
    }

    /// Ends the process while it waits for an answer, which never arrives.
    async fn die(&self) -> Dropped {
        let told = self.state().crash_of_a_test.take();
        if let Some(told) = told {
            // The receiver is gone when the test is over.
            told.send(()).ok();
        } else {
            self.end(Ending::Killed);
        }
        std::future::pending().await
    }

    /// Kills the process as soon as it has read an answer.
    fn die_soon(&self) {
        let end = self.shut(Ending::Killed);
        let ends = self.ends.clone();
        tokio::spawn(async move {
            sleep(MOMENT).await;
            ends.send(end).ok();
        });
    }

    /// The process stops leading while its write is on the way.
    async fn hand_over(&self, how: Ending) {
        match how {
            Ending::Terminated | Ending::Stopped => {
                self.state().ends += 1;
                self.ends.send(End { door: self.number, how }).ok();
                sleep(MOMENT).await;
            }
            Ending::Killed | Ending::CutOff => {
                self.end(how);
                self.until_open(self.number).await;
            }
        }
    }

    fn end(&self, how: Ending) {
        let end = self.shut(how);
        self.ends.send(end).ok();
    }

    /// From now on, none of its requests is passed on.
    fn shut(&self, how: Ending) -> End {
        let mut state = self.state();
        state.ends += 1;
        state.shut.insert(self.number);
        End { door: self.number, how }
    }

    /// Passes a request on, and returns its whole answer.
    async fn ask(&self, parts: &Parts, body: Bytes) -> Result<Answer, Dropped> {
        let (head, body) = self.send(parts, body).await?.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.map_err(|_| Dropped)?;
        self.until_open(self.number).await;
        Ok(Response::from_parts(head, bytes))
    }

    async fn send(&self, parts: &Parts, body: Bytes) -> Result<Response<Body>, Dropped> {
        let uri = narrowed(&parts.uri, self.namespace.as_deref());
        let mut onward = Request::builder().method(parts.method.clone()).uri(uri);
        for name in ["accept", "content-type"] {
            if let Some(value) = parts.headers.get(name) {
                onward = onward.header(name, value);
            }
        }
        let onward = onward.body(kube::client::Body::from(body)).map_err(|_| Dropped)?;
        let answer = self.client.send(onward).await.map_err(|error| {
            eprintln!("the proxy could not reach the API server: {error}");
            Dropped
        })?;
        let (head, body) = answer.into_parts();
        let mut answer = Response::new(Body::new(body));
        *answer.status_mut() = head.status;
        for name in ["content-type", "retry-after"] {
            if let Some(value) = head.headers.get(name) {
                answer.headers_mut().insert(name, value.clone());
            }
        }
        Ok(answer)
    }
}

/// A list in the state of a version; a further page has the version of its first one anyway.
fn as_of(uri: &Uri, version: &str) -> Option<Uri> {
    let query = uri.query().unwrap_or_default();
    if query.contains("continue=") {
        return None;
    }
    format!("{}?{query}&resourceVersion={version}&resourceVersionMatch=Exact", uri.path()).parse().ok()
}
