//! Ends the replicas of a controller as planned, and starts them again.

use std::{collections::BTreeSet, process::ExitStatus, sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use futures::future::select_all;
use tokio::{
    select,
    sync::mpsc::UnboundedReceiver,
    time::{sleep, timeout},
};

use super::{
    plan::Ending,
    proxy::{ChaosProxy, End},
};
use crate::OwnProcess;

/// Time limit for a process that is asked to end: the grace period of a pod.
const GRACE: Duration = Duration::from_secs(30);
/// Longest time for which a leader is stopped or cut off: longer than its Lease. Its replica may have nothing to write.
const LOST: Duration = Duration::from_secs(25);
const EVERY: Duration = Duration::from_millis(50);

/// The replicas of a controller.
pub(super) struct Keeper {
    pub replicas: Vec<OwnProcess>,
    pub proxy: Arc<ChaosProxy>,
    /// Doors of former leaders, which may end by themselves once.
    pub deposed: BTreeSet<usize>,
}

impl Keeper {
    /// Keeps them running through all faults, and notes what they must not do.
    pub(super) async fn keep(mut self, mut ends: UnboundedReceiver<End>) {
        loop {
            let done = select! {
                Some(End { door, how }) = ends.recv() => self.end(door, how).await,
                (door, ended) = until_one_ended(&mut self.replicas) => {
                    if !self.deposed.remove(&door) {
                        self.proxy.state().offences.push(format!("it ended by itself: {ended:?}"));
                    }
                    self.again(door)
                }
            };
            if let Err(error) = done {
                self.proxy.state().offences.push(format!("it could not be kept running: {error:#}"));
                return;
            }
        }
    }

    async fn end(&mut self, door: usize, how: Ending) -> Result<()> {
        let replica = &mut self.replicas[door];
        match how {
            Ending::Killed => {
                replica.stop().await?;
                self.again(door)
            }
            Ending::Terminated => {
                let ended = timeout(GRACE, replica.terminate()).await??;
                ensure!(ended.success(), "it was asked to end, and ended with {ended}");
                self.again(door)
            }
            Ending::Stopped => {
                replica.freeze()?;
                self.until_replaced(door).await;
                self.deposed.insert(door);
                self.replicas[door].thaw()
            }
            Ending::CutOff => {
                self.until_replaced(door).await;
                self.deposed.insert(door);
                self.proxy.state().shut.remove(&door);
                Ok(())
            }
        }
    }

    fn again(&mut self, door: usize) -> Result<()> {
        self.proxy.state().shut.remove(&door);
        self.replicas[door].again()
    }

    /// Waits until another replica writes.
    async fn until_replaced(&self, door: usize) {
        let replaced = async {
            while self.proxy.state().writes.last().is_none_or(|last| last.door == door) {
                sleep(EVERY).await;
            }
        };
        timeout(LOST, replaced).await.ok();
    }
}

async fn until_one_ended(replicas: &mut [OwnProcess]) -> (usize, Result<ExitStatus>) {
    let ending = replicas.iter_mut().map(|replica| Box::pin(replica.until_ended()));
    let (ended, door, _) = select_all(ending).await;
    (door, ended)
}
