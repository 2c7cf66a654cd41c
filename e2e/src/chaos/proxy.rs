//! A proxy between a controller and the API server that carries out the faults of a plan.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::Result;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kube::{Client, Config};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
    task::{JoinHandle, JoinSet},
    time::Instant,
};

use super::{
    door::Door,
    plan::{Fault, Moment, WriteFault},
    shared::{End, Shared},
    state::{Counts, State},
};

/// A proxy that ends when it is dropped.
pub struct ChaosProxy {
    /// Its address, without encryption.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    /// One for each door.
    tasks: Vec<JoinHandle<()>>,
}

impl ChaosProxy {
    /// Passes everything on, without any fault but [`ChaosProxy::crash_after`].
    pub async fn start() -> Result<Self> {
        Ok(Self::with(client().await?, None, Vec::new()).await?.0)
    }

    /// Passes on the requests and objects of one namespace, as if there were no other, and carries out the faults. The receiver
    /// is notified when a process has to end.
    pub(super) async fn in_namespace(
        client: Client,
        namespace: &str,
        faults: Vec<Fault>,
    ) -> Result<(Self, mpsc::UnboundedReceiver<End>)> {
        Self::with(client, Some(namespace.to_owned()), faults).await
    }

    async fn with(
        client: Client,
        namespace: Option<String>,
        faults: Vec<Fault>,
    ) -> Result<(Self, mpsc::UnboundedReceiver<End>)> {
        let (ends, told) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared { client, namespace, state: Mutex::new(State::new(faults)), ends });
        let (address, task) = open(shared.clone(), 0).await?;
        Ok((Self { address, shared, tasks: vec![task] }, told))
    }

    /// The address for another replica, whose requests are told apart.
    pub(super) async fn another_door(&mut self) -> Result<SocketAddr> {
        let (address, task) = open(self.shared.clone(), self.tasks.len()).await?;
        self.tasks.push(task);
        Ok(address)
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
        self.shared.state().writes.iter().map(|answered| answered.write.clone()).collect()
    }

    /// The same with the times of their arrival.
    pub(super) fn timed_writes(&self) -> Vec<(Instant, String)> {
        let state = self.shared.state();
        state.writes.iter().map(|answered| (answered.at, answered.write.clone())).collect()
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

    /// Passes requests through a door on again.
    pub(super) fn revive(&self, door: usize) {
        self.shared.state().shut.remove(&door);
    }

    /// The writes of two replicas at once.
    #[must_use]
    pub(super) fn two_writers(&self) -> Option<String> {
        self.shared.state().two_writers()
    }

    /// The door of the last write.
    #[must_use]
    pub(super) fn last_door(&self) -> Option<usize> {
        self.shared.state().writes.last().map(|answered| answered.door)
    }
}

impl Drop for ChaosProxy {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// A client without retries.
pub async fn client() -> Result<Client> {
    let mut config = Config::infer().await?;
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

/// Opens a door, and serves each connection until it is closed; all of them end with the task.
async fn open(shared: Arc<Shared>, number: usize) -> Result<(SocketAddr, JoinHandle<()>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let door = Arc::new(Door { shared, number });
    Ok((address, tokio::spawn(serve(listener, door))))
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
