//! What is there, as the watches have shown it last, and whether a child says that it is ready while its replicas are not. Pure.

use std::collections::{BTreeMap, BTreeSet};

use catena_cluster::{condition, text};
use kube::{ResourceExt, core::DynamicObject};
use replica_contract::Outputs;

use super::Requirement;

/// A state of a child.
#[derive(Clone, Debug)]
pub struct Child {
    /// Its name.
    pub name: String,
    /// Its version.
    pub resource_version: String,
    /// The generation of its spec.
    pub generation: i64,
    /// Its outputs, by the parent's own rules.
    pub outputs: Outputs,
}

impl Child {
    /// Whether its outputs refer to its present spec.
    pub fn is_current(&self) -> bool {
        self.outputs.observed_generation == Some(self.generation)
    }
}

/// What the trials see.
#[derive(Debug, Default)]
pub struct Observed {
    /// The children, by their names.
    pub children: BTreeMap<String, Child>,
    /// The replicas, by the uids of their pods.
    pub replicas: BTreeMap<String, Replica>,
    /// By what any readiness is judged; none while a change is on its way.
    pub expectation: Option<Expectation>,
    /// The fewest replicas that served at any time since they are counted.
    pub least_serving: Option<usize>,
}

impl Observed {
    /// The number of replicas that serve.
    pub fn serving(&self) -> usize {
        self.replicas.values().filter(|replica| replica.serves).count()
    }

    /// The number of replicas that are alive.
    pub fn alive(&self) -> usize {
        self.replicas.values().filter(|replica| replica.is_alive).count()
    }

    /// The uids of all pods.
    pub fn uids(&self) -> BTreeSet<String> {
        self.replicas.keys().cloned().collect()
    }

    /// The versions of everything.
    pub fn versions(&self) -> BTreeMap<String, String> {
        let children = self.children.values();
        let children = children.map(|child| (child.name.clone(), child.resource_version.clone()));
        let pods = self.replicas.values();
        children.chain(pods.map(|pod| (format!("Pod/{}", pod.name), pod.resource_version.clone()))).collect()
    }
}

/// A replica.
#[derive(Clone, Debug, PartialEq)]
pub struct Replica {
    /// The uid of its pod.
    pub uid: String,
    /// The name of its pod.
    pub name: String,
    /// The version of its pod.
    pub resource_version: String,
    /// The labels of its pod.
    pub labels: BTreeMap<String, String>,
    /// Whether its pod neither is being deleted nor has ended.
    pub is_alive: bool,
    /// Whether it is alive, and its pod is ready.
    pub serves: bool,
}

impl Replica {
    /// The replica of a pod.
    pub fn of(pod: &DynamicObject) -> Self {
        let has_ended = matches!(text(pod, "/status/phase"), Some("Succeeded" | "Failed"));
        let is_alive = pod.metadata.deletion_timestamp.is_none() && !has_ended;
        let is_ready = condition(pod, "Ready").is_some_and(|ready| ready.status == "True");
        Self {
            uid: pod.uid().unwrap_or_default(),
            name: pod.name_any(),
            resource_version: pod.resource_version().unwrap_or_default(),
            labels: pod.metadata.labels.clone().unwrap_or_default(),
            is_alive,
            serves: is_alive && is_ready,
        }
    }
}

/// The circumstances in which a child may say that it is ready.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// The name of the child.
    pub child: String,
    /// Its generation after the last change; what it says of an older one does not count.
    pub generation: i64,
    /// Its desired number of replicas.
    pub replicas: usize,
    /// The uids of replicas of an older template or token.
    pub old: BTreeSet<String>,
    /// The uids of replicas of another child.
    pub others: BTreeSet<String>,
    /// The requirement that a false claim breaks.
    pub blame: Requirement,
}

impl Expectation {
    /// Why readiness is a lie while these are all replicas; `None` if it is not.
    pub fn lie(&self, replicas: &[Replica]) -> Option<String> {
        let own = || replicas.iter().filter(|replica| !self.others.contains(&replica.uid));
        let old = own().filter(|replica| replica.is_alive && self.old.contains(&replica.uid)).count();
        if old > 0 {
            return Some(format!("it says ready while {old} of the replaced pods are still there"));
        }
        let new = own().filter(|replica| replica.serves).count();
        let wanted = self.replicas;
        (new < wanted).then(|| format!("it says ready while {new} of {wanted} replicas serve"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replica(uid: &str, is_alive: bool, serves: bool) -> Replica {
        Replica {
            uid: uid.into(),
            name: uid.into(),
            resource_version: "1".into(),
            labels: BTreeMap::new(),
            is_alive,
            serves,
        }
    }

    fn expectation(replicas: usize, old: &[&str]) -> Expectation {
        Expectation {
            child: "web".into(),
            generation: 2,
            replicas,
            old: old.iter().map(|uid| (*uid).to_owned()).collect(),
            others: BTreeSet::from(["beside".to_owned()]),
            blame: Requirement::Ready,
        }
    }

    #[test]
    fn readiness_is_true_only_while_all_serve_and_no_old_one_is_left() {
        let (new, old) = (replica("new", true, true), replica("old", true, true));
        assert_eq!(expectation(1, &["old"]).lie(std::slice::from_ref(&new)), None);
        let lie = expectation(1, &["old"]).lie(&[new.clone(), old.clone()]).unwrap();
        assert!(lie.contains("1 of the replaced pods"), "{lie}");
        assert_eq!(expectation(1, &["old"]).lie(&[new.clone(), replica("old", false, false)]), None);
        let lie = expectation(2, &[]).lie(&[new.clone(), replica("starting", true, false)]).unwrap();
        assert!(lie.contains("1 of 2 replicas"), "{lie}");
        assert!(expectation(2, &[]).lie(&[new, replica("beside", true, true)]).is_some());
    }
}
