//! The model of the API server, on which the decisions of the controllers are checked, agrees with the real one: random
//! operations have the same answers and results on both.
//!
//! `CATENA_SEED` repeats a run; `CATENA_OPERATIONS=2000` makes a long one.

use anyhow::{Context, Result};
use e2e::{Cluster, OwnNode, generated, twin::Twin};
use model::server::{
    object::{FOREGROUND, Key, Kind, Meta, Object, Owner, Version},
    operation::{Change, Operation, Preconditions, Propagation, Verb},
};
use proptest::{prelude::*, strategy::ValueTree};

/// Number of operations of a run by default.
const OPERATIONS: usize = 150;
/// Number of operations in one namespace.
const SEQUENCE: usize = 15;

/// A choice among few.
type Choice = u8;

/// The random choices of one operation.
#[derive(Clone, Debug)]
struct Step {
    operation: Choice,
    is_pod: bool,
    name: Choice,
    precondition: Choice,
    change: Choice,
    value: Choice,
    flags: (bool, bool, bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0..12u8, any::<bool>(), 0..2u8, 0..8u8, 0..8u8, 1..4u8, any::<(bool, bool, bool)>());
    let step = step.prop_map(|(operation, is_pod, name, precondition, change, value, flags)| Step {
        operation,
        is_pod,
        name,
        precondition,
        change,
        value,
        flags,
    });
    prop::collection::vec(step, SEQUENCE)
}

impl Step {
    fn key(&self) -> Key {
        let kind = if self.is_pod { Kind::Pod } else { Kind::ReplicaSet };
        Key { kind, name: ["a", "b"][usize::from(self.name)].into() }
    }

    /// The operation, for the present objects of both servers.
    fn resolved(&self, twin: &Twin) -> Operation<u8, u8> {
        let key = self.key();
        match self.operation {
            0..=3 => Operation::Create(self.object(twin)),
            4 => Operation::Get(key),
            5..=7 => {
                let preconditions = self.preconditions(twin);
                let change = self.change(twin);
                let can_apply = matches!(
                    change,
                    Change::Label(_, Some(_)) | Change::Annotation(_, Some(_)) | Change::Spec(_)
                );
                let is_apply = self.flags.0 && can_apply && preconditions.uid.is_some();
                let verb = if is_apply { Verb::Apply } else { Verb::Merge };
                Operation::Patch { key, verb, preconditions, changes: vec![change] }
            }
            8 => {
                let uid = self.preconditions(twin).uid.unwrap_or_else(|| self.uid(twin));
                Operation::PatchStatus { key, preconditions: Preconditions::uid(&uid), status: self.value }
            }
            _ => Operation::Delete {
                key,
                preconditions: self.preconditions(twin),
                propagation: match self.change {
                    0..=2 => None,
                    3..=4 => Some(Propagation::Background),
                    5..=6 => Some(Propagation::Foreground),
                    _ => Some(Propagation::Orphan),
                },
                is_immediate: self.flags.1,
            },
        }
    }

    fn object(&self, twin: &Twin) -> Object<u8, u8> {
        let key = self.key();
        let mut meta = Meta::new(key.kind, key.name.clone());
        if self.flags.0 {
            meta.labels.insert("e2e.catena.dev/label".into(), self.value.to_string().into());
        }
        if self.flags.1 && self.change > 4 {
            meta.finalizers.push("e2e.catena.dev/held".into());
        }
        if key.kind == Kind::Pod {
            meta.owners.extend(self.owner(twin));
        }
        let spec = if key.kind == Kind::Pod { 0 } else { self.value };
        Object { meta, spec, status: 0 }
    }

    /// A set as an owner, also one of a former incarnation. A dependent that comes after its owner's deletion in the
    /// foreground has begun is noticed only when another dependent goes: until then, the real collector does nothing, where
    /// the model's works.
    fn owner(&self, twin: &Twin) -> Option<Owner> {
        let sets = twin.model.objects().filter(|object| object.meta.key.kind == Kind::ReplicaSet);
        let sets = sets.filter(|set| !set.meta.is_held_by(FOREGROUND));
        let set = sets.last().filter(|_| self.precondition > 2)?;
        let (is_controller, blocks_deletion, _) = self.flags;
        Some(Owner { key: set.meta.key.clone(), uid: set.meta.uid.clone(), is_controller, blocks_deletion })
    }

    fn uid(&self, twin: &Twin) -> std::sync::Arc<str> {
        twin.model.get(&self.key()).map_or_else(|| "none".into(), |object| object.meta.uid.clone())
    }

    fn preconditions(&self, twin: &Twin) -> Preconditions {
        let uid = self.uid(twin);
        let version = twin.model.get(&self.key()).map(|object| object.meta.version);
        match self.precondition {
            0..=2 => Preconditions::default(),
            3..=4 => Preconditions::uid(&uid),
            5 => Preconditions::uid(&"00000000-0000-0000-0000-000000000000".into()),
            6 => Preconditions { uid: Some(uid), version },
            _ => Preconditions { uid: Some(uid), version: Some(Version::default()) },
        }
    }

    fn change(&self, twin: &Twin) -> Change<u8> {
        let value = self.value.to_string();
        let owner = self.owner(twin).filter(|_| self.is_pod);
        match (self.change, owner) {
            (0, _) => Change::Label("e2e.catena.dev/label".into(), Some(value.into())),
            (1, _) => Change::Label("e2e.catena.dev/label".into(), None),
            (2, _) => Change::Annotation("e2e.catena.dev/annotation".into(), Some(value.into())),
            (3, _) => Change::AddFinalizer("e2e.catena.dev/held".into()),
            (4 | 5, _) => Change::RemoveFinalizer("e2e.catena.dev/held".into()),
            (6, Some(owner)) => Change::AddOwner(owner),
            (7, Some(owner)) => Change::RemoveOwner(owner.uid),
            _ if self.is_pod => Change::Annotation("e2e.catena.dev/annotation".into(), None),
            _ => Change::Spec(self.value),
        }
    }
}

/// Performs the operations of a sequence, and returns their number.
async fn perform(twin: &mut Twin, steps: Vec<Step>) -> Result<usize> {
    let count = steps.len();
    for step in steps {
        let operation = step.resolved(twin);
        twin.perform(&operation).await?;
    }
    Ok(count)
}

#[tokio::test]
async fn random_operations_have_the_same_outcome_on_the_model_and_on_the_api_server() -> Result<()> {
    let cluster = Cluster::with(&[]).await?;
    let operations = match std::env::var("CATENA_OPERATIONS") {
        Ok(number) => number.parse().context("CATENA_OPERATIONS is no number")?,
        Err(_) => OPERATIONS,
    };
    let mut runner = generated::runner(0)?;
    let mut outcomes = 0;
    for _ in 0..operations.div_ceil(SEQUENCE) {
        let namespace = cluster.namespace("twin").await?;
        let node = OwnNode::silent(&cluster, &namespace).await?;
        let mut twin = Twin::new(&cluster.client, &namespace.name, &node);
        let tree = steps().new_tree(&mut runner).map_err(|error| anyhow::anyhow!("{error}"))?;
        let performed = perform(&mut twin, tree.current()).await;
        twin.end().await?;
        outcomes += performed?;
    }
    println!("{outcomes} operations had the same outcome");
    Ok(())
}
