use backup_controller::{
    decide::Release,
    observed::{Held, Row},
    status::Outcome,
};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::EventType;
use operator_kit::{
    report::{Events, Milestone},
    watch::Watched,
};

/// The Event of a release. It is published when this is dropped, however the release ends: also if its answer is lost, or
/// the pass is cut off, because the object may be gone. Then it says that this is not known.
pub struct Trail<'e> {
    events: &'e Events,
    object: ObjectReference,
    event: Option<(EventType, Milestone)>,
    is_confirmed: bool,
}

impl<'e> Trail<'e> {
    pub fn of(events: &'e Events, target: &Watched<Row>, held: &Held, release: &Release) -> Self {
        let message = &release.status.message;
        let (type_, reason, note) = match release.outcome {
            Outcome::BackedUp => (EventType::Normal, "BackedUp", message.clone()),
            Outcome::GivenUp => (
                EventType::Warning,
                "ReleasedWithoutBackup",
                format!("released without a backup, as the settings allow: {message}"),
            ),
            Outcome::Forced => (
                EventType::Warning,
                "ForceReleased",
                format!("released without a proven backup, by annotation: {message}"),
            ),
        };
        let milestone = Milestone { reason, action: "Release".into(), note, related: held.last_backup() };
        Self { events, object: target.reference(), event: Some((type_, milestone)), is_confirmed: false }
    }

    /// The server has released the object.
    pub fn confirm(mut self) {
        self.is_confirmed = true;
    }

    /// Publishes nothing: the server refused the release.
    pub fn withdraw(mut self) {
        self.event = None;
    }
}

impl Drop for Trail<'_> {
    fn drop(&mut self) {
        if let Some((type_, mut milestone)) = self.event.take() {
            if !self.is_confirmed {
                milestone.note =
                    format!("perhaps {}; the API server did not say whether it was", milestone.note);
            }
            self.events.mark(type_, &self.object, milestone);
        }
    }
}
