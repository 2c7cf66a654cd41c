use std::sync::{Arc, Mutex, PoisonError};

use catena_api::{BasicDeployment, keys};
use kube::{Api, Client, discovery::ApiResource};
use operator_kit::{Cache, Trigger, TrimmedObject, Watch, Watches};

use crate::{child::Child, settings::ChildKind};

/// The children of the configured kind, watched; another kind in the settings is another watch.
pub struct Children {
    client: Client,
    watches: Watches,
    trigger: Trigger<BasicDeployment>,
    watched: Mutex<Option<Watched>>,
}

#[derive(Clone)]
struct Watched {
    kind: ChildKind,
    known: Known,
}

/// Children of one kind, as they are known.
#[derive(Clone)]
pub struct Known {
    /// Their kind.
    pub resource: ApiResource,
    /// What the watch shows.
    pub cache: Arc<Cache<Child>>,
}

impl Children {
    pub fn new(client: Client, watches: Watches, trigger: Trigger<BasicDeployment>) -> Self {
        Self { client, watches, trigger, watched: Mutex::default() }
    }

    /// The children of a kind; a kind that was not asked for before is watched from now on instead of the last.
    pub fn of(&self, kind: &ChildKind) -> Known {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        match &*watched {
            Some(watched) if watched.kind == *kind => watched.known.clone(),
            _ => {
                let known = self.watch(kind);
                *watched = Some(Watched { kind: kind.clone(), known: known.clone() });
                known
            }
        }
    }

    fn watch(&self, kind: &ChildKind) -> Known {
        let resource = kind.api_resource();
        let api: Api<TrimmedObject> = Api::all_with(self.client.clone(), &resource);
        let watch = Watch::new(api, &kind.kind).labelled(keys::DEPLOYMENT_UID);
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
