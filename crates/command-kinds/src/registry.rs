//! The kinds of commands of a controller, which change at run time.

use std::{collections::HashSet, sync::Arc};

use kube::Client;
use operator_kit::run::{Operator, SettingsHandle};
use operator_watch::{DynamicKind, Watches};
use parking_lot::Mutex;
use tokio::{
    select,
    sync::{Notify, watch},
};

use crate::{discovery::Definitions, kind::CommandKind, settings::Kinds};

/// The kinds of the settings and of definitions.
pub struct Registry {
    client: Client,
    watches: Watches,
    settings: SettingsHandle<Kinds>,
    /// What the controller does with commands, for messages.
    task: &'static str,
    /// `None` while discovery is off.
    definitions: Arc<Mutex<Option<Definitions>>>,
    changed: Arc<Notify>,
}

impl Registry {
    /// The kinds of a controller. The `task` is what it does with commands, for messages: they are `bound`.
    #[must_use]
    pub fn new(operator: &Operator<Kinds>, task: &'static str) -> Self {
        let registry = Self {
            client: operator.client.clone(),
            watches: operator.watches.clone(),
            settings: operator.settings.clone(),
            task,
            definitions: Arc::default(),
            changed: Arc::default(),
        };
        registry.warn();
        registry
    }

    /// Warns that nothing is ever done, if no kind can come.
    fn warn(&self) {
        if self.settings.current().are_none() {
            let task = self.task;
            tracing::warn!("kinds: is empty and discovery is not enabled, so that nothing is ever {task}");
        }
    }

    /// Tells, whenever it is called, why there may be kinds that are not known.
    pub fn problem(&self) -> impl Fn() -> Option<String> + Send + Sync + use<> {
        let definitions = self.definitions.clone();
        move || definitions.lock().as_ref()?.problem()
    }

    /// The present kinds. The settings of a kind take precedence over its definition.
    #[must_use]
    pub fn current(&self) -> Vec<Arc<CommandKind>> {
        let kinds = self.settings.current();
        let mut definitions = self.definitions.lock();
        if !kinds.are_discovered {
            *definitions = None;
            return kinds.listed.clone();
        }
        let definitions = definitions.get_or_insert_with(|| {
            let changed = self.changed.clone();
            Definitions::follow(&self.client, &self.watches, move || changed.notify_one())
        });
        let key = |kind: &CommandKind| (kind.resource.group.clone(), kind.resource.plural.clone());
        let listed: HashSet<_> = kinds.listed.iter().map(|kind| key(kind)).collect();
        let described = definitions.kinds().into_iter().filter(|kind| !listed.contains(&key(kind)));
        kinds.listed.iter().cloned().chain(described).collect()
    }

    /// Waits until they may have changed. It may be dropped at any time.
    pub async fn changed(&mut self) {
        select! {
            () = self.settings.changed() => self.warn(),
            () = self.changed.notified() => {}
        }
    }

    /// Keeps the watches of commands in line with the kinds that `watched` picks.
    pub fn follow<R: Send + Sync + 'static>(
        mut self,
        mut watched: impl FnMut(&[Arc<CommandKind>]) -> Vec<DynamicKind<R>> + Send + 'static,
    ) -> watch::Receiver<Vec<DynamicKind<R>>> {
        let (sender, receiver) = watch::channel(watched(&self.current()));
        tokio::spawn(async move {
            while !sender.is_closed() {
                self.changed().await;
                sender.send_replace(watched(&self.current()));
            }
        });
        receiver
    }
}
