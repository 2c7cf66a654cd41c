//! Fetches the objects of a chain: upwards by owner references, downwards by lists.

use std::collections::HashSet;

use anyhow::{Context, Result};
use catena_cluster::{
    Cluster, Gap, Identity, LabelledKinds, PAGE_SIZE, Pages, Target, first_owner, labelled_kinds,
};
use catena_terminal::sanitized;
use futures::{StreamExt, stream};
use kube::{ResourceExt, api::ListParams, core::DynamicObject};
use operator_watch::Pruned;
use serde_json::Value;

use super::{DependentList, Node, Selector, dependents, tree};

const MAX_CONCURRENT_REQUESTS: usize = 16;
/// A longer line of owners is a circle.
const MAX_OWNERS: usize = 16;
/// Levels of dependents below an object: anybody can make a line of them as long as they like.
const MAX_LEVELS: usize = 32;

/// The extent of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Upwards as well.
    pub whole: bool,
    /// Downwards in all kinds.
    pub all_kinds: bool,
}

/// The result of a search.
#[derive(Default)]
pub struct Fetched {
    /// All objects that may belong to the chain.
    pub objects: Vec<DynamicObject>,
    /// The uid of the asked object.
    pub asked: String,
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
pub struct LostOwner {
    /// The uid of the object that names it.
    pub of: String,
    /// The owner.
    pub owner: Identity,
    /// What becomes of the object that names it: the end of a sentence.
    fate: String,
}

impl LostOwner {
    fn of(object: &DynamicObject, owner: Identity, is_served: bool) -> Self {
        let fate = match object.owner_references().len() {
            _ if object.metadata.deletion_timestamp.is_some() => String::new(),
            _ if !is_served => format!(
                ", but the garbage collector cannot find that out and keeps it, because the server does not serve {}, which the owner reference names: correct apiVersion in metadata.ownerReferences, or delete it",
                sanitized(&owner.api_version)
            ),
            1 => ": the garbage collector will delete it".to_owned(),
            _ => ": the garbage collector will delete it unless another owner of it is there".to_owned(),
        };
        Self { of: uid(object), owner, fate }
    }

    /// What becomes of the object that names it. The garbage collector may have told that it is elsewhere.
    #[must_use]
    pub fn remark(&self, is_elsewhere: bool) -> String {
        let is = if is_elsewhere { "is in another namespace, and counts as gone" } else { "is gone" };
        format!("its owner {} {is}{}", self.owner, self.fate)
    }
}

/// Fetches the chain of an object: its tree, and what was found out beside that.
///
/// # Errors
/// When the object does not exist, or cannot be read.
pub async fn fetch(cluster: &Cluster, target: &Target, scope: Scope) -> Result<(Node, Fetched)> {
    let (asked, (labelled, gaps)) = futures::join!(cluster.get(target), labelled_kinds(cluster));
    let asked = asked?;
    let kind = cluster.kinds.of(&Identity::of(&asked));
    let is_declared_command = kind.is_some_and(|kind| kind.is_among(&labelled.commands));
    let mut fetched = Fetched { asked: uid(&asked), is_declared_command, gaps, ..Fetched::default() };
    let path = if scope.whole { ascend(cluster, asked, &mut fetched).await } else { vec![asked] };
    let top = path.last().map(uid).unwrap_or_default();
    descend(cluster, path, &labelled, scope, &mut fetched).await;
    let tree = tree::grow(&top, &fetched.objects).context("the object was deleted just now")?;
    Ok((tree, fetched))
}

/// An object with its dependents, as far as they could be read.
pub async fn with_dependents(cluster: &Cluster, object: DynamicObject) -> (Option<Node>, Vec<Gap>) {
    let (top, mut fetched) = (uid(&object), Fetched::default());
    descend(cluster, vec![object], &LabelledKinds::default(), Scope::default(), &mut fetched).await;
    (tree::grow(&top, &fetched.objects), fetched.gaps)
}

fn uid(object: &DynamicObject) -> String {
    object.metadata.uid.clone().unwrap_or_default()
}

/// The line of owners, each looked up by name and compared by uid, the highest last. Not all of them would be found again
/// from above, where dependents are searched only in the usual kinds. A command that is not bound yet has only a target.
async fn ascend(cluster: &Cluster, asked: DynamicObject, fetched: &mut Fetched) -> Vec<DynamicObject> {
    let mut path = vec![asked];
    while let Some(here) = path.last().filter(|_| path.len() <= MAX_OWNERS) {
        let owner = first_owner(&here.metadata);
        let owner = owner.map(|owner| Identity::of_owner(owner, here.metadata.namespace.clone()));
        let Some(above) = owner.or_else(|| tree::target(here)) else { break };
        let Some(kind) = cluster.kinds.of(&above) else {
            fetched.gaps.push(Gap::new(above.to_string(), "the server has no such kind"));
            break;
        };
        match cluster.at(kind, above.namespace.as_deref(), &above.name).find().await {
            Ok(Some(object)) if above.uid.is_empty() || uid(&object) == above.uid => {
                path.push(object);
                continue;
            }
            Ok(_) if above.uid.is_empty() => fetched.missing_target = Some(above),
            Ok(_) => {
                let is_served = kind.resource.api_version == above.api_version;
                fetched.lost_owners.push(LostOwner::of(here, above, is_served));
            }
            Err(error) => fetched.gaps.push(Gap::of(above.to_string(), &error)),
        }
        break;
    }
    path
}

/// Lists dependents, until there is no new one.
async fn descend(
    cluster: &Cluster,
    path: Vec<DynamicObject>,
    labelled: &LabelledKinds,
    scope: Scope,
    fetched: &mut Fetched,
) {
    let lists = |object: &DynamicObject| {
        dependents::dependent_lists(object, &cluster.kinds, labelled, scope.all_kinds)
    };
    let asked = path.first().map(uid).unwrap_or_default();
    let (mut listed, mut failed): (Vec<DependentList>, Vec<DependentList>) = Default::default();
    let mut candidates: Vec<DynamicObject> = Vec::new();
    let mut known: HashSet<String> = path.iter().map(uid).collect();
    let mut newest = path;
    let mut levels = 0;
    while !newest.is_empty() && levels < MAX_LEVELS {
        levels += 1;
        let known_lists = listed.len();
        for list in newest.iter().flat_map(lists) {
            if !listed.contains(&list) {
                listed.push(list);
            }
        }
        fetched.objects.append(&mut newest);
        let answers =
            stream::iter(&listed[known_lists..]).map(async |list| (list, objects_in(cluster, list).await));
        let answers: Vec<_> = answers.buffered(MAX_CONCURRENT_REQUESTS).collect().await;
        for (list, answer) in answers {
            match answer {
                Ok(objects) => candidates.extend(objects),
                Err(error) => {
                    let gap = Gap::of(&list.kind.resource.plural, &error);
                    if !fetched.gaps.contains(&gap) {
                        fetched.gaps.push(gap);
                    }
                    failed.push(list.clone());
                }
            }
        }
        let (belonging, rest): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|candidate| belongs(candidate, &known, &fetched.objects));
        candidates = rest;
        let new: Vec<_> = belonging.into_iter().filter(|object| known.insert(uid(object))).collect();
        let complete = stream::iter(new).map(|object| whole(cluster, object));
        let complete: Vec<_> = complete.buffered(MAX_CONCURRENT_REQUESTS).collect().await;
        for (object, gap) in complete {
            newest.push(object);
            fetched.gaps.extend(gap);
        }
    }
    let is_cut = !newest.is_empty();
    if is_cut {
        fetched.objects.append(&mut newest);
        fetched.gaps.push(Gap::new("dependents", "there are too many levels"));
    }
    failed.retain(DependentList::has_health);
    let is_hiding = |node: &Node| lists(&node.object).iter().any(|list| failed.contains(list));
    let hides_any = || tree::grow(&asked, &fetched.objects).is_some_and(|asked| asked.all().any(is_hiding));
    fetched.is_incomplete = is_cut || !failed.is_empty();
    fetched.hides_dependents = is_cut || fetched.is_incomplete && hides_any();
}

/// Whether an object is owned by a known one, or a command for one.
fn belongs(object: &DynamicObject, known: &HashSet<String>, objects: &[DynamicObject]) -> bool {
    object.owner_references().iter().any(|owner| known.contains(&owner.uid))
        || tree::labelled_target(object).is_some_and(|uid| known.contains(uid))
        || tree::target(object)
            .is_some_and(|named| objects.iter().any(|target| Identity::of(target).is_named_by(&named)))
}

/// The whole of an object of which perhaps only the metadata is known.
async fn whole(cluster: &Cluster, object: DynamicObject) -> (DynamicObject, Option<Gap>) {
    let identity = Identity::of(&object);
    let Some(kind) = cluster.kinds.of(&identity).filter(|_| object.data.is_null()) else {
        return (object, None);
    };
    match cluster.at(kind, identity.namespace.as_deref(), &identity.name).find().await {
        Ok(Some(whole)) if uid(&whole) == identity.uid => (whole, None),
        // Deleted meanwhile: its metadata has to do.
        Ok(_) => (object, None),
        Err(error) => (object, Some(Gap::of(identity.to_string(), &error))),
    }
}

async fn objects_in(cluster: &Cluster, list: &DependentList) -> kube::Result<Vec<DynamicObject>> {
    let DependentList { kind, namespace, selector } = list;
    let namespace = namespace.as_deref();
    match selector {
        Selector::Name(name) => Ok(cluster.at(kind, namespace, name).find().await?.into_iter().collect()),
        Selector::Labels(labels) => cluster.list(kind, namespace, ListParams::default().labels(labels)).await,
        Selector::Few => cluster.list(kind, namespace, ListParams::default()).await,
        Selector::Metadata => related(cluster, list).await,
    }
}

/// The metadata of the objects that have an owner, or a label with the uid of their target.
async fn related(cluster: &Cluster, list: &DependentList) -> kube::Result<Vec<DynamicObject>> {
    let DependentList { kind, namespace, .. } = list;
    let params = match namespace {
        // From the server's cache and in one response: a page costs a round trip.
        Some(_) if kind.is_namespaced => ListParams::default().match_any(),
        // The objects of a whole cluster are too many for one response.
        _ => ListParams::default().limit(PAGE_SIZE),
    };
    let mut pages = Pages::of_metadata(&cluster.client, kind.url(namespace.as_deref()), params);
    let mut objects = Vec::new();
    while let Some(page) = pages.next::<Pruned>().await? {
        let all = page.into_iter().map(|Pruned { metadata }| DynamicObject {
            types: Some(kind.types()),
            metadata,
            data: Value::Null,
        });
        let is_related = |object: &DynamicObject| {
            !object.owner_references().is_empty() || tree::labelled_target(object).is_some()
        };
        objects.extend(all.filter(is_related));
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use catena_cluster::{
        Kind,
        testing::{cluster, serving},
    };
    use serde_json::{Value, json};

    use super::*;

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
            let remark = fetched.lost_owners[0].remark(false);
            assert!(remark.contains(expected), "{remark}");
        }
    }

    #[tokio::test]
    async fn an_object_with_another_owner_is_not_said_to_be_deleted() {
        let (cluster, _) = cluster();
        let owner = |name: &str| json!({"apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet", "name": name, "uid": name});
        let mut fetched = Fetched::default();
        ascend(&cluster, pod(&[owner("gone"), owner("other")]), &mut fetched).await;
        let remark = fetched.lost_owners[0].remark(false);
        assert!(remark.ends_with("will delete it unless another owner of it is there"), "{remark}");
    }

    #[tokio::test]
    async fn what_becomes_of_an_object_whose_owner_is_missing_is_told_as_far_as_it_is_news() {
        let (cluster, _) = cluster();
        let owner = json!({"apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet", "name": "web", "uid": "s"});
        let remark = async |is_deleted: bool, is_elsewhere: bool| {
            let mut object = pod(std::slice::from_ref(&owner));
            let at = is_deleted.then(|| serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
            object.metadata.deletion_timestamp = at;
            let mut fetched = Fetched::default();
            ascend(&cluster, object, &mut fetched).await;
            fetched.lost_owners[0].remark(is_elsewhere)
        };
        assert_eq!(remark(true, false).await, "its owner BasicReplicaSet/web is gone");
        let elsewhere = "its owner BasicReplicaSet/web is in another namespace, and counts as gone";
        let deletes = format!("{elsewhere}: the garbage collector will delete it");
        assert_eq!(remark(false, true).await, deletes);
        assert_eq!(remark(true, true).await, elsewhere);
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
        let tree = tree::grow("u1", &fetched.objects).unwrap();
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
    async fn a_former_child_is_found_by_the_name_that_a_revision_records_also_while_it_is_deleted() {
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
            uri.ends_with("/statefulsets/web").then(|| json!({"metadata": former, "spec": {"replicas": 1}}))
        });
        assert_eq!(found.await, ["StatefulSet"]);
    }

    #[tokio::test]
    async fn a_child_without_its_label_is_found_by_its_name_if_it_is_owned() {
        for (owner, expected) in [("u1", &["Deployment"][..]), ("u2", &[][..])] {
            let found = children(move |uri| {
                let mut metadata = owned_metadata("d");
                metadata["ownerReferences"][0]["uid"] = owner.into();
                uri.ends_with("/deployments/web").then(|| json!({"metadata": metadata}))
            });
            assert_eq!(found.await, expected);
        }
    }

    #[tokio::test]
    async fn a_line_of_dependents_that_anybody_can_make_endless_is_cut_and_told() {
        let reindex = |number: usize| {
            let owner = number.checked_sub(1).map(|above| json!([{"apiVersion": "acme.dev/v1", "kind": "Reindex", "name": above.to_string(), "uid": above.to_string()}]));
            let name = number.to_string();
            json!({"apiVersion": "acme.dev/v1", "kind": "Reindex", "metadata": {"name": name, "namespace": "shop", "uid": name, "ownerReferences": owner}})
        };
        let (cluster, _) = serving(move |uri| match uri.split('?').next()?.split_once("/reindexes")?.1 {
            "" => Some(json!({"metadata": {}, "items": (0..100).map(reindex).collect::<Vec<_>>()})),
            name => Some(reindex(name.trim_start_matches('/').parse().ok()?)),
        });
        let (mut fetched, scope) = (Fetched::default(), Scope { whole: true, all_kinds: false });
        let top = serde_json::from_value(reindex(0)).unwrap();
        descend(&cluster, vec![top], &LabelledKinds::default(), scope, &mut fetched).await;
        assert_eq!(fetched.objects.len(), 1 + MAX_LEVELS);
        assert!(fetched.gaps.iter().any(|gap| gap.why == "there are too many levels"), "{:?}", fetched.gaps);
        assert!(fetched.hides_dependents && fetched.is_incomplete);
    }

    #[tokio::test]
    async fn the_objects_of_a_whole_cluster_are_read_page_by_page() {
        let (cluster, requests) = serving(|uri| {
            let owner = json!({"apiVersion": "acme.dev/v1", "kind": "Site", "name": "s", "uid": "s"});
            let is_second = uri.contains("continue=more");
            let name = if is_second { "b" } else { "a" };
            let items = json!([{"metadata": {"name": name, "namespace": "shop", "uid": name, "ownerReferences": [owner]}}]);
            let more = if is_second || !uri.contains("limit=") { "" } else { "more" };
            Some(json!({"kind": "List", "apiVersion": "v1", "metadata": {"continue": more}, "items": items}))
        });
        let list = |namespace: Option<&str>| DependentList {
            kind: cluster.kinds.find("pods").unwrap().clone(),
            namespace: namespace.map(str::to_owned),
            selector: Selector::Metadata,
        };
        let found = related(&cluster, &list(None)).await.unwrap();
        assert_eq!(found.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["a", "b"]);
        let paged = |uri: &String| uri.contains("limit=500") && !uri.contains("resourceVersion=");
        assert!(requests.lock().unwrap().iter().all(paged), "{requests:?}");
        // In a namespace, one response from the cache is faster.
        related(&cluster, &list(Some("shop"))).await.unwrap();
        let newest = requests.lock().unwrap().last().cloned().unwrap();
        assert!(newest.contains("resourceVersion=0") && !newest.contains("limit="), "{newest}");
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
