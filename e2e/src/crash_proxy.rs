//! A proxy between a controller and the API server that kills the controller after a chosen write has taken effect,
//! before the answer arrives. These are all possible crash points, because nothing between two writes leaves a trace.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Result;
use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{Method, StatusCode},
    response::{IntoResponse, Response},
};
use kube::Client;
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

/// A proxy that ends when it is dropped.
pub struct CrashProxy {
    /// Where it listens, without encryption.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    client: Client,
    plan: Mutex<Plan>,
}

#[derive(Default)]
struct Plan {
    writes: Vec<String>,
    /// The number of the write before the crash, and the channel that announces it.
    crash: Option<(usize, oneshot::Sender<()>)>,
}

impl CrashProxy {
    /// Starts one that forwards everything as `client`.
    pub async fn start(client: Client) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { client, plan: Mutex::default() });
        let router = Router::new().fallback(hand_on).with_state(shared.clone());
        let task = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                eprintln!("the proxy ended: {error}");
            }
        });
        Ok(Self { address, shared, task })
    }

    /// Announces that the write with this number from now on, counted from 1, has taken effect; its answer never comes.
    #[must_use]
    pub fn crash_after(&self, write: usize) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut plan = self.shared.plan();
        plan.crash = Some((plan.writes.len() + write, sender));
        receiver
    }

    /// The number of forwarded writes so far, without those of Leases and Events.
    #[must_use]
    pub fn writes(&self) -> Vec<String> {
        self.shared.plan().writes.clone()
    }
}

impl Drop for CrashProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn plan(&self) -> std::sync::MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn hand_on(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let counts = parts.method != Method::GET && !path.contains("/leases") && !path.contains("/events");
    let Ok(body) = to_bytes(body, usize::MAX).await else { return StatusCode::BAD_REQUEST.into_response() };
    let mut onward = Request::builder()
        .method(parts.method.clone())
        .uri(parts.uri.path_and_query().map_or("/", |path| path.as_str()));
    for name in ["accept", "content-type"] {
        if let Some(value) = parts.headers.get(name) {
            onward = onward.header(name, value);
        }
    }
    let Ok(onward) = onward.body(kube::client::Body::from(body)) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let answer = match shared.client.send(onward).await {
        Ok(answer) => answer,
        Err(error) => return (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    };
    if counts {
        let crash = {
            let mut plan = shared.plan();
            plan.writes.push(format!("{} {path} → {}", parts.method, answer.status().as_u16()));
            let number = plan.writes.len();
            plan.crash.take_if(|(at, _)| *at == number)
        };
        if let Some((_, crash)) = crash {
            // Nobody listens when the test is over.
            let _ = crash.send(());
            std::future::pending::<()>().await;
        }
    }
    let (parts, body) = answer.into_parts();
    let mut response = Response::new(Body::new(body));
    *response.status_mut() = parts.status;
    if let Some(value) = parts.headers.get("content-type") {
        response.headers_mut().insert("content-type", value.clone());
    }
    response
}
