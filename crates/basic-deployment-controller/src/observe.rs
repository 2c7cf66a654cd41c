use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use catena_api::{BasicDeployment, contract::ReplicaContract, keys};
use jiff::Timestamp;
use kube::{Api, Client};
use operator_kit::{
    Attempt, Controller, Next, Rendered, Settings, Subject, TrimmedObject, WriteError,
    conditions::READY,
    owner::{controller_reference, still_there},
};
use serde_json::{Value, json};

use crate::{
    act::Writes,
    child::{Child, projection},
    children::{Children, Known},
    decide::{Action, decide},
    error::{Error, Refusal},
    settings::ChildKind,
};

/// What a decision about a `BasicDeployment` is made from.
#[derive(Clone)]
pub struct Observed {
    /// The `BasicDeployment`.
    pub deployment: Arc<BasicDeployment>,
    /// What this pass may do.
    pub attempt: Attempt,
    /// When it was observed.
    pub now: Timestamp,
    /// Where children have their fields.
    pub contract: ReplicaContract,
    /// What the child is to be, or why there is nothing.
    pub desired: Result<Desired, Refusal>,
    /// What is there under the child's name.
    pub child: Found,
    /// Children of other names, from an earlier template.
    pub others: Vec<Arc<Child>>,
    /// What the server made of the last apply of this hash, where it was not what was asked for.
    pub settled_as: Option<Value>,
    /// How long ago a change of the child by somebody else was undone.
    pub since_healed: Option<Duration>,
    /// How long nothing has moved.
    pub since_progress: Duration,
    /// How long ago this process wrote the status.
    pub status_age: Option<Duration>,
}

/// What a child is to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// The object, without replicas.
    pub object: Value,
    /// sha256 of its text.
    pub hash: String,
}

/// What is there under the child's name.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// The child.
    Ours(Arc<Child>),
    /// An object without a controller.
    Orphan(Arc<Child>),
    /// An object that somebody else controls.
    Foreign(Arc<Child>),
}

/// The controller of `BasicDeployments`.
pub struct Deployments {
    client: Client,
    settings: Settings<crate::Settings>,
    children: Children,
    writes: Writes,
    progress: Mutex<HashMap<String, Progress>>,
}

/// When something last moved; kept in memory, so that a deadline starts anew with the process.
struct Progress {
    state: (String, i64, i32, String),
    since: Instant,
}

impl Deployments {
    pub fn new(
        client: Client,
        settings: Settings<crate::Settings>,
        children: Children,
        writes: Writes,
    ) -> Self {
        Self { client, settings, children, writes, progress: Mutex::default() }
    }

    /// What is there under the name: from the cache, else live, because what is missing from the cache would
    /// be created.
    async fn find(
        &self,
        known: &Known,
        deployment: &BasicDeployment,
        uid: &str,
        name: &str,
    ) -> Result<Found, Error> {
        if let Some(child) = known.cache.group(uid).into_iter().find(|child| child.name == name) {
            return Ok(Found::Ours(child));
        }
        let namespace = deployment.metadata.namespace.as_deref().unwrap_or_default();
        let api: Api<TrimmedObject> = Api::namespaced_with(self.client.clone(), namespace, &known.resource);
        let found =
            api.get_opt(name).await.map_err(|source| Error::look_up(&known.resource.kind, name, source))?;
        let Some(child) = found.map(|object| Arc::new(Child::of(object, &known.resource))) else {
            return Ok(Found::Nothing);
        };
        if child.owner.is_none() {
            let own_name = deployment.metadata.name.as_deref().unwrap_or_default();
            let is_there = still_there(self.client.clone(), deployment).await;
            if !is_there.map_err(|source| Error::look_up("BasicDeployment", own_name, source))? {
                return Err(WriteError::gone("BasicDeployment", own_name).into());
            }
        }
        Ok(match &child.owner {
            None => Found::Orphan(child),
            Some(owner) if owner.uid == uid => Found::Ours(child),
            Some(_) => Found::Foreign(child),
        })
    }

    fn since_progress(&self, uid: &str, child: Option<&Child>, contract: &ReplicaContract) -> Duration {
        // What a child says of itself moves also while as many replicas serve as before.
        let state = child.map(|child| {
            let says = child.condition(contract, READY).map(|ready| ready.message).unwrap_or_default();
            (child.uid.clone(), child.generation, child.active(contract), says)
        });
        let state = state.unwrap_or_default();
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        match progress.get(uid) {
            Some(known) if known.state == state => known.since.elapsed(),
            _ => {
                progress.insert(uid.to_owned(), Progress { state, since: Instant::now() });
                Duration::ZERO
            }
        }
    }
}

/// What the child is to be: the rendered object, marked as ours.
fn desired(
    deployment: &BasicDeployment,
    kind: &ChildKind,
    settings: &crate::Settings,
) -> Result<Desired, Refusal> {
    let (meta, spec) = (&deployment.metadata, &deployment.spec);
    let uid = meta.uid.as_deref().unwrap_or_default();
    let subject = Subject {
        name: meta.name.as_deref().unwrap_or_default(),
        namespace: meta.namespace.as_deref().unwrap_or_default(),
        uid,
        labels: meta.labels.as_ref(),
        annotations: meta.annotations.as_ref(),
        parameters: &spec.parameters,
        suffix: "",
    };
    let Rendered { mut object, hash } =
        settings.templates.render(&spec.template, &subject, &kind.api_version, &kind.kind)?;
    for field in [&kind.contract.replicas, &kind.contract.restarted_at] {
        if field.get(&object).is_some() {
            return Err(Refusal::ReservedField { template: spec.template.clone(), field: field.to_string() });
        }
    }
    object["metadata"]["labels"][keys::DEPLOYMENT_UID] = uid.into();
    object["metadata"]["annotations"][keys::HASH] = hash.as_str().into();
    object["metadata"]["ownerReferences"] = json!([controller_reference(deployment)]);
    Ok(Desired { object, hash })
}

impl Desired {
    /// The child's name.
    pub fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// What an object has in the places that this one speaks about. The owner is compared by uid elsewhere, and
    /// the namespace follows from where it was found.
    pub fn seen_in(&self, observed: &Value) -> Value {
        projection(&self.comparable(), observed)
    }

    /// This object, as [`Desired::seen_in`] shows one that is as wanted.
    pub fn comparable(&self) -> Value {
        let mut object = self.object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.retain(|field, _| matches!(field.as_str(), "name" | "labels" | "annotations"));
        }
        object
    }
}

impl Controller for Deployments {
    type Kind = BasicDeployment;
    type Observed = Observed;
    type Action = Action;
    type Error = Error;

    async fn observe(&self, deployment: Arc<BasicDeployment>, attempt: Attempt) -> Result<Observed, Error> {
        let settings = self.settings.current();
        let known = self.children.of(&settings.child);
        let is_allowed = attempt == Attempt::Allowed;
        if let Some(problem) = known.cache.problem().filter(|_| is_allowed) {
            return Err(Error::NotObserved { problem });
        }
        let uid = deployment.metadata.uid.clone().unwrap_or_default();
        let contract = settings.child.contract.clone();
        let desired = desired(&deployment, &settings.child, &settings);
        let mut own = known.cache.group(&uid);
        own.sort_by(|a, b| a.name.cmp(&b.name));
        let child = match &desired {
            Ok(desired) if is_allowed && deployment.metadata.deletion_timestamp.is_none() => {
                self.find(&known, &deployment, &uid, desired.name()).await?
            }
            Ok(desired) => own
                .iter()
                .find(|child| child.name == desired.name())
                .cloned()
                .map_or(Found::Nothing, Found::Ours),
            Err(_) => own.first().cloned().map_or(Found::Nothing, Found::Ours),
        };
        own.retain(|other| !matches!(&child, Found::Ours(child) if child.uid == other.uid));
        let remembered = self.writes.remembered(&uid, desired.as_ref().ok());
        Ok(Observed {
            attempt,
            now: Timestamp::now(),
            since_progress: self.since_progress(&uid, child.ours().map(AsRef::as_ref), &contract),
            status_age: self.writes.status_age(&uid),
            settled_as: remembered.settled_as,
            since_healed: remembered.since_healed,
            contract,
            desired,
            child,
            others: own,
            deployment,
        })
    }

    fn decide(&self, observed: &Observed) -> Action {
        decide(observed)
    }

    async fn act(&self, observed: Observed, action: Action) -> Result<Next, Error> {
        let known = self.children.of(&self.settings.current().child);
        self.writes.act(&known, &observed, action).await
    }

    fn forget(&self, uid: &str) {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
        self.writes.forget(uid);
    }
}

impl Found {
    /// The child, if it is there and ours.
    pub fn ours(&self) -> Option<&Arc<Child>> {
        match self {
            Self::Ours(child) => Some(child),
            _ => None,
        }
    }
}
