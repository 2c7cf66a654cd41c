use std::sync::Arc;

use basic_deployment_controller::{child::Child, settings::ChildKind};
use catena_api::{BasicDeployment, keys};
use kube::{Api, Client, discovery::ApiResource};
use operator_kit::{
    run::Trigger,
    watch::{Cache, TrimmedObject, Watch, Watches},
};
use parking_lot::Mutex;

/// The watched children of the configured kind; with another kind in the settings, the watch is replaced.
pub struct Children {
    client: Client,
    watches: Watches,
    trigger: Trigger<BasicDeployment>,
    watched: Mutex<Option<Known>>,
}

/// The known children of one kind.
#[derive(Clone)]
pub struct Known {
    /// Their kind.
    pub resource: ApiResource,
    /// The cache of their watch.
    pub cache: Arc<Cache<Child>>,
}

impl Children {
    pub fn new(client: Client, watches: Watches, trigger: Trigger<BasicDeployment>) -> Self {
        Self { client, watches, trigger, watched: Mutex::default() }
    }

    /// The children of a kind; a new kind is watched from now on instead of the last one.
    pub fn of(&self, kind: &ChildKind) -> Known {
        let resource = kind.api_resource();
        let mut watched = self.watched.lock();
        if let Some(known) = watched.as_ref().filter(|known| known.resource == resource) {
            return known.clone();
        }
        let known = self.watch(resource);
        *watched = Some(known.clone());
        known
    }

    fn watch(&self, resource: ApiResource) -> Known {
        let api: Api<TrimmedObject> = Api::all_with(self.client.clone(), &resource);
        let watch = Watch::new(api, &resource.kind).labelled(keys::DEPLOYMENT_UID);
        let trigger = self.trigger.clone();
        let of_kind = resource.clone();
        let cache = self.watches.cache(
            watch,
            move |object| Child::of(object, &of_kind),
            move |child: &Child| {
                if let Some(owner) = &child.owner {
                    trigger.notify(&child.namespace, &owner.name);
                }
            },
        );
        Known { resource, cache }
    }
}

#[cfg(test)]
mod tests {
    use catena_api::contract::ReplicaContract;
    use kube::Config;
    use operator_kit::run::Queue;

    use super::*;

    fn kind(name: &str, contract: ReplicaContract) -> ChildKind {
        ChildKind { api_version: "apps/v1".into(), kind: name.into(), resource: None, contract }
    }

    #[tokio::test]
    async fn only_another_kind_is_another_watch() {
        let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        let trigger = Queue::<BasicDeployment>::default().trigger();
        let children = Children::new(client, Watches::default(), trigger);
        let before = children.of(&kind("Deployment", ReplicaContract::default()));
        let tokenless = ReplicaContract { restarted_at: None, ..ReplicaContract::default() };
        assert!(Arc::ptr_eq(&before.cache, &children.of(&kind("Deployment", tokenless)).cache));
        let other = children.of(&kind("StatefulSet", ReplicaContract::default()));
        assert!(!Arc::ptr_eq(&before.cache, &other.cache));
    }
}
