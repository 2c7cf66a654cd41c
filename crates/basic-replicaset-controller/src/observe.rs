use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use catena_api::BasicReplicaSet;
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use operator_kit::{
    render::{Subject, TemplateError, Templates, sha256},
    report::StatusAge,
    run::{Attempt, Controller, Next, Settings},
    watch::TrimmedObject,
};

use crate::{
    act::Pods,
    adoption::{Origin, is_as_rendered},
    decide::{self, Action, decide, step, succession_ends_in},
    error::Error,
    pod::{PodRow, PodState},
};

/// Pods that are looked up live at once.
const SIDE_BY_SIDE: usize = 16;
/// The longest time until pods that are missing are tried again: what refused them may be lifted unseen.
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);
/// Stands for the suffix of a pod while it is only asked whether names differ by it.
const NO_POD: &str = "bcdfghjk";

/// What a decision about a `BasicReplicaSet` is made from.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The set.
    pub set: Arc<BasicReplicaSet>,
    /// What this pass may do.
    pub attempt: Attempt,
    /// Whether pods are not known: what is there may be missing below.
    pub is_blind: bool,
    /// When it was observed.
    pub now: Timestamp,
    /// What pods are to be made from, or why there is nothing.
    pub revision: Result<String, TemplateError>,
    /// The pods that the set controls.
    pub pods: Vec<Arc<PodRow>>,
    /// Pods without a controller that were made from the very same, and still run it; looked for only while pods are
    /// missing.
    pub orphans: Vec<Arc<PodRow>>,
    /// Pods of a former set of this name, as long as the garbage collector may not have come to them.
    pub former: Vec<Arc<PodRow>>,
    /// How long the status has been as it is.
    pub status_age: StatusAge,
}

/// The controller of `BasicReplicaSets`.
pub struct ReplicaSets {
    settings: Settings<crate::Settings>,
    pods: Pods,
    /// The revision of each set as last rendered, so that the events of its pods need no rendering.
    revisions: Mutex<HashMap<String, Remembered>>,
}

struct Remembered {
    resource_version: Option<String>,
    settings: u64,
    revision: Result<String, TemplateError>,
}

impl ReplicaSets {
    pub fn new(settings: Settings<crate::Settings>, pods: Pods) -> Self {
        Self { settings, pods, revisions: Mutex::default() }
    }

    /// The pods without a controller that may be the set's own, each looked up live.
    async fn orphans(&self, set: &BasicReplicaSet, revision: &str) -> Result<Vec<Arc<PodRow>>, Error> {
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        let settings = self.settings.current();
        let found = self.pods.cache().group(namespace, revision).into_iter();
        let found = found.filter(|pod| pod.owner.is_none() && pod.counts());
        let looked_up = stream::iter(found)
            .map(async |pod| {
                let live = self.pods.live(&pod).await?;
                Ok::<_, Error>(
                    live.is_some_and(|live| is_own(&live, set, &settings.templates)).then_some(pod),
                )
            })
            .buffer_unordered(SIDE_BY_SIDE);
        looked_up.try_filter_map(async |own| Ok(own)).try_collect().await
    }

    fn revision(&self, set: &BasicReplicaSet, uid: &str) -> Result<String, TemplateError> {
        let settings = self.settings.version();
        let resource_version = &set.metadata.resource_version;
        let mut revisions = self.revisions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = revisions.get(uid)
            && known.settings == settings
            && known.resource_version == *resource_version
        {
            return known.revision.clone();
        }
        let templates = &self.settings.current().templates;
        let rendered = templates.render_one_of_many(&set.spec.template, &subject(set, NO_POD), "v1", "Pod");
        let revision = rendered.map(|rendered| revision(&rendered.hash, set.spec.restarted_at.as_deref()));
        let remembered =
            Remembered { resource_version: resource_version.clone(), settings, revision: revision.clone() };
        revisions.insert(uid.to_owned(), remembered);
        revision
    }
}

/// Whether a live pod without a controller was made for this set or a former one of its name, and runs what is
/// rendered.
fn is_own(live: &TrimmedObject, set: &BasicReplicaSet, templates: &Templates) -> bool {
    let Some(origin) = Origin::of(&live.metadata) else { return false };
    let rendered = templates.render(&set.spec.template, &subject(set, &origin.suffix()), "v1", "Pod");
    rendered.is_ok_and(|rendered| is_as_rendered(&live.data, live.metadata.name.as_deref(), &rendered.object))
}

/// What a template may say about a set.
pub fn subject<'s>(set: &'s BasicReplicaSet, suffix: &'s str) -> Subject<'s> {
    Subject {
        name: set.metadata.name.as_deref().unwrap_or_default(),
        namespace: set.metadata.namespace.as_deref().unwrap_or_default(),
        uid: set.metadata.uid.as_deref().unwrap_or_default(),
        labels: set.metadata.labels.as_ref(),
        annotations: set.metadata.annotations.as_ref(),
        parameters: &set.spec.parameters,
        suffix,
    }
}

/// What a pod is made from: the rendered text, and the restart token if there is one.
fn revision(hash: &str, restarted_at: Option<&str>) -> String {
    restarted_at.map_or_else(|| hash.to_owned(), |token| sha256(&format!("{hash}\n{token}")))
}

impl Controller for ReplicaSets {
    type Kind = BasicReplicaSet;
    type Observed = Observed;
    type Action = Action;
    type Error = Error;

    async fn observe(&self, set: Arc<BasicReplicaSet>, attempt: Attempt) -> Result<Observed, Error> {
        // What is missing from a cache that is not complete would be created again.
        let problem = self.pods.cache().problem();
        let is_blind = problem.is_some();
        if let Some(problem) = problem.filter(|_| !matches!(attempt, Attempt::Deferred(_))) {
            return Err(Error::NotObserved { problem });
        }
        let uid = set.metadata.uid.clone().unwrap_or_default();
        let revision = self.revision(&set, &uid);
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        let pods = self.pods.cache().group(namespace, &uid);
        let is_short = pods.iter().filter(|pod| pod.counts()).count() < decide::wanted(&set);
        let orphans = match &revision {
            Ok(revision) if is_short && !matches!(attempt, Attempt::Deferred(_)) => {
                self.orphans(&set, revision).await?
            }
            _ => Vec::new(),
        };
        let now = Timestamp::now();
        let is_former = |pod: &PodRow| {
            let is_former = pod.owner.as_ref().is_some_and(|owner| owner.is_former(&set));
            is_former && &*pod.namespace == namespace && pod.counts()
        };
        let former = succession_ends_in(&set, now).map(|_| self.pods.cache().find(is_former));
        Ok(Observed {
            attempt,
            is_blind,
            now,
            revision,
            pods,
            orphans,
            former: former.unwrap_or_default(),
            status_age: self.pods.writer().status_age(&uid),
            set,
        })
    }

    fn decide(&self, observed: &Observed) -> Action {
        decide(observed)
    }

    async fn act(&self, observed: Observed, action: Action) -> Result<Next, Error> {
        self.pods.act(&self.settings.current().templates, &observed, action).await
    }

    fn step(&self, action: &Action) -> &'static str {
        action.step()
    }

    /// For creates, a pod that left: there may be room for another one in a quota.
    fn occasion_of(&self, set: &BasicReplicaSet, step: &'static str) -> u64 {
        if step != step::CREATE {
            return 0;
        }
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        let pods = self.pods.cache().group(namespace, set.metadata.uid.as_deref().unwrap_or_default());
        let takes_room = |pod: &&Arc<PodRow>| !matches!(pod.state, PodState::Finished(_));
        pods.iter().filter(takes_room).fold(0, |all, pod| all ^ digest(&pod.uid))
    }

    fn longest_backoff(&self) -> Duration {
        LONGEST_BACKOFF
    }

    fn forget(&self, uid: &str) {
        self.revisions.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}

fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
