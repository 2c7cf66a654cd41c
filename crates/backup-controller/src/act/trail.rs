use backup_controller::{
    decide::Release,
    observed::{Held, Row},
    status::Outcome,
};
use kube::runtime::events::EventType;
use operator_kit::{
    object::ObjectId,
    report::{Events, Milestone, Reservation},
    watch::Watched,
};

use crate::metrics::HeldMetrics;

/// The Event and the count of a release. They are published when this is dropped, however the release ends: also if its answer
/// is lost, or the pass is cut off, because the object may be gone. Then the Event says that this is not known.
pub struct Trail<'e> {
    pub events: &'e Events,
    /// The place of the Event in the queue; without one, it is dropped if there is still no room.
    pub place: Option<Reservation>,
    pub metrics: &'e HeldMetrics,
    pub target: &'e Watched<Row>,
    /// The name of its kind in the settings.
    pub kind: &'e str,
    pub held: &'e Held,
    pub release: &'e Release,
    pub end: End,
}

/// What is known of the end of a release.
#[derive(Clone, Copy, PartialEq)]
pub enum End {
    Unknown,
    /// The server has released the object.
    Released,
    /// The server refused the release, for this reason: the object is still held.
    Refused(&'static str),
    /// The object is gone or was changed, so that nothing was written. An earlier release without an answer may have done it.
    Missed,
}

impl Trail<'_> {
    /// Records the end of the release.
    pub fn end(mut self, end: End) {
        self.end = end;
    }

    fn tell(&mut self) {
        let (outcome, message) = (self.release.outcome, &self.release.status.message);
        // Nobody was told of a backup that took no time.
        if outcome == Outcome::BackedUp && self.held.status.is_none() {
            return;
        }
        let released = if self.end == End::Released { "released" } else { "perhaps released" };
        let (type_, reason, mut note) = match outcome {
            Outcome::BackedUp => (EventType::Normal, "BackedUp", message.clone()),
            Outcome::GivenUp => (
                EventType::Warning,
                "ReleasedWithoutBackup",
                format!("{released} without a backup, as the settings allow: {message}"),
            ),
            Outcome::Forced => (
                EventType::Warning,
                "ForceReleased",
                format!("{released} without a proven backup, by annotation: {message}"),
            ),
        };
        if self.end == End::Unknown {
            note += "; the API server did not say whether the object was released";
        }
        let related = self.held.last_backup();
        let milestone = Milestone { reason, action: "Release".into(), note, related };
        match self.place.take() {
            Some(place) => place.mark(type_, &self.target.reference(), milestone),
            None => self.events.mark(type_, &self.target.reference(), milestone),
        }
    }
}

impl Drop for Trail<'_> {
    fn drop(&mut self) {
        let (uid, outcome, age) = (ObjectId::of(self.target).uid, self.release.outcome, self.held.age());
        match self.end {
            End::Missed => return,
            End::Refused(reason) => {
                self.metrics.note(uid, self.kind, reason, age);
                return;
            }
            End::Released => self.metrics.released(uid, self.kind, outcome, age),
            End::Unknown => self.metrics.perhaps_released(uid, self.kind, outcome, age),
        }
        self.tell();
    }
}
