//! A proxy between a controller and the API server that carries out the faults of a plan.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Result;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kube::{Client, Config};
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::sleep_until,
};

use super::{
    door::Door,
    plan::{Ending, Fault, Moment, WriteFault},
    state::State,
};
use crate::eventually;

/// A proxy that ends when it is dropped.
pub struct ChaosProxy {
    /// Its address, without encryption.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    /// One for each door.
    tasks: JoinSet<()>,
}

/// What its doors share.
pub(super) struct Shared {
    pub client: Client,
    /// The only namespace that exists for the controller, if it is not all of them.
    pub namespace: Option<String>,
    state: Mutex<State>,
    pub ends: mpsc::UnboundedSender<End>,
}

/// The planned end of the process behind a door.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub door: usize,
    pub how: Ending,
}

impl ChaosProxy {
    /// Passes everything on, without any fault but [`ChaosProxy::crash_after`].
    pub async fn start() -> Result<Self> {
        Ok(Self::with(client().await?, None, Vec::new()).await?.0)
    }

    /// Passes on the requests and objects of one namespace, as if there were no other, and carries out the faults. The receiver
    /// is notified when a process has to end.
    pub(super) async fn with(
        client: Client,
        namespace: Option<String>,
        faults: Vec<Fault>,
    ) -> Result<(Self, mpsc::UnboundedReceiver<End>)> {
        let (ends, told) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared { client, namespace, state: Mutex::new(State::new(faults)), ends });
        let mut tasks = JoinSet::new();
        let address = open(shared.clone(), &mut tasks).await?;
        Ok((Self { address, shared, tasks }, told))
    }

    /// The address for another replica, whose requests are told apart.
    pub(super) async fn another_door(&mut self) -> Result<SocketAddr> {
        open(self.shared.clone(), &mut self.tasks).await
    }

    /// Notifies when the write with this number from now on, counted from 1, has taken effect; its answer never arrives.
    #[must_use]
    pub fn crash_after(&self, write: usize) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        let number = state.arrived + write;
        state.ahead.push(Fault::Write { number, how: WriteFault::Crash(Moment::Unanswered) });
        state.crash_of_a_test = Some(sender);
        receiver
    }

    /// The writes that were answered so far, without those of Leases and Events.
    #[must_use]
    pub fn writes(&self) -> Vec<String> {
        self.state().writes.iter().map(|answered| answered.write.clone()).collect()
    }

    /// Waits until so many writes were answered: the effect of a write is seen before its answer is.
    ///
    /// # Panics
    /// After `limit`.
    pub async fn until_written(&self, count: usize, limit: Duration) {
        eventually(&format!("{count} writes are answered"), limit, async || match self.writes() {
            writes if writes.len() >= count => Ok(()),
            writes => Err(writes),
        })
        .await;
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }
}

impl Shared {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Waits until requests through a door are passed on; those of a process that ends never are.
    pub async fn until_open(&self, door: usize) {
        let (is_shut, stalled_until) = {
            let state = self.state();
            (state.shut.contains(&door), state.stalled_until)
        };
        if is_shut {
            std::future::pending::<()>().await;
        }
        sleep_until(stalled_until).await;
    }

    /// Waits until the present is shown.
    pub async fn until_present(&self) {
        let until = self.state().travel.as_ref().map(|travel| travel.until);
        if let Some(until) = until {
            sleep_until(until).await;
        }
    }
}

/// A client without retries.
pub async fn client() -> Result<Client> {
    let mut config = Config::infer().await?;
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

/// Opens the next door, and serves each connection until it is closed; all of them end with the task.
async fn open(shared: Arc<Shared>, tasks: &mut JoinSet<()>) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let door = Arc::new(Door { shared, number: tasks.len() });
    tasks.spawn(serve(listener, door));
    Ok(address)
}

async fn serve(listener: TcpListener, door: Arc<Door>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve_one(stream, door.clone()));
        while connections.try_join_next().is_some() {}
    }
}

async fn serve_one(stream: TcpStream, door: Arc<Door>) {
    let service = service_fn(|request| door.clone().hand_on(request));
    // A killed controller, or a dropped answer, ends it with an error.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
