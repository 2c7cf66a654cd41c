use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use catena_api::{BasicDeployment, contract::ReplicaContract};
use jiff::Timestamp;
use kube::{Api, Client, discovery::ApiResource};
use operator_kit::{
    render::Rendered,
    report::{Failure, StatusAge, conditions::READY},
    run::{Attempt, Controller, Next, Settings},
    watch::{ReadError, Seen, TrimmedObject},
    write::{WriteError, owner::still_there},
};
use serde_json::Value;

use crate::{
    act::Writes,
    child::Child,
    children::{Children, Known},
    command::{Command, Order},
    commands::Commands,
    contest::{Part, Undone},
    decide::{
        Action, commands, decide,
        history::{self, Pin},
    },
    desired::{Desired, located, render},
    error::{Error, Refusal},
    history::History,
    revision::Revision,
};

/// What a decision about a `BasicDeployment` is made from.
#[derive(Clone)]
pub struct Observed {
    /// The `BasicDeployment`.
    pub deployment: Arc<BasicDeployment>,
    /// What this pass may do.
    pub attempt: Attempt,
    /// Whether children and revisions are not known: what is there may be missing below.
    pub is_blind: bool,
    /// When it was observed.
    pub now: Timestamp,
    /// Where children are.
    pub place: Place,
    /// Where children have their fields.
    pub contract: ReplicaContract,
    /// What spec and template give, or why they give nothing.
    pub rendered: Result<Rendered, Refusal>,
    /// What holds the child on another rendering than that.
    pub pin: Option<Pin>,
    /// What the child is to be, or why there is nothing.
    pub desired: Result<Desired, Refusal>,
    /// What is there under the child's name.
    pub child: Found,
    /// Children of other names, from an earlier template.
    pub others: Vec<Arc<Child>>,
    /// The revisions, the oldest first.
    pub revisions: Vec<Arc<Revision>>,
    /// The commands that are bound to it, the oldest first; `None` while they are not known.
    pub commands: Option<Vec<Arc<Command>>>,
    /// What the next command takes, if it may be carried out.
    pub prepared: Option<Prepared>,
    /// Commands whose status the server does not take: they are left alone.
    pub unheard: HashSet<String>,
    /// How long ago a command's status was written.
    pub since_told: Option<Duration>,
    /// What the server made of the last apply of this hash, where it was not what was asked for.
    pub settled_as: Option<Value>,
    /// The replicas that each child was given last, by its uid.
    pub given_replicas: HashMap<String, i32>,
    /// What somebody else had changed on the child, and was put back lately.
    pub undone: HashMap<Part, Undone>,
    /// How long nothing has moved.
    pub since_progress: Duration,
    /// How long the status has been as it is.
    pub status_age: StatusAge,
}

/// Where objects of a kind are.
#[derive(Clone, Debug)]
pub struct Place {
    /// The kind.
    pub resource: ApiResource,
    /// What its watch has shown.
    pub seen: Seen,
}

/// What carrying out a command takes, looked up live.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// The uid of the command, which still waits.
    pub command: String,
    /// For a rollback: what the child is to be, and what is there under its name.
    pub target: Option<(Desired, Found)>,
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
    /// What a former `BasicDeployment` of this name left: the garbage collector takes it.
    Leaving(Arc<Child>),
    /// An object that somebody else controls.
    Foreign(Arc<Child>),
}

/// The controller of `BasicDeployments`.
pub struct Deployments {
    client: Client,
    settings: Settings<crate::Settings>,
    children: Children,
    history: History,
    commands: Arc<Commands>,
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
        history: History,
        commands: Arc<Commands>,
        writes: Writes,
    ) -> Self {
        Self { client, settings, children, history, commands, writes, progress: Mutex::default() }
    }

    /// What is there under the name: from the cache, else live, because what is missing from the cache would
    /// be created.
    async fn find(&self, known: &Known, deployment: &BasicDeployment, name: &str) -> Result<Found, Error> {
        let uid = deployment.metadata.uid.as_deref().unwrap_or_default();
        let namespace = deployment.metadata.namespace.as_deref().unwrap_or_default();
        if let Some(child) = known.cache.group(namespace, uid).into_iter().find(|child| child.name == name) {
            return Ok(Found::Ours(child));
        }
        let api: Api<TrimmedObject> = Api::namespaced_with(self.client.clone(), namespace, &known.resource);
        let found =
            api.get_opt(name).await.map_err(|error| ReadError::of(&error, &known.resource.kind, name))?;
        let Some(child) = found.map(|object| Arc::new(Child::of(object, &known.resource))) else {
            return Ok(Found::Nothing);
        };
        if child.owner.is_none() {
            let own_name = deployment.metadata.name.as_deref().unwrap_or_default();
            let is_there = still_there(self.client.clone(), deployment).await;
            if !is_there.map_err(|error| ReadError::of(&error, "BasicDeployment", own_name))? {
                return Err(WriteError::gone("BasicDeployment", own_name).into());
            }
        }
        Ok(match &child.owner {
            None => Found::Orphan(child),
            Some(owner) if owner.uid == uid => Found::Ours(child),
            // Its end comes through the watch, under the name that both have.
            Some(owner) if owner.is_former(deployment) => Found::Leaving(child),
            Some(_) => Found::Foreign(child),
        })
    }

    /// What the child is to be: what a rollback holds it on, or what is rendered.
    async fn desired(
        &self,
        deployment: &BasicDeployment,
        rendered: Result<Rendered, Refusal>,
        pin: Option<&Pin>,
    ) -> Result<Result<Desired, Refusal>, Error> {
        let Some(pin) = pin else { return Ok(rendered.map(|rendered| Desired::new(deployment, rendered))) };
        let stored = match &pin.revision {
            Some(revision) => self.stored(deployment, revision).await?,
            None => None,
        };
        let gone = || Refusal::RevisionGone { hash: pin.hash.clone() };
        Ok(stored.map(|rendered| Desired::new(deployment, rendered)).ok_or_else(gone))
    }

    /// The rendering of a revision; `None` when it went meanwhile.
    async fn stored(
        &self,
        deployment: &BasicDeployment,
        revision: &Revision,
    ) -> Result<Option<Rendered>, Error> {
        let uid = deployment.metadata.uid.as_deref().unwrap_or_default();
        let object = self.history.rendering(uid, revision).await?;
        Ok(object.map(|object| Rendered { object, hash: revision.hash.clone() }))
    }

    /// Looks up live what carrying out a command takes; `None` when it does not wait any more.
    async fn prepare(
        &self,
        known: &Known,
        observed: &Observed,
        command: &Command,
    ) -> Result<Option<Prepared>, Error> {
        if !self.commands.still_waits(command).await? {
            return Ok(None);
        }
        let Ok(Order::Rollback(to)) = command.asks.as_ref().map(|asks| asks.order) else {
            return Ok(Some(Prepared { command: command.uid.clone(), target: None }));
        };
        let Ok(revision) = history::target(to, observed) else { return Ok(None) };
        let Some(rendered) = self.stored(&observed.deployment, revision).await? else { return Ok(None) };
        let desired = Desired::new(&observed.deployment, rendered).marked(history::marks(
            &command.uid,
            revision,
            observed,
        ));
        let found = match &observed.child {
            Found::Ours(child) if child.name == desired.name() => observed.child.clone(),
            _ => self.find(known, &observed.deployment, desired.name()).await?,
        };
        Ok(Some(Prepared { command: command.uid.clone(), target: Some((desired, found)) }))
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

impl Controller for Deployments {
    type Kind = BasicDeployment;
    type Observed = Observed;
    type Action = Action;
    type Error = Error;

    async fn observe(&self, deployment: Arc<BasicDeployment>, attempt: Attempt) -> Result<Observed, Error> {
        let settings = self.settings.current();
        let known = self.children.of(&settings.child);
        let is_allowed = !matches!(attempt, Attempt::Deferred(_));
        let problem = known.cache.problem().or_else(|| self.history.problem());
        let is_blind = problem.is_some();
        if let Some(problem) = problem.filter(|_| is_allowed) {
            return Err(Error::NotObserved { problem });
        }
        let metadata = &deployment.metadata;
        let (uid, namespace) =
            (metadata.uid.clone().unwrap_or_default(), metadata.namespace.clone().unwrap_or_default());
        let name = metadata.name.as_deref().unwrap_or_default();
        let contract = settings.child.contract.clone();
        let rendered = render(&deployment, &settings.child, &settings);
        let revisions = self.history.of(&namespace, name, &uid);
        let mut own = known.cache.group(&namespace, &uid);
        own.sort_by(|a, b| a.name.cmp(&b.name));
        let pin = rendered.as_ref().ok().and_then(|rendered| history::pin(&rendered.hash, &own, &revisions));
        let desired = self.desired(&deployment, rendered.clone(), pin.as_ref()).await?;
        // A rendering is recorded before anything is done with it: until then nobody has to look.
        let is_looked_for =
            |desired: &Desired| deployment.spec.paused || history::find(&revisions, &desired.hash).is_some();
        let child = match &desired {
            Ok(desired) if is_allowed && metadata.deletion_timestamp.is_none() && is_looked_for(desired) => {
                self.find(&known, &deployment, desired.name()).await?
            }
            Ok(desired) => own
                .iter()
                .find(|child| child.name == desired.name())
                .cloned()
                .map_or(Found::Nothing, Found::Ours),
            Err(_) => own.first().cloned().map_or(Found::Nothing, Found::Ours),
        };
        let desired = desired.map(|desired| {
            let live = child.ours().map(AsRef::as_ref);
            let marks = history::kept_marks(&desired.hash, pin.as_ref(), live);
            desired.marked(marks)
        });
        own.retain(|other| !matches!(&child, Found::Ours(child) if child.uid == other.uid));
        let remembered = self.writes.remembered(&uid, desired.as_ref().ok());
        let mut observed = Observed {
            attempt,
            is_blind,
            now: Timestamp::now(),
            place: Place { resource: known.resource.clone(), seen: known.cache.seen().clone() },
            since_progress: self.since_progress(&uid, child.ours().map(AsRef::as_ref), &contract),
            status_age: self.writes.status_age(&uid),
            settled_as: remembered.settled_as,
            given_replicas: remembered.replicas,
            undone: remembered.undone,
            since_told: remembered.since_told,
            unheard: remembered.unheard,
            commands: self.commands.of(&namespace, &uid),
            prepared: None,
            contract,
            rendered,
            pin,
            desired,
            child,
            others: own,
            revisions,
            deployment,
        };
        if is_allowed && let Some(command) = commands::next(&observed).cloned() {
            observed.prepared = self.prepare(&known, &observed, &command).await?;
        }
        Ok(observed)
    }

    fn decide(&self, observed: &Observed) -> Action {
        decide(observed)
    }

    fn step(&self, action: &Action) -> &'static str {
        action.step()
    }

    async fn act(&self, observed: Observed, action: Action) -> Result<Next, Error> {
        let acted = self.writes.act(&observed, action).await;
        acted.map_err(|error| match error {
            // What was rolled back to is another template's, or of other parameters.
            Error::Write(error) if observed.pin.is_none() => {
                let settings = self.settings.current();
                located(error, &observed.deployment, &settings.child, &settings).into()
            }
            error => error,
        })
    }

    /// A command, such as a rollback, may be what ends the failure.
    fn occasion(&self, deployment: &BasicDeployment) -> u64 {
        let metadata = &deployment.metadata;
        let (namespace, uid) = (metadata.namespace.as_deref(), metadata.uid.as_deref());
        self.commands.fingerprint(namespace.unwrap_or_default(), uid.unwrap_or_default())
    }

    fn forget(&self, uid: &str) {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
        self.history.forget(uid);
        self.writes.forget(uid);
    }
}

impl Observed {
    /// The failure that holds up everything.
    pub fn held_up(&self) -> Option<&Failure> {
        match &self.attempt {
            Attempt::Deferred(failure) => Some(failure),
            Attempt::Allowed | Attempt::Without(_) => None,
        }
    }

    /// All children, the one that is wanted first.
    pub fn children(&self) -> impl Iterator<Item = &Arc<Child>> {
        self.child.ours().into_iter().chain(&self.others)
    }
}

impl Found {
    /// Who holds it, for people.
    pub fn holder(&self) -> String {
        let owner = match self {
            Self::Foreign(child) | Self::Leaving(child) => child.owner.as_ref(),
            _ => None,
        };
        match owner {
            Some(owner) => format!("{} {:?}", owner.kind, owner.name),
            None => {
                "nobody that is known: it has no controller and does not come from this template".to_owned()
            }
        }
    }

    /// The child, if it is there and ours.
    pub fn ours(&self) -> Option<&Arc<Child>> {
        match self {
            Self::Ours(child) => Some(child),
            _ => None,
        }
    }
}
