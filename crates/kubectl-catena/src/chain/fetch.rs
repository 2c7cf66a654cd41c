//! Fetches the objects of a chain: upwards by owner references, downwards by lists.

use std::collections::HashSet;

use anyhow::Result;
use futures::{StreamExt, stream};
use kube::{api::ListParams, core::DynamicObject};
use operator_kit::object::ObjectId;

use super::{
    dependents::{DependentList, Selector, dependent_lists},
    labelled_kinds::{LabelledKinds, labelled_kinds},
    owned::owned,
};
use crate::{
    connection::Cluster,
    errors::Gap,
    kinds::Kind,
    object::{Identity, first_owner},
    paint::sanitized,
    target::Target,
};

const MAX_CONCURRENT_REQUESTS: usize = 16;
/// A longer line of owners is a circle.
const MAX_OWNERS: usize = 16;

/// The extent of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Upwards as well.
    pub whole: bool,
    /// Downwards in all kinds.
    pub all_kinds: bool,
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct Fetched {
    /// All objects that may belong to the chain.
    pub objects: Vec<DynamicObject>,
    /// The uid of the asked object.
    pub asked: String,
    /// The uid of the object at the top.
    pub top: String,
    /// Missing owners.
    pub lost_owners: Vec<LostOwner>,
    /// The target of the asked command, if it is missing.
    pub missing_target: Option<Identity>,
    /// Whether the kind of the asked object is declared as one of commands on its definition.
    pub is_declared_command: bool,
    /// Unread parts.
    pub gaps: Vec<Gap>,
    /// Whether dependents of the asked object may be among the unread parts.
    pub hides_dependents: bool,
    /// Whether dependents of any object of the chain may be.
    pub is_incomplete: bool,
}

/// An owner that is missing.
#[derive(Debug)]
pub struct LostOwner {
    /// The uid of the object that names it.
    pub of: String,
    /// The owner.
    pub owner: Identity,
    /// Whether the server serves the version in which it is named.
    is_served: bool,
}

impl LostOwner {
    /// What becomes of the object that names it.
    pub fn remark(&self) -> String {
        let Self { owner, is_served, .. } = self;
        if *is_served {
            return format!("its owner {owner} is gone: the garbage collector will delete it");
        }
        let version = sanitized(&owner.api_version);
        format!(
            "its owner {owner} is gone, but the garbage collector cannot find that out and keeps it, because the server does not serve {version}, which the owner reference names: correct apiVersion in metadata.ownerReferences, or delete it"
        )
    }
}

/// Fetches the chain of an object.
pub async fn fetch(cluster: &Cluster, target: &Target, scope: Scope) -> Result<Fetched> {
    let (asked, (labelled, gaps)) = futures::join!(cluster.get(target), labelled_kinds(cluster));
    let asked = asked?;
    let kind = cluster.kinds.of(&Identity::of(&asked));
    let is_declared_command = kind.is_some_and(|kind| kind.is_among(&labelled.commands));
    let mut fetched = Fetched { asked: uid(&asked), is_declared_command, gaps, ..Fetched::default() };
    let path = if scope.whole { ascend(cluster, asked, &mut fetched).await } else { vec![asked] };
    fetched.top = path.last().map(uid).unwrap_or_default();
    descend(cluster, path, &labelled, scope, &mut fetched).await;
    Ok(fetched)
}

fn uid(object: &DynamicObject) -> String {
    object.metadata.uid.clone().unwrap_or_default()
}

/// The line of owners, each looked up by name and compared by uid, the highest last. Not all of them would be found again
/// from above, where dependents are searched only in the usual kinds.
async fn ascend(cluster: &Cluster, asked: DynamicObject, fetched: &mut Fetched) -> Vec<DynamicObject> {
    let mut path = vec![asked];
    while let Some(here) = path.last().filter(|_| path.len() <= MAX_OWNERS) {
        let Some(owner) = first_owner(&here.metadata) else {
            path.extend(target_of(cluster, here, fetched).await);
            break;
        };
        let owner = Identity::of_owner(owner, here.metadata.namespace.clone());
        let Some(kind) = cluster.kinds.of(&owner) else {
            fetched.gaps.push(Gap::new(owner.to_string(), "the server has no such kind"));
            break;
        };
        match cluster.find(kind, owner.namespace.as_deref(), &owner.name).await {
            Ok(Some(object)) if uid(&object) == owner.uid => path.push(object),
            Ok(_) => {
                let is_served = kind.resource.api_version == owner.api_version;
                fetched.lost_owners.push(LostOwner { of: uid(here), owner, is_served });
                break;
            }
            Err(error) => {
                fetched.gaps.push(Gap::of(owner.to_string(), &error));
                break;
            }
        }
    }
    path
}

/// The target of a command that is not bound yet.
async fn target_of(cluster: &Cluster, here: &DynamicObject, fetched: &mut Fetched) -> Option<DynamicObject> {
    let target = super::tree::target(here)?;
    let kind = cluster.kinds.of(&target)?;
    match cluster.find(kind, target.namespace.as_deref(), &target.name).await {
        Ok(Some(object)) => return Some(object),
        Ok(None) => fetched.missing_target = Some(target),
        Err(error) => fetched.gaps.push(Gap::of(target.to_string(), &error)),
    }
    None
}

/// Lists dependents, until there is no new one.
async fn descend(
    cluster: &Cluster,
    path: Vec<DynamicObject>,
    labelled: &LabelledKinds,
    scope: Scope,
    fetched: &mut Fetched,
) {
    let mut listed: Vec<DependentList> = Vec::new();
    // The lists of the asked object and of its dependents, and those that could not be read, whoever needs them.
    let (mut below, mut failed): (Vec<DependentList>, Vec<DependentList>) = Default::default();
    let mut is_below: HashSet<String> = path.first().map(uid).into_iter().collect();
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut known: HashSet<String> = path.iter().map(uid).collect();
    let mut newest = path;
    while !newest.is_empty() {
        let mut wanted: Vec<DependentList> = Vec::new();
        for object in &newest {
            for list in dependent_lists(object, &cluster.kinds, labelled, scope.all_kinds) {
                if is_below.contains(&uid(object)) {
                    below.push(list.clone());
                }
                if !listed.contains(&list) && !wanted.contains(&list) {
                    wanted.push(list);
                }
            }
        }
        fetched.objects.append(&mut newest);
        let answers: Vec<_> = stream::iter(&wanted)
            .map(|list| objects_in(cluster, list))
            .buffered(MAX_CONCURRENT_REQUESTS)
            .collect()
            .await;
        for (list, answer) in wanted.iter().zip(answers) {
            match answer {
                Ok(objects) => candidates.extend(objects.into_iter().map(|object| Candidate {
                    object,
                    kind: list.kind.clone(),
                    is_whole: list.selector.is_whole(),
                })),
                Err(error) => {
                    let gap = Gap::of(&list.kind.resource.plural, &error);
                    if !fetched.gaps.contains(&gap) {
                        fetched.gaps.push(gap);
                    }
                    failed.push(list.clone());
                }
            }
        }
        listed.append(&mut wanted);
        let (belongs, rest): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|candidate| candidate.belongs(&known, &fetched.objects));
        candidates = rest;
        let mut new = Vec::new();
        for candidate in belongs {
            let mut owners = candidate.object.metadata.owner_references.iter().flatten();
            if owners.any(|owner| is_below.contains(&owner.uid)) {
                is_below.insert(uid(&candidate.object));
            }
            if known.insert(uid(&candidate.object)) {
                new.push(candidate);
            }
        }
        newest = complete(cluster, new, &mut fetched.gaps).await;
    }
    fetched.is_incomplete = failed.iter().any(DependentList::has_health);
    fetched.hides_dependents = failed.iter().any(|list| list.has_health() && below.contains(list));
}

/// An object that was listed.
struct Candidate {
    object: DynamicObject,
    kind: Kind,
    is_whole: bool,
}

impl Candidate {
    /// Whether it is owned by a known object, or a command for one.
    fn belongs(&self, known: &HashSet<String>, objects: &[DynamicObject]) -> bool {
        let owners = self.object.metadata.owner_references.iter().flatten();
        owners.into_iter().any(|owner| known.contains(&owner.uid))
            || super::tree::labelled_target(&self.object).is_some_and(|uid| known.contains(uid))
            || objects.iter().any(|object| super::tree::commands(&self.object, object))
    }
}

/// The objects, with the rest of those of which only the metadata is known.
async fn complete(cluster: &Cluster, candidates: Vec<Candidate>, gaps: &mut Vec<Gap>) -> Vec<DynamicObject> {
    let whole: Vec<_> = stream::iter(&candidates)
        .map(async |Candidate { object, kind, is_whole }| {
            if *is_whole {
                return None;
            }
            let namespace = object.metadata.namespace.as_deref();
            Some(cluster.find(kind, namespace, ObjectId::of(object).name).await)
        })
        .buffered(MAX_CONCURRENT_REQUESTS)
        .collect()
        .await;
    let complete = |(Candidate { object, .. }, whole): (Candidate, Option<kube::Result<_>>)| match whole {
        Some(Ok(Some(whole))) if uid(&whole) == uid(&object) => whole,
        Some(Err(error)) => {
            gaps.push(Gap::of(Identity::of(&object).to_string(), &error));
            object
        }
        // Deleted meanwhile: its metadata has to do.
        _ => object,
    };
    candidates.into_iter().zip(whole).map(complete).collect()
}

async fn objects_in(cluster: &Cluster, list: &DependentList) -> kube::Result<Vec<DynamicObject>> {
    let whole = |params| cluster.list(&list.kind, list.namespace.as_deref(), params);
    match &list.selector {
        Selector::Labels(labels) => whole(ListParams::default().labels(labels)).await,
        Selector::Few => whole(ListParams::default()).await,
        Selector::Metadata => owned(cluster, list, None).await,
        Selector::Without(label) => owned(cluster, list, Some(&format!("!{label}"))).await,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::connection::tests::{cluster, serving};

    fn pod(owners: &[Value]) -> DynamicObject {
        let metadata = json!({"name": "web-1", "namespace": "shop", "uid": "p", "ownerReferences": owners});
        serde_json::from_value(json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})).unwrap()
    }

    #[tokio::test]
    async fn an_owner_whose_name_would_be_another_request_is_not_asked_for() {
        let (cluster, requests) = cluster();
        for name in ["?watch=true", "a/../b", ""] {
            let owner = json!({"apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet", "name": name, "uid": "s"});
            let mut fetched = Fetched::default();
            let path = ascend(&cluster, pod(&[owner]), &mut fetched).await;
            assert_eq!((path.len(), fetched.lost_owners.len()), (1, 0));
            let gap = Gap::new(format!("BasicReplicaSet/{name}"), format!("{name:?} is not an object name"));
            assert_eq!(fetched.gaps, [gap]);
        }
        assert!(requests.lock().unwrap().is_empty(), "{requests:?}");
    }

    #[tokio::test]
    async fn the_garbage_collector_needs_a_version_that_is_served_to_find_out_that_an_owner_is_gone() {
        let (cluster, _) = cluster();
        for (version, expected) in [("v1alpha1", "will delete it"), ("v1alpha0", "keeps it")] {
            let owner = json!({
                "apiVersion": format!("catena.dev/{version}"), "kind": "BasicReplicaSet", "name": "web", "uid": "s",
            });
            let mut fetched = Fetched::default();
            ascend(&cluster, pod(&[owner]), &mut fetched).await;
            let remark = fetched.lost_owners[0].remark();
            assert!(remark.contains(expected), "{remark}");
        }
    }

    #[tokio::test]
    async fn unread_lists_hide_the_dependents_of_the_objects_below_alone() {
        let object = |kind: &str| -> DynamicObject {
            let metadata = json!({"name": "web", "namespace": "shop", "uid": kind});
            serde_json::from_value(
                json!({"apiVersion": "catena.dev/v1alpha1", "kind": kind, "metadata": metadata}),
            )
            .unwrap()
        };
        let (cluster, _) = cluster();
        let hides = async |path: Vec<DynamicObject>, commands: Vec<Kind>| {
            let labelled = LabelledKinds { commands, ..LabelledKinds::default() };
            let mut fetched = Fetched::default();
            let scope = Scope { whole: true, all_kinds: false };
            descend(&cluster, path, &labelled, scope, &mut fetched).await;
            (fetched.gaps.len(), fetched.hides_dependents)
        };
        assert_eq!(hides(vec![object("BasicReplicaSet")], vec![]).await, (1, true));
        assert_eq!(hides(vec![pod(&[]), object("BasicReplicaSet")], vec![]).await, (1, false));
        // Commands come and go beside a chain.
        let restarts = cluster.kinds.find("basicdeploymentrestarts").unwrap().clone();
        assert_eq!(hides(vec![pod(&[])], vec![restarts]).await, (1, false));
    }

    /// The kinds of the children that are found on a server with these answers.
    async fn children(answer: impl Fn(&str) -> Option<Value> + Send + 'static) -> Vec<String> {
        let deployment = serde_json::from_value(json!({
            "apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u1"},
            "status": {"child": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
        }));
        let (cluster, _) = serving(answer);
        let mut fetched = Fetched::default();
        let scope = Scope { whole: true, all_kinds: false };
        descend(&cluster, vec![deployment.unwrap()], &LabelledKinds::default(), scope, &mut fetched).await;
        let tree = crate::chain::grow("u1", &fetched.objects).unwrap();
        let kinds = tree.children.iter().map(|child| child.identity.kind.clone());
        kinds.filter(|kind| kind != "ControllerRevision").collect()
    }

    fn list(item: &Value) -> Value {
        json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": [item]})
    }

    /// Metadata of an object that the BasicDeployment owns.
    fn owned_metadata(uid: &str) -> Value {
        let owner = json!({"apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment", "name": "web", "uid": "u1", "controller": true});
        json!({"name": "web", "namespace": "shop", "uid": uid, "ownerReferences": [owner]})
    }

    #[tokio::test]
    async fn a_former_child_is_found_by_the_kind_that_a_revision_records_also_while_it_is_deleted() {
        let found = children(|uri| {
            let labelled = |plural: &str| {
                uri.contains(&format!("/{plural}?"))
                    && uri.contains("labelSelector=catena.dev%2Fdeployment-uid%3Du1")
            };
            let mut metadata = owned_metadata("r");
            metadata["labels"] = json!({"catena.dev/deployment-uid": "u1"});
            if labelled("controllerrevisions") {
                let rendering =
                    json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"}});
                return Some(list(&json!({"metadata": metadata, "data": rendering, "revision": 1})));
            }
            let mut former = owned_metadata("s");
            former["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            labelled("statefulsets").then(|| list(&json!({"metadata": former, "spec": {"replicas": 1}})))
        });
        assert_eq!(found.await, ["StatefulSet"]);
    }

    #[tokio::test]
    async fn a_child_without_its_label_is_found_by_its_owner() {
        let found = children(|uri| {
            let is_it =
                uri.contains("/deployments?") && uri.contains("labelSelector=%21catena.dev%2Fdeployment-uid");
            is_it.then(|| list(&json!({"metadata": owned_metadata("d")})))
        });
        assert_eq!(found.await, ["Deployment"]);
    }

    #[tokio::test]
    async fn a_command_whose_target_would_be_another_request_asks_for_none() {
        let (cluster, requests) = cluster();
        let mut command = pod(&[]);
        command.types = Some(kube::core::TypeMeta {
            api_version: "catena.dev/v1alpha1".into(),
            kind: "BasicDeploymentRestart".into(),
        });
        command.data = json!({"spec": {"targetRef": {"name": "?watch=true"}}});
        let mut fetched = Fetched::default();
        ascend(&cluster, command, &mut fetched).await;
        assert_eq!((fetched.missing_target, fetched.gaps.len()), (None, 1));
        assert!(requests.lock().unwrap().is_empty(), "{requests:?}");
    }
}
