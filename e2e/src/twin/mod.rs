//! The model of the API server beside the real one: each operation is performed on both, and must have the same outcome.

mod real;
mod shape;

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, ensure};
use kube::Client;
use model::server::{
    Server, garbage,
    object::{Stored, Text, Version},
    operation::{Answer, Operation, Propagation, Verb},
};

use crate::{OwnNode, WAIT_TIMEOUT, eventually_every};
use real::Real;
use shape::Shape;

/// The interval at which the real objects are compared while the garbage collector works.
const INTERVAL: Duration = Duration::from_millis(30);

/// The server of the model, whose specs and statuses are numbers.
pub type Model = Server<u8, u8>;

/// The class of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    NotFound,
    AlreadyExists,
    Conflict,
    Invalid,
}

impl From<&Answer<u8, u8>> for Outcome {
    fn from(answer: &Answer<u8, u8>) -> Self {
        match answer {
            Answer::Done(_) => Self::Done,
            Answer::NotFound => Self::NotFound,
            Answer::AlreadyExists => Self::AlreadyExists,
            Answer::Conflict => Self::Conflict,
            Answer::Invalid => Self::Invalid,
        }
    }
}

/// The real identities of the model's objects.
#[derive(Default)]
struct Identities {
    uids: BTreeMap<Text, String>,
    versions: BTreeMap<(Text, Version), String>,
}

impl Identities {
    fn uid(&self, uid: &Text) -> String {
        self.uids.get(uid).cloned().unwrap_or_else(|| uid.to_string())
    }

    /// A version that no object has is that of none.
    fn version(&self, uid: &Text, version: Version) -> String {
        self.versions.get(&(uid.clone(), version)).cloned().unwrap_or_else(|| "1".to_owned())
    }
}

/// Both servers, with the same objects.
pub struct Twin {
    /// The model.
    pub model: Model,
    real: Real,
    identities: Identities,
}

impl Twin {
    /// Starts with an empty namespace, and a silent node for its pods.
    #[must_use]
    pub fn new(client: &Client, namespace: &str, node: &OwnNode) -> Self {
        Self {
            model: Model::default(),
            real: Real::new(client, namespace, node),
            identities: Identities::default(),
        }
    }

    /// Performs an operation on both, and waits until the garbage collector has come to rest.
    ///
    /// # Errors
    /// When the answers differ.
    pub async fn perform(&mut self, operation: &Operation<u8, u8>) -> Result<()> {
        if matches!(
            operation,
            Operation::Delete { propagation: Some(Propagation::Orphan | Propagation::Foreground), .. }
        ) {
            // It knows only the dependents that its own watch has shown.
            self.real.until_collector_is_current().await?;
        }
        let before: Vec<_> = self.model.objects().cloned().collect();
        let (outcome, object) = self.real.request(operation, &self.identities).await?;
        let answer = self.model.apply(operation.clone());
        let expected = Outcome::from(&answer);
        ensure!(
            outcome == expected,
            "the API server answers {outcome:?}, and the model {expected:?}, to {operation:?} on {:?}",
            before.iter().find(|object| object.meta.key == *operation.key())
        );
        if let (Operation::Create(_), Answer::Done(made)) = (operation, &answer) {
            let uid = object.and_then(|object| object.metadata.uid).context("a uid")?;
            self.identities.uids.insert(made.meta.uid.clone(), uid);
        }
        while let Some(work) = garbage::work(&self.model).into_iter().next() {
            self.model.apply(work);
        }
        let what = format!("the objects are equal after {operation:?}");
        // The garbage collector pauses while it gets to know new kinds, which other tests install and remove.
        let real = eventually_every(INTERVAL, &what, 2 * WAIT_TIMEOUT, async || {
            let real = self.real.objects().await.map_err(|error| format!("{error:#}"))?;
            self.differences(&real)?;
            Ok::<_, String>(real)
        })
        .await;
        for object in self.model.objects() {
            let shape = real.iter().find(|shape| shape.key == object.meta.key).context("the object")?;
            let (uid, version) = (&object.meta.uid, object.meta.version);
            let unchanged = before.iter().any(|old| old.meta.uid == *uid && old.meta.version == version);
            // The managers of fields are not modelled, and each apply here is by another one.
            let is_apply = object.meta.key == *operation.key()
                && matches!(
                    operation,
                    Operation::Patch { verb: Verb::Apply, .. } | Operation::PatchStatus { .. }
                );
            let known = self.identities.versions.insert((uid.clone(), version), shape.version.clone());
            ensure!(
                !unchanged || is_apply || known.as_ref() == Some(&shape.version),
                "the model has not written {object:?}, and the API server has, at {operation:?}"
            );
        }
        let versions: Vec<_> = self.identities.versions.values().collect();
        let mut different = versions.clone();
        different.sort();
        different.dedup();
        ensure!(
            versions.len() == different.len(),
            "the model has written, and the API server has not, at {operation:?}"
        );
        Ok(())
    }

    /// Removes all objects, whose finalizers and grace periods would keep the namespace from ending.
    pub async fn end(self) -> Result<()> {
        self.real.clear().await
    }

    fn differences(&self, real: &[Shape]) -> Result<(), String> {
        let expected: Vec<_> =
            self.model.objects().map(|object: &Stored<u8, u8>| Shape::of(object, &self.identities)).collect();
        let shown = real.iter().map(Shape::without_version).collect::<Vec<_>>();
        if shown == expected { Ok(()) } else { Err(format!("{shown:#?} instead of {expected:#?}")) }
    }
}
