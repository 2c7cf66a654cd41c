use std::{fmt::Debug, pin::pin};

use catena_api::{BasicDeployment, command::RecentCommands};
use futures::StreamExt;
use k8s_openapi::NamespaceResourceScope;
use kube::{
    Resource,
    runtime::watcher::{self, Event, watcher},
};
use serde::de::DeserializeOwned;
use tokio::{sync::watch, task::JoinSet, time::timeout};

use crate::{Namespace, WAIT_TIMEOUT};

/// The commands that were carried out on a target, in order, recorded by a watch, so that no change is missed.
pub struct Effects {
    seen: watch::Receiver<Vec<String>>,
    _watch: JoinSet<()>,
}

impl Effects {
    /// Records the commands in the annotations of the `BasicDeployments` of a namespace from now on.
    pub async fn record(namespace: &Namespace) -> Self {
        Self::of::<BasicDeployment>(namespace).await
    }

    /// The same for the objects of another kind.
    pub async fn of<K>(namespace: &Namespace) -> Self
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned
            + Send
            + 'static,
    {
        let (sender, mut seen) = watch::channel(Vec::new());
        let targets = namespace.api::<K>();
        let watch = JoinSet::from_iter([async move {
            let mut events = pin!(watcher(targets, watcher::Config::default()));
            while let Some(event) = events.next().await {
                let recent = match event {
                    Ok(Event::Apply(target) | Event::InitApply(target)) => RecentCommands::on(target.meta()),
                    _ => RecentCommands::default(),
                };
                sender.send_modify(|seen: &mut Vec<String>| {
                    for command in recent.iter() {
                        if !seen.contains(&command.uid) {
                            seen.push(command.uid.clone());
                        }
                    }
                });
            }
        }]);
        seen.changed().await.ok();
        Self { seen, _watch: watch }
    }

    /// Waits until this number of commands has been carried out.
    ///
    /// # Panics
    /// When they are not carried out in time.
    pub async fn until(&self, count: usize) {
        let mut seen = self.seen.clone();
        let came = timeout(WAIT_TIMEOUT, seen.wait_for(|seen| seen.len() >= count)).await.is_ok();
        assert!(came, "not {count} commands within {WAIT_TIMEOUT:?}: {:?}", self.so_far());
    }

    /// The uids of the commands that were carried out so far, in order.
    #[must_use]
    pub fn so_far(&self) -> Vec<String> {
        self.seen.borrow().clone()
    }
}
