//! The lists in which the dependents of an object can be: only these are read.

use catena_api::keys;
use kube::core::DynamicObject;
use serde_json::Value;

use super::labelled_kinds::LabelledKinds;
use crate::{
    kinds::{Kind, Kinds},
    object::Identity,
};

/// A list that may hold dependents.
#[derive(Clone, Debug, PartialEq)]
pub struct DependentList {
    /// Their kind.
    pub kind: Kind,
    /// Their namespace; none for the dependents of a cluster-wide object, which may be in any.
    pub namespace: Option<String>,
    /// The filter for the server.
    pub selector: Selector,
}

/// Kinds without a status.
const WITHOUT_STATUS: [&str; 4] = ["configmaps", "controllerrevisions", "secrets", "serviceaccounts"];

impl DependentList {
    /// Whether the objects of the list can be the reason why their owner is not well. Commands act beside it.
    pub fn has_health(&self) -> bool {
        self.selector != Selector::Few && !WITHOUT_STATUS.contains(&self.kind.resource.plural.as_str())
    }
}

/// How a list is narrowed by the server.
#[derive(Clone, Debug, PartialEq)]
pub enum Selector {
    /// By labels: these objects belong together, and are fetched whole.
    Labels(String),
    /// By the absence of a label, for those objects from which somebody removed it: as [`Self::Metadata`].
    Without(&'static str),
    /// Not at all, but there are few of the kind: they are fetched whole.
    Few,
    /// Not at all: metadata is fetched, and then the whole of those objects that belong here.
    Metadata,
}

impl Selector {
    /// Whether the objects are fetched whole.
    pub fn is_whole(&self) -> bool {
        matches!(self, Self::Labels(_) | Self::Few)
    }
}

/// The lists in which the dependents of an object can be.
pub fn dependent_lists(
    object: &DynamicObject,
    kinds: &Kinds,
    labelled: &LabelledKinds,
    everywhere: bool,
) -> Vec<DependentList> {
    let owner = Identity::of(object);
    let list = |kind: &Kind, selector: Selector| DependentList {
        kind: kind.clone(),
        namespace: owner.namespace.clone(),
        selector,
    };
    let by_labels = |group: &str, plural: &str, labels: Option<String>| {
        kinds.named(group, plural).map(|kind| list(kind, labels.map_or(Selector::Metadata, Selector::Labels)))
    };
    let of_uid = |key: &str| Some(format!("{key}={}", owner.uid));
    let by_selector = |group: &str, plural: &str| by_labels(group, plural, match_labels(object));
    let mut found: Vec<DependentList> = match (owner.group(), owner.kind.as_str()) {
        // These hardly own anything, and below those without a namespace everything in the cluster would be listed.
        ("" | "events.k8s.io", "Pod" | "Event" | "Node" | "Secret" | "ConfigMap")
        | ("", "Namespace" | "PersistentVolume")
        | ("storage.k8s.io", "StorageClass")
        | ("apiextensions.k8s.io", "CustomResourceDefinition") => Vec::new(),
        // A former child serves until the next one does, and may be of a kind that nothing else names.
        ("apps", "ControllerRevision") => {
            let uid = object.metadata.labels.as_ref().and_then(|labels| labels.get(keys::DEPLOYMENT_UID));
            let child = uid.zip(recorded_kind(object).and_then(|child| kinds.of(&child)));
            child.into_iter().flat_map(|(uid, kind)| lists_of_children(kind, &owner, uid)).collect()
        }
        (keys::GROUP, "BasicDeployment") => {
            let named = child_kind(object).and_then(|child| kinds.of(&child));
            let mut children: Vec<&Kind> = Vec::new();
            for kind in
                labelled.children.iter().chain(kinds.named(keys::GROUP, "basicreplicasets")).chain(named)
            {
                if !children.iter().any(|known| known.resource == kind.resource) {
                    children.push(kind);
                }
            }
            let children = children.into_iter().flat_map(|kind| lists_of_children(kind, &owner, &owner.uid));
            children.chain(by_labels("apps", "controllerrevisions", of_uid(keys::DEPLOYMENT_UID))).collect()
        }
        (keys::GROUP, "BasicReplicaSet") => {
            by_labels("", "pods", of_uid(keys::REPLICA_SET_UID)).into_iter().collect()
        }
        ("apps", "Deployment") => by_selector("apps", "replicasets").into_iter().collect(),
        ("apps", "ReplicaSet" | "StatefulSet" | "DaemonSet") => by_selector("", "pods").into_iter().collect(),
        ("batch", "Job") => {
            by_labels("", "pods", of_uid("batch.kubernetes.io/controller-uid")).into_iter().collect()
        }
        ("batch", "CronJob") => by_labels("batch", "jobs", None).into_iter().collect(),
        // Commands are leaves: they act on their owner.
        _ if labelled.commands.iter().any(|kind| kind.resource.kind == owner.kind) => return Vec::new(),
        (group, _) => usual(kinds, group).map(|kind| list(kind, Selector::Metadata)).collect(),
    };
    if everywhere {
        let all = kinds
            .preferred()
            .filter(|kind| kind.is_listed && (kind.is_namespaced || owner.namespace.is_none()));
        for kind in all.filter(|kind| kind.resource.kind != "Event") {
            if !found.iter().any(|known| known.kind.resource == kind.resource) {
                found.push(list(kind, Selector::Metadata));
            }
        }
    }
    if owner.namespace.is_some() {
        found.extend(labelled.commands.iter().map(|kind| list(kind, Selector::Few)));
    }
    found
}

/// The usual dependents: workloads with their accessories, and the kinds of the same operator.
fn usual<'k>(kinds: &'k Kinds, group: &'k str) -> impl Iterator<Item = &'k Kind> {
    const USUAL: [(&str, &str); 12] = [
        ("apps", "deployments"),
        ("apps", "replicasets"),
        ("apps", "statefulsets"),
        ("apps", "daemonsets"),
        ("batch", "jobs"),
        ("batch", "cronjobs"),
        ("", "pods"),
        ("", "services"),
        ("", "persistentvolumeclaims"),
        ("", "configmaps"),
        ("", "secrets"),
        ("policy", "poddisruptionbudgets"),
    ];
    let is_usual =
        |kind: &&Kind| USUAL.contains(&(kind.resource.group.as_str(), kind.resource.plural.as_str()));
    let is_own = move |kind: &&Kind| kind.resource.group.contains('.') && kind.resource.group == group;
    let is_ours = |kind: &&Kind| kind.resource.group == keys::GROUP;
    kinds.preferred().filter(move |kind| {
        kind.is_listed && kind.is_namespaced && (is_usual(kind) || is_own(kind) || is_ours(kind))
    })
}

/// The lists with the children of the BasicDeployment with a uid, beside an object in its namespace: those with its label,
/// and those that have only the owner.
fn lists_of_children(kind: &Kind, beside: &Identity, uid: &str) -> [DependentList; 2] {
    let labelled = Selector::Labels(format!("{}={uid}", keys::DEPLOYMENT_UID));
    [labelled, Selector::Without(keys::DEPLOYMENT_UID)].map(|selector| DependentList {
        kind: kind.clone(),
        namespace: beside.namespace.clone(),
        selector,
    })
}

/// The kind of the child that a BasicDeployment's status names.
fn child_kind(object: &DynamicObject) -> Option<Identity> {
    kind_in(object.data.pointer("/status/child")?)
}

/// The kind of the child in a revision of a BasicDeployment.
fn recorded_kind(revision: &DynamicObject) -> Option<Identity> {
    kind_in(revision.data.get("data")?)
}

fn kind_in(child: &Value) -> Option<Identity> {
    let text = |field: &str| child[field].as_str().map(str::to_owned);
    Some(Identity { api_version: text("apiVersion")?, kind: text("kind")?, ..Identity::default() })
}

/// The selector of a workload as the API takes it; expressions are left to the comparison of uids.
fn match_labels(object: &DynamicObject) -> Option<String> {
    let labels = object.data.pointer("/spec/selector/matchLabels").and_then(Value::as_object)?;
    let pairs = labels.iter().filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)));
    let joined = pairs.collect::<Vec<_>>().join(",");
    (!joined.is_empty()).then_some(joined)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::tests::kinds;

    #[test]
    fn the_children_of_a_known_kind_are_listed_by_label() {
        let object = |kind: &str| {
            serde_json::from_value(json!({
                "apiVersion": "catena.dev/v1alpha1", "kind": kind,
                "metadata": {"name": "web", "namespace": "shop", "uid": "u1"},
            }))
            .unwrap()
        };
        let found = dependent_lists(&object("BasicReplicaSet"), &kinds(), &LabelledKinds::default(), false);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].kind.resource.plural, "pods");
        assert_eq!(found[0].selector, Selector::Labels("catena.dev/replicaset-uid=u1".into()));
        let found = dependent_lists(&object("BasicDeployment"), &kinds(), &LabelledKinds::default(), false);
        let labelled = Selector::Labels("catena.dev/deployment-uid=u1".into());
        let lists = found.iter().map(|list| (list.kind.resource.plural.as_str(), list.selector.clone()));
        let expected = [
            ("basicreplicasets", labelled.clone()),
            ("basicreplicasets", Selector::Without("catena.dev/deployment-uid")),
            ("controllerrevisions", labelled),
        ];
        assert_eq!(lists.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn below_a_cluster_wide_object_that_owns_nothing_no_list_is_read() {
        for (version, kind) in [
            ("v1", "Namespace"),
            ("v1", "PersistentVolume"),
            ("storage.k8s.io/v1", "StorageClass"),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ] {
            let object =
                json!({"apiVersion": version, "kind": kind, "metadata": {"name": "shop", "uid": "u"}});
            let object = serde_json::from_value(object).unwrap();
            assert_eq!(dependent_lists(&object, &kinds(), &LabelledKinds::default(), false), [], "{kind}");
        }
    }

    #[test]
    fn of_an_unknown_kind_only_metadata_is_listed() {
        let object = serde_json::from_value(json!({
            "apiVersion": "db.example/v1", "kind": "Database", "metadata": {"name": "d", "namespace": "shop", "uid": "u"},
        }))
        .unwrap();
        let found = dependent_lists(&object, &kinds(), &LabelledKinds::default(), false);
        assert!(
            found.len() >= 4 && found.iter().all(|list| list.selector == Selector::Metadata),
            "{found:?}"
        );
    }
}
