use std::{sync::Arc, time::Duration};

use basic_deployment_controller::{child::Child, child_kind::ChildKind, observed::ListedKind};
use catena_api::{keys, reason};
use kube::Client;
use operator_kit::run::Queue;
use operator_watch::{Cache, Discovery, Failure, PrunedObject, Watch, Watches, WriteTarget};
use parking_lot::Mutex;

/// Maximum time that a pass waits for the first list of a kind.
const FIRST_LIST_WAIT: Duration = Duration::from_secs(2);

/// The watched children of the configured kinds; the watches follow the settings.
pub struct Children {
    client: Client,
    discovery: Discovery,
    watches: Watches,
    queue: Queue,
    watched: Mutex<Vec<Known>>,
}

/// The known children of one kind.
#[derive(Clone)]
pub struct Known {
    /// Their kind.
    pub kind: Arc<ChildKind>,
    /// The cache of their watch.
    pub cache: Arc<Cache<Child>>,
}

/// The children of one `BasicDeployment`.
pub struct Seen {
    /// Its children of all kinds, by kind and name.
    pub children: Vec<Arc<Child>>,
    /// The reason why some of them may be missing, if they may.
    pub problem: Option<String>,
    /// The kinds that the cluster does not serve, so that there are no children of them.
    unserved: Vec<Arc<ChildKind>>,
}

impl Seen {
    /// # Errors
    /// When the cluster does not serve a kind.
    pub fn serves(&self, kind: &ChildKind) -> Result<(), Failure> {
        if !self.unserved.iter().any(|unserved| **unserved == *kind) {
            return Ok(());
        }
        let message = format!(
            "the cluster does not serve the kind {} of {}, so that the child can neither be seen nor changed; install its CustomResourceDefinition, set served: true for that version, or change the template",
            kind.kind, kind.api_version
        );
        // The installation of the kind is no event of the BasicDeployment.
        Err(Failure::transient(reason::KIND_NOT_SERVED, message))
    }
}

impl Children {
    pub fn new(client: Client, discovery: Discovery, watches: Watches, queue: Queue) -> Self {
        Self { client, discovery, watches, queue, watched: Mutex::default() }
    }

    /// The children of these kinds. Others are no longer watched, nor those of a kind with another contract.
    pub fn of(&self, kinds: &[Arc<ChildKind>]) -> Vec<Known> {
        let mut watched = self.watched.lock();
        let is_same = watched.iter().map(|known| &known.kind).eq(kinds);
        if !is_same {
            let before = std::mem::take(&mut *watched);
            let known = |kind: &Arc<ChildKind>| before.iter().find(|known| known.kind == *kind).cloned();
            *watched = kinds.iter().map(|kind| known(kind).unwrap_or_else(|| self.watch(kind))).collect();
        }
        watched.clone()
    }

    /// The children of a `BasicDeployment`. A kind that cannot be seen only matters if the `BasicDeployment` may have a child
    /// of it.
    pub async fn seen(
        &self,
        kinds: &[Known],
        namespace: &str,
        uid: &str,
        may_have: impl Fn(&ChildKind) -> bool,
    ) -> Seen {
        let mut seen = Seen { children: Vec::new(), problem: None, unserved: Vec::new() };
        for Known { kind, cache } in kinds {
            if cache.watch().problem().is_some() {
                if !may_have(kind) {
                    continue;
                }
                // Another mapping is another watch, and no reason to report that children are unknown.
                cache.watch().first_list(FIRST_LIST_WAIT).await;
            }
            let problem = match cache.watch().problem() {
                None => {
                    let mut children = cache.by_index(namespace, uid);
                    children.sort_by(|a, b| a.name.cmp(&b.name));
                    seen.children.extend(children);
                    continue;
                }
                Some(problem) if cache.watch().is_unserved() => {
                    match self.discovery.find_again(&kind.api_resource()).await {
                        // Served in no version, it has no objects.
                        Ok(None) => {
                            seen.unserved.push(kind.clone());
                            continue;
                        }
                        Ok(Some((other, _))) if other.api_version != kind.api_version => format!(
                            "{} {} is not served any more, but {} is: list that under children in the controller's settings",
                            kind.api_version, kind.kind, other.api_version
                        ),
                        // What was served a moment ago is listed soon.
                        Ok(Some(_)) | Err(_) => problem,
                    }
                }
                Some(problem) => problem,
            };
            seen.problem.get_or_insert(problem);
        }
        seen
    }

    fn watch(&self, kind: &Arc<ChildKind>) -> Known {
        let resource = kind.api_resource();
        let watch = Watch::<PrunedObject>::all(&self.client, &resource).labelled(keys::DEPLOYMENT_UID);
        let queue = self.queue.clone();
        let of = kind.clone();
        let cache = self.watches.cache(
            watch,
            move |object| Child::of(object, &of),
            move |child: &Child| {
                if let Some(owner) = &child.owner {
                    queue.notify(&child.namespace, &owner.name);
                }
            },
        );
        Known { kind: kind.clone(), cache }
    }
}

impl Known {
    /// The kind and its watch, for writes.
    pub fn listed(&self) -> ListedKind {
        let watched = WriteTarget::new(self.kind.api_resource(), self.cache.watch().seen_version());
        ListedKind { kind: self.kind.clone(), watched }
    }
}

#[cfg(test)]
mod tests {
    use catena_api::contract::ReplicaContract;
    use kube::Config;
    use operator_kit::testing::{Answer, Sent, answering};
    use serde_json::{Value, json};

    use super::*;

    fn kind(name: &str, contract: ReplicaContract) -> Arc<ChildKind> {
        let contract = contract.try_into().unwrap();
        Arc::new(ChildKind { api_version: "apps/v1".into(), kind: name.into(), resource: None, contract })
    }

    #[tokio::test]
    async fn only_another_kind_or_contract_is_another_watch() {
        let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        let queue = Queue::default();
        let discovery = Discovery::new(client.clone());
        let children = Children::new(client, discovery, Watches::default(), queue);
        let own = || kind("Deployment", ReplicaContract::default());
        let caches = |kinds: &[Arc<ChildKind>]| -> Vec<_> {
            children.of(kinds).into_iter().map(|known| known.cache).collect()
        };
        let before = caches(&[own()]);
        assert!(Arc::ptr_eq(&before[0], &caches(&[own()])[0]));
        let both = caches(&[kind("StatefulSet", ReplicaContract::default()), own()]);
        assert!(Arc::ptr_eq(&before[0], &both[1]), "another kind beside it changes nothing");
        let ended = Arc::downgrade(&both[0]);
        drop(both);
        let tokenless = ReplicaContract { restarted_at: None, ..ReplicaContract::default() };
        let mapped = caches(&[kind("Deployment", tokenless)]);
        assert!(!Arc::ptr_eq(&before[0], &mapped[0]), "its rows have the outputs of the former contract");
        assert!(ended.upgrade().is_none(), "a kind that is no longer listed is no longer watched");
    }

    /// A cluster whose lists are answered as if no kind were served, while its discovery has Deployments in this version.
    fn serving(version: &'static str) -> Client {
        let group_version = format!("apps/{version}");
        let versions = json!({"groupVersion": group_version, "version": version});
        let groups = json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [{
            "name": "apps", "versions": [versions], "preferredVersion": versions,
        }]});
        let resources = json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version,
            "resources": [{
                "name": "deployments", "singularName": "deployment", "kind": "Deployment",
                "namespaced": true, "verbs": ["list"],
            }],
        });
        let answer = move |sent: &Sent| match &*sent.uri {
            "/apis" => Answer::Json(200, groups.clone()),
            uri if uri == format!("/apis/{group_version}") => Answer::Json(200, resources.clone()),
            _ => Answer::Json(404, Value::from("404 page not found")),
        };
        answering(answer).0
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_that_is_served_in_another_version_is_told_with_it_and_one_that_has_just_come_is_not() {
        let moved = "apps/v1 Deployment is not served any more, but apps/v2 is: list that under children in the controller's \
                     settings";
        for (version, is_moved) in [("v2", true), ("v1", false)] {
            let client = serving(version);
            let discovery = Discovery::new(client.clone());
            let children = Children::new(client, discovery, Watches::default(), Queue::default());
            let known = children.of(&[kind("Deployment", ReplicaContract::default())]);
            let seen = children.seen(&known, "shop", "u1", |_| true).await;
            let problem = seen.problem.expect("nothing is known of them");
            assert_eq!(problem == moved, is_moved, "{version}: {problem}");
        }
    }
}
