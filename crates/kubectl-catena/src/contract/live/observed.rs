//! What is there, as the watches have shown it last. Pure.

use std::collections::{BTreeMap, BTreeSet};

use basic_deployment_controller::outputs::Outputs;

use super::{Expectation, Replica};

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
