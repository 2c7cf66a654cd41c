use std::sync::Arc;

use basic_deployment_controller::{child::Child, outputs::Mapping, settings::ChildKind};
use catena_api::{BasicDeployment, keys};
use kube::{Api, Client, discovery::ApiResource};
use operator_kit::{
    run::Trigger,
    watch::{Cache, TrimmedObject, Watch, Watches},
};
use parking_lot::Mutex;

/// The watched children of the configured kind; with another kind or contract in the settings, the watch is replaced.
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
    /// The places of their outputs.
    pub contract: Arc<Mapping>,
    /// The cache of their watch.
    pub cache: Arc<Cache<Child>>,
}

impl Children {
    pub fn new(client: Client, watches: Watches, trigger: Trigger<BasicDeployment>) -> Self {
        Self { client, watches, trigger, watched: Mutex::default() }
    }

    /// The children of a kind; another one is watched from now on instead of the last one.
    pub fn of(&self, kind: &ChildKind) -> Known {
        let resource = kind.api_resource();
        let mut watched = self.watched.lock();
        let is_known = |known: &&Known| known.resource == resource && *known.contract == kind.contract;
        if let Some(known) = watched.as_ref().filter(is_known) {
            return known.clone();
        }
        let known = self.watch(resource, Arc::new(kind.contract.clone()));
        *watched = Some(known.clone());
        known
    }

    fn watch(&self, resource: ApiResource, contract: Arc<Mapping>) -> Known {
        let api: Api<TrimmedObject> = Api::all_with(self.client.clone(), &resource);
        let watch = Watch::new(api, &resource.kind).labelled(keys::DEPLOYMENT_UID);
        let trigger = self.trigger.clone();
        let (of_kind, by) = (resource.clone(), contract.clone());
        let cache = self.watches.cache(
            watch,
            move |object| Child::of(object, &of_kind, &by),
            move |child: &Child| {
                if let Some(owner) = &child.owner {
                    trigger.notify(&child.namespace, &owner.name);
                }
            },
        );
        Known { resource, contract, cache }
    }
}

#[cfg(test)]
mod tests {
    use catena_api::contract::ReplicaContract;
    use kube::Config;
    use operator_kit::run::Queue;

    use super::*;

    fn kind(name: &str, contract: ReplicaContract) -> ChildKind {
        let contract = contract.try_into().unwrap();
        ChildKind { api_version: "apps/v1".into(), kind: name.into(), resource: None, contract }
    }

    #[tokio::test]
    async fn only_another_kind_or_contract_is_another_watch() {
        let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        let trigger = Queue::<BasicDeployment>::default().trigger();
        let children = Children::new(client, Watches::default(), trigger);
        let before = children.of(&kind("Deployment", ReplicaContract::default()));
        let same = children.of(&kind("Deployment", ReplicaContract::default()));
        assert!(Arc::ptr_eq(&before.cache, &same.cache));
        let tokenless = ReplicaContract { restarted_at: None, ..ReplicaContract::default() };
        let mapped = children.of(&kind("Deployment", tokenless));
        assert!(
            !Arc::ptr_eq(&before.cache, &mapped.cache),
            "its rows have the outputs of the former contract"
        );
        let other = children.of(&kind("StatefulSet", ReplicaContract::default()));
        assert!(!Arc::ptr_eq(&before.cache, &other.cache));
    }
}
