//! A proxy between a controller and the API server that carries out the faults of a plan.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::Result;
use axum::{
    body::{Body, Bytes, to_bytes},
    http::{Request, Response, Uri, request::Parts},
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kube::{Client, Config};
use serde_json::Value;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
    task::{JoinHandle, JoinSet},
    time::{Instant, sleep},
};

use super::{
    answer::{self, Answer},
    plan::{Commit, Fault, ListFault, Moment, WriteFault},
    precondition::broken_by,
    scope::{Purpose, narrowed},
    shared::Shared,
    state::{Counts, State},
    watch,
};

/// Time that a process has to read an answer before it is killed.
const TAKES_ANSWER: Duration = Duration::from_millis(20);

/// A proxy that ends when it is dropped.
pub struct ChaosProxy {
    /// Its address, without encryption.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

/// The connection closes without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection closes without an answer, as planned")]
struct Dropped;

impl ChaosProxy {
    /// Passes everything on, without any fault but [`ChaosProxy::crash_after`].
    pub async fn start() -> Result<Self> {
        Ok(Self::with(client().await?, None, Vec::new()).await?.0)
    }

    /// Passes on the requests and objects of one namespace, as if there were no other, and carries out the faults. The receiver
    /// is notified when the controller has to be killed.
    pub async fn in_namespace(
        client: Client,
        namespace: &str,
        faults: Vec<Fault>,
    ) -> Result<(Self, mpsc::UnboundedReceiver<()>)> {
        Self::with(client, Some(namespace.to_owned()), faults).await
    }

    async fn with(
        client: Client,
        namespace: Option<String>,
        faults: Vec<Fault>,
    ) -> Result<(Self, mpsc::UnboundedReceiver<()>)> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (crashes, told) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared { client, namespace, state: Mutex::new(State::new(faults)), crashes });
        let task = tokio::spawn(serve(listener, shared.clone()));
        Ok((Self { address, shared, task }, told))
    }

    /// Notifies when the write with this number from now on, counted from 1, has taken effect; its answer never arrives.
    #[must_use]
    pub fn crash_after(&self, write: usize) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.shared.state();
        let number = state.arrived + write;
        state.ahead.push(Fault::Write { number, how: WriteFault::Crash(Moment::Unanswered) });
        state.crash_of_a_test = Some(sender);
        receiver
    }

    /// The writes that were answered so far, without those of Leases and Events.
    #[must_use]
    pub fn writes(&self) -> Vec<String> {
        self.shared.state().writes.iter().map(|(_, write)| write.clone()).collect()
    }

    /// The same with the times of their arrival.
    pub(super) fn timed_writes(&self) -> Vec<(Instant, String)> {
        self.shared.state().writes.clone()
    }

    /// Writes without the precondition that the design asks for.
    #[must_use]
    pub fn unsafe_writes(&self) -> Vec<String> {
        self.shared.state().unsafe_writes.clone()
    }

    /// The requests so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.state().counts()
    }

    /// Faults that did not occur.
    #[must_use]
    pub fn ahead(&self) -> Vec<Fault> {
        self.shared.state().ahead.clone()
    }

    /// The time since the last write.
    #[must_use]
    pub fn quiet_for(&self) -> Duration {
        self.shared.state().last_write.elapsed()
    }

    /// Serves a new process.
    pub(super) fn revive(&self) {
        self.shared.state().is_dying = false;
    }
}

impl Drop for ChaosProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A client without retries.
pub async fn client() -> Result<Client> {
    let mut config = Config::infer().await?;
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

/// Serves each connection until it is closed; all of them end with the proxy.
async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve_one(stream, shared.clone()));
        while connections.try_join_next().is_some() {}
    }
}

async fn serve_one(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(|request| hand_on(shared.clone(), request));
    // A killed controller, or a dropped answer, ends it with an error.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn hand_on(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Body>, Dropped> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(Body::new(body), usize::MAX).await.map_err(|_| Dropped)?;
    shared.until_open().await;
    match Purpose::of(&parts.method, &parts.uri) {
        Purpose::Write => shared.write(&parts, body).await,
        Purpose::List => shared.list(&parts).await,
        Purpose::Watch(resource) => {
            let (head, events) = shared.send(&parts, body).await?.into_parts();
            let events = watch::passed_on(shared, resource, events);
            Ok(Response::from_parts(head, events))
        }
        Purpose::Other => Ok(shared.whole(shared.ask(&parts, body).await?)),
    }
}

impl Shared {
    async fn write(&self, parts: &Parts, body: Bytes) -> Result<Response<Body>, Dropped> {
        let media =
            parts.headers.get("content-type").and_then(|media| media.to_str().ok()).unwrap_or_default();
        let broken = broken_by(&parts.method, &parts.uri, media, &body);
        let fault = {
            let mut state = self.state();
            state.unsafe_writes.extend(broken.map(|rule| format!("{rule}: {} {}", parts.method, parts.uri)));
            state.write()
        };
        let crash = fault.as_ref().and_then(WriteFault::crash);
        match &fault {
            Some(WriteFault::Delay { millis }) => sleep(Duration::from_millis(*millis)).await,
            Some(WriteFault::BlackHole { .. }) => self.until_open().await,
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

    fn record(&self, arrived: Instant, parts: &Parts, answer: &Answer) {
        let version = serde_json::from_slice::<Value>(answer.body()).unwrap_or_default();
        let version = version.pointer("/metadata/resourceVersion").and_then(Value::as_str).map(str::to_owned);
        let mut state = self.state();
        let write = format!("{} {} → {}", parts.method, parts.uri.path(), answer.status().as_u16());
        state.writes.push((arrived, write));
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

    /// Has the process killed while it waits for an answer, which never arrives.
    async fn die(&self) -> Dropped {
        let told = self.state().crash_of_a_test.take();
        if let Some(told) = told {
            // The receiver is gone when the test is over.
            told.send(()).ok();
        } else {
            self.state().is_dying = true;
            self.crashes.send(()).ok();
        }
        std::future::pending().await
    }

    /// Has the process killed as soon as it has read an answer.
    fn die_soon(&self) {
        self.state().is_dying = true;
        let crashes = self.crashes.clone();
        tokio::spawn(async move {
            sleep(TAKES_ANSWER).await;
            crashes.send(()).ok();
        });
    }

    /// Passes a request on, and returns its whole answer.
    async fn ask(&self, parts: &Parts, body: Bytes) -> Result<Answer, Dropped> {
        let (head, body) = self.send(parts, body).await?.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.map_err(|_| Dropped)?;
        self.until_open().await;
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
