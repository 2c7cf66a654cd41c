//! The part of a leader's memory that outlives it.

use std::sync::Arc;

use kube::api::ObjectMeta;

/// A memory that a leader passes on to its successor in an annotation of the Lease. It is written together with the
/// release of the Lease, and removed together with its acquisition, so that it costs no request. A leader that is lost
/// passes nothing on.
pub trait Handover: Send + Sync {
    /// The key of the annotation.
    fn key(&self) -> &'static str;

    /// The memory as text, if there is any. All annotations of an object together hold 256 KiB.
    fn pass_on(&self) -> Option<String>;

    /// Adds the memory of the previous leader to its own. It may be of any version, or written by anybody who may write
    /// the Lease: unreadable parts are skipped.
    fn receive(&self, memory: &str);
}

/// A memory that is passed on, if the controller has one.
#[derive(Clone, Default)]
pub(crate) struct Passed(Option<Arc<dyn Handover>>);

impl Passed {
    pub fn new(handover: Arc<dyn Handover>) -> Self {
        Self(Some(handover))
    }

    /// Writes the memory onto a Lease that is given up.
    pub(super) fn write(&self, lease: &mut ObjectMeta) {
        let Some(handover) = &self.0 else { return };
        if let Some(memory) = handover.pass_on() {
            lease.annotations.get_or_insert_default().insert(handover.key().into(), memory);
        }
    }

    /// Takes the memory from a Lease that is about to be acquired. Should another replica acquire it instead, it has the
    /// same memory.
    pub(super) fn take(&self, lease: &mut ObjectMeta) {
        let (Some(handover), Some(annotations)) = (&self.0, &mut lease.annotations) else { return };
        if let Some(memory) = annotations.remove(handover.key()) {
            handover.receive(&memory);
        }
    }
}
