//! Where the dependents of an object can be: only there they are looked for.

use catena_api::keys;
use catena_cluster::{Identity, Kind, Kinds, LabelledKinds};
use kube::core::DynamicObject;
use serde_json::Value;

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
    /// To the one with a name.
    Name(String),
    /// By labels: these objects belong together, and are fetched whole.
    Labels(String),
    /// Not at all, but there are few of the kind: they are fetched whole.
    Few,
    /// Not at all: metadata is fetched, and then the whole of those objects that belong here.
    Metadata,
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
    let of_kind = |group: &str, plural: &str, selector| -> Vec<DependentList> {
        kinds.named(group, plural).map(|kind| list(kind, selector)).into_iter().collect()
    };
    let of_uid = |key: &str| Selector::Labels(format!("{key}={}", owner.uid));
    let selected =
        || labels_at(object, "/spec/selector/matchLabels").map_or(Selector::Metadata, Selector::Labels);
    let reference = |child: &Value| {
        let name = child["name"].as_str().or(child["metadata"]["name"].as_str())?;
        let child = Identity::new(child["apiVersion"].as_str()?, child["kind"].as_str()?, None, name);
        Some(list(kinds.of(&child)?, Selector::Name(child.name)))
    };
    let mut found: Vec<DependentList> = match (owner.group(), owner.kind.as_str()) {
        // These hardly own anything, and below those without a namespace everything in the cluster would be listed.
        ("" | "events.k8s.io", "Pod" | "Event" | "Node" | "Secret" | "ConfigMap")
        | ("", "Namespace" | "PersistentVolume")
        | ("storage.k8s.io", "StorageClass")
        | ("apiextensions.k8s.io", "CustomResourceDefinition") => Vec::new(),
        // A former child may be of a kind that nothing else names, and have lost its label.
        ("apps", "ControllerRevision") => object.data.get("data").and_then(reference).into_iter().collect(),
        (keys::GROUP, "BasicDeployment") => {
            let status = &object.data["status"];
            let named = status["formerChildren"].as_array().into_iter().flatten().chain([&status["child"]]);
            let children = labelled.children.iter().chain(kinds.named(keys::GROUP, "basicreplicasets"));
            let children = children.map(|kind| list(kind, of_uid(keys::DEPLOYMENT_UID)));
            let revisions = of_kind("apps", "controllerrevisions", of_uid(keys::DEPLOYMENT_UID));
            named.filter_map(reference).chain(children).chain(revisions).collect()
        }
        (keys::GROUP, "BasicReplicaSet") => of_kind("", "pods", of_uid(keys::REPLICA_SET_UID)),
        ("", "Service") => {
            let of_name = Selector::Labels(format!("kubernetes.io/service-name={}", owner.name));
            of_kind("discovery.k8s.io", "endpointslices", of_name)
        }
        ("apps", "Deployment") => of_kind("apps", "replicasets", selected()),
        ("apps", "ReplicaSet" | "StatefulSet" | "DaemonSet") => of_kind("", "pods", selected()),
        ("batch", "Job") => of_kind("", "pods", of_uid("batch.kubernetes.io/controller-uid")),
        ("batch", "CronJob") => of_kind("batch", "jobs", Selector::Metadata),
        // Commands are leaves: they act on their owner.
        of if labelled.commands.iter().any(|kind| (&*kind.resource.group, &*kind.resource.kind) == of) => {
            return Vec::new();
        }
        (group, _) => usual(kinds, group).map(|kind| list(kind, Selector::Metadata)).collect(),
    };
    if everywhere {
        let is_whole = |list: &&DependentList| !matches!(list.selector, Selector::Name(_));
        let known: Vec<_> = found.iter().filter(is_whole).map(|list| list.kind.resource.clone()).collect();
        let others = kinds.preferred().filter(|kind| {
            let can_hold = kind.is_listed && (kind.is_namespaced || owner.namespace.is_none());
            can_hold && kind.resource.kind != "Event" && !known.contains(&kind.resource)
        });
        found.extend(others.map(|kind| list(kind, Selector::Metadata)));
    }
    if owner.namespace.is_some() {
        found.extend(labelled.commands.iter().map(|kind| list(kind, Selector::Few)));
    }
    found
}

/// Some operators have hundreds, each of which is a request.
const MAX_KINDS_OF_PARTS: usize = 12;

/// The usual dependents: workloads with their accessories, and the kinds of the same operator.
fn usual<'k>(kinds: &'k Kinds, group: &'k str) -> impl Iterator<Item = &'k Kind> {
    let is_usual = |kind: &&Kind| {
        matches!(
            (kind.resource.group.as_str(), kind.resource.plural.as_str()),
            ("apps", "deployments" | "replicasets" | "statefulsets" | "daemonsets")
                | ("batch", "jobs" | "cronjobs")
                | ("", "pods" | "services" | "persistentvolumeclaims" | "configmaps" | "secrets")
                | ("policy", "poddisruptionbudgets")
        )
    };
    // Many operators have a group for each of their parts, such as acme.cert-manager.io.
    let is_part = |part: &str, of: &str| part.strip_suffix(of).is_some_and(|rest| rest.ends_with('.'));
    let is_own = move |kind: &&Kind| kind.resource.group == group && group.contains('.');
    let mut parts = 0;
    let mut is_of_part = move |kind: &&Kind| {
        let own = kind.resource.group.as_str();
        let is_of_part = own.contains('.') && (is_part(own, group) || is_part(group, own));
        parts += usize::from(is_of_part);
        is_of_part && parts <= MAX_KINDS_OF_PARTS
    };
    let is_ours = |kind: &&Kind| kind.resource.group == keys::GROUP;
    kinds.preferred().filter(move |kind| {
        let may_be = kind.is_listed && kind.is_namespaced;
        may_be && (is_usual(kind) || is_own(kind) || is_ours(kind) || is_of_part(kind))
    })
}

/// The labels in a field as a selector that the API takes; the expressions of a workload are left to the comparison of uids.
pub fn labels_at(object: &DynamicObject, pointer: &str) -> Option<String> {
    let labels = object.data.pointer(pointer).and_then(Value::as_object)?;
    let pairs = labels.iter().filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)));
    let joined = pairs.collect::<Vec<_>>().join(",");
    (!joined.is_empty()).then_some(joined)
}

#[cfg(test)]
mod tests {
    use catena_cluster::testing::kinds;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_children_of_a_known_kind_are_read_by_name_or_listed_by_label() {
        let child = |name: &str| json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name});
        let object = |kind: &str| {
            serde_json::from_value(json!({
                "apiVersion": "catena.dev/v1alpha1", "kind": kind,
                "metadata": {"name": "web", "namespace": "shop", "uid": "u1"},
                "status": {"child": child("web"), "formerChildren": [child("old")]},
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
            ("deployments", Selector::Name("old".into())),
            ("deployments", Selector::Name("web".into())),
            ("basicreplicasets", labelled.clone()),
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
    fn only_the_kinds_of_commands_have_no_dependents_and_not_others_of_the_same_name() {
        let commands = vec![kinds().find("reindexes").unwrap().clone()];
        let labelled = LabelledKinds { commands, ..LabelledKinds::default() };
        for (group, has_any) in [("acme.dev", false), ("other.dev", true)] {
            let object = serde_json::from_value(json!({
                "apiVersion": format!("{group}/v1"), "kind": "Reindex", "metadata": {"name": "r", "namespace": "shop", "uid": "u"},
            }));
            let found = dependent_lists(&object.unwrap(), &kinds(), &labelled, false);
            assert_eq!(!found.is_empty(), has_any, "{group}");
        }
    }

    #[test]
    fn the_kinds_of_a_part_of_an_operator_are_its_own() {
        for (group, is_listed) in
            [("acme.dev", true), ("parts.acme.dev", true), ("pacme.dev", false), ("", false)]
        {
            let own: Vec<_> = usual(&kinds(), group).map(|kind| kind.resource.plural.clone()).collect();
            assert_eq!(own.contains(&"reindexes".to_owned()), is_listed, "{group}: {own:?}");
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
