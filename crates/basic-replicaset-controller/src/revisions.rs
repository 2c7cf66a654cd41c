//! The revisions of sets under the settings in force, each of which is computed once.

use std::{sync::Arc, time::Duration};

use basic_replicaset_controller::{
    Settings,
    revision::{NO_POD, POD, placeholder, record, recorded_pod, revision, subject, unread},
};
use catena_api::{BasicReplicaSet, LastServed, reason};
use operator_kit::{
    report::StepError,
    run::{RenderCache, SettingsHandle},
};
use operator_templates::TemplateError;
use operator_watch::Failure;
use serde_json::Value;

/// Delay of a retry after the template has just changed.
const TEMPLATE_RETRY_DELAY: Duration = Duration::from_secs(1);

/// The revision of a set, and the parameters that its template does not read.
pub type Outcome = (Result<String, TemplateError>, Vec<String>);

/// Revisions of sets; clones share them.
#[derive(Clone)]
pub struct Revisions {
    /// The settings that they follow.
    pub settings: SettingsHandle<Settings>,
    renderings: Arc<RenderCache<Outcome>>,
}

impl Revisions {
    /// Revisions that follow these settings.
    pub fn new(settings: SettingsHandle<Settings>) -> Self {
        Self { settings, renderings: Arc::default() }
    }

    /// The revision of a set.
    pub fn of(&self, set: &BasicReplicaSet) -> Outcome {
        let version = self.settings.version();
        self.under(&self.settings.current(), version, set)
    }

    /// A pod of a revision that was decided on before: the present one, or the one that served last.
    ///
    /// # Errors
    /// When the template cannot be rendered, or is another one by now.
    pub fn pod(&self, set: &BasicReplicaSet, decided: &str, suffix: &str) -> Result<Value, StepError> {
        let version = self.settings.version();
        let settings = self.settings.current();
        let is_same = self.under(&settings, version, set).0.is_ok_and(|revision| revision == decided);
        if !is_same {
            return recorded_pod(set, decided, suffix).ok_or_else(template_changed);
        }
        if self.settings.version() != version {
            return Err(template_changed());
        }
        // The computation of the revision has checked that names differ by the suffix.
        Ok(settings.templates.render_object(&set.spec.template, &subject(set, suffix), &[POD])?)
    }

    /// The record of a revision that was decided on before; `None` if the template is another one by now.
    pub fn record(&self, set: &BasicReplicaSet, decided: &str) -> Option<LastServed> {
        Some(record(decided, set, &self.pod(set, decided, &placeholder(decided)).ok()?))
    }

    /// Forgets a set that is gone.
    pub fn forget(&self, uid: &str) {
        self.renderings.forget(uid);
    }

    fn under(&self, settings: &Settings, version: u64, set: &BasicReplicaSet) -> Outcome {
        let templates = &settings.templates;
        let subject = subject(set, NO_POD);
        let inputs = (version, &set.spec.template, subject, &set.spec.restarted_at);
        self.renderings.of(subject.uid, inputs, || (revision(templates, set), unread(templates, set)))
    }
}

/// The template changed after the decision on the revision of the pods: the next pass renders it.
fn template_changed() -> StepError {
    let failure = Failure::transient(reason::TEMPLATE_CHANGED, "the template has just changed");
    Failure { is_expected: true, retry_after: Some(TEMPLATE_RETRY_DELAY), ..failure }.into()
}
