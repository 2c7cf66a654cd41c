//! Tells the milestones of each `BasicDeployment` by Events: best effort, never a reason to fail.

use std::{collections::HashMap, sync::Arc, time::Instant};

use basic_deployment_controller::{
    Settings,
    decide::Action,
    milestones::{self, Change, Step},
    observed::Observed,
};
use kube::{Resource, runtime::events::EventType};
use operator_kit::{
    object::ObjectId,
    report::{Events, Milestone},
    run,
};
use parking_lot::Mutex;

/// Tells milestones.
pub struct Chronicle {
    events: Events,
    settings: run::Settings<Settings>,
    /// The beginning of the change of each object whose end is awaited, by its uid. The next leader does not know it, and
    /// does not tell the end.
    changing: Arc<Mutex<HashMap<String, (Milestone, Instant)>>>,
}

impl Chronicle {
    pub fn new(events: Events, settings: run::Settings<Settings>) -> Self {
        Self { events, settings, changing: Arc::default() }
    }

    /// The milestone that an action is, once it has succeeded.
    pub fn milestone(&self, observed: &Observed, action: &Action) -> Option<Step> {
        let uid = ObjectId::of(&*observed.deployment).uid;
        let changing = self.changing.lock().get(uid).cloned();
        let changing = changing.map(|(began, at)| Change { began, since: at.elapsed() });
        let tells_all = self.settings.current().events.normal;
        milestones::of(observed, action, changing.as_ref())
            .filter(|step| tells_all || matches!(step, Step::Silent(_)))
    }

    /// Tells the milestone of an action that has succeeded.
    pub fn tell(&self, observed: &Observed, step: Step) {
        let deployment = &*observed.deployment;
        let uid = ObjectId::of(deployment).uid;
        let milestone = match step {
            Step::Begins(milestone) => {
                self.changing.lock().insert(uid.to_owned(), (milestone.clone(), Instant::now()));
                milestone
            }
            Step::Ends(milestone) => {
                self.changing.lock().remove(uid);
                milestone
            }
            Step::Alone(milestone) => milestone,
            Step::Silent(note) => {
                self.events.warn(&deployment.object_ref(&()), "ContractBroken", &note);
                return;
            }
        };
        self.events.mark(EventType::Normal, &deployment.object_ref(&()), milestone);
    }

    /// Forgets a `BasicDeployment` that is gone.
    pub fn forget(&self, uid: &str) {
        self.changing.lock().remove(uid);
    }
}
