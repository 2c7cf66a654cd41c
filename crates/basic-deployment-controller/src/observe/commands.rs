use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use basic_deployment_controller::command::{Command, CommandKind};
use kube::{Api, Client, discovery::ApiResource};
use operator_kit::run::Queue;
use operator_watch::{ApiError, Cache, TrimmedObject, Watch, WatchedResource, Watches, live};
use tokio::sync::Notify;

/// The commands of all kinds, watched.
pub struct Commands {
    client: Client,
    caches: [(ApiResource, Arc<Cache<Command>>); 2],
    changed: Arc<Notify>,
}

impl Commands {
    pub fn new(client: Client, watches: &Watches, queue: &Queue) -> Self {
        let changed = Arc::<Notify>::default();
        let caches = CommandKind::ALL.map(|kind| {
            let resource = kind.resource();
            let api: Api<TrimmedObject> = Api::all_with(client.clone(), &resource);
            let (queue, changed) = (queue.clone(), changed.clone());
            let cache = watches.cache(
                Watch::new(api, &resource.kind),
                move |object| Command::of(object, kind),
                move |command: &Command| {
                    changed.notify_one();
                    if let Some(owner) = &command.owner {
                        queue.notify(&command.namespace, &owner.name);
                    }
                },
            );
            (resource, cache)
        });
        Self { client, caches, changed }
    }

    /// Waits until any command has come, changed or gone.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// All commands for which `holds` is true, with any owner.
    pub fn find(&self, holds: impl Fn(&Command) -> bool) -> Vec<Arc<Command>> {
        self.caches.iter().flat_map(|(_, cache)| cache.find(&holds)).collect()
    }

    /// The commands that are bound to a `BasicDeployment`, in its namespace, the oldest first; `None` while some may be
    /// unknown. Of a kind that is not served there are none.
    pub fn of(&self, namespace: &str, uid: &str) -> Option<Vec<Arc<Command>>> {
        let served = || self.caches.iter().filter(|(_, cache)| !cache.watch().is_unserved());
        if served().any(|(_, cache)| cache.watch().problem().is_some()) {
            return None;
        }
        let of_kind = served().map(|(_, cache)| cache.group(namespace, uid));
        let mut commands: Vec<_> = of_kind.flatten().collect();
        commands.sort_by(|a, b| a.order().cmp(&b.order()));
        Some(commands)
    }

    /// A number that identifies a pin and the set of commands that are bound to a `BasicDeployment`, and those that have ended:
    /// the failure of one is not that of the next.
    pub fn fingerprint(&self, namespace: &str, uid: &str, pin: Option<&String>) -> u64 {
        let mut hasher = DefaultHasher::new();
        pin.hash(&mut hasher);
        for command in self.of(namespace, uid).into_iter().flatten() {
            (&command.uid, command.has_ended()).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Whether a command still exists and waits: read live, because with a stale cache it could run although it was
    /// cancelled, or a second time.
    pub async fn still_waits(&self, command: &Command) -> Result<bool, ApiError> {
        let Command { namespace, name, kind, .. } = command;
        let found = live::object(&self.client, &kind.resource(), namespace, name).await?;
        let now = found.map(|object| Command::of(object, command.kind));
        Ok(now.is_some_and(|now| {
            now.uid == command.uid && now.owner == command.owner && now.deletion.is_none() && !now.has_ended()
        }))
    }

    /// The kinds and watches of commands, in the order of [`CommandKind::ALL`].
    pub fn places(&self) -> [WatchedResource; 2] {
        let places = self.caches.each_ref();
        places.map(|(resource, cache)| WatchedResource::new(resource.clone(), cache.watch().seen()))
    }
}
