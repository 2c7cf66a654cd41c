use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client,
    runtime::events::{Event, EventType, Recorder, Reporter},
};

/// Longest note and action that the Events API takes.
const LONGEST_NOTE: usize = 1024;
/// Longest name of the reporting instance.
const LONGEST_INSTANCE: usize = 128;
/// How long publishing may take before it is given up.
const PATIENCE: Duration = Duration::from_secs(5);

/// Tells people about objects with Events: best effort, aggregated, never a reason to fail.
#[derive(Clone)]
pub struct Events(Recorder);

impl Events {
    pub(crate) fn new(client: Client, controller: &str, instance: &str) -> Self {
        let instance = clip(instance, LONGEST_INSTANCE);
        Self(Recorder::new(client, Reporter { controller: controller.into(), instance: Some(instance) }))
    }

    /// Publishes a warning in the background. Repeats are counted by the API under their reason, so that what
    /// varies must not be in it.
    pub fn warn(&self, object: &ObjectReference, reason: &'static str, note: &str) {
        self.publish(EventType::Warning, object, reason, note);
    }

    /// Publishes what went as it should, in the background.
    pub fn tell(&self, object: &ObjectReference, reason: &'static str, note: &str) {
        self.publish(EventType::Normal, object, reason, note);
    }

    fn publish(&self, type_: EventType, object: &ObjectReference, reason: &'static str, note: &str) {
        let event = Event {
            type_,
            reason: reason.into(),
            note: Some(clip(note, LONGEST_NOTE)),
            action: "Reconcile".into(),
            secondary: None,
        };
        let (recorder, reference) = (self.0.clone(), object.clone());
        tokio::spawn(async move {
            match tokio::time::timeout(PATIENCE, recorder.publish(&event, &reference)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(reason, "an Event was not published: {error}"),
                Err(_) => tracing::debug!(reason, "an Event was not published in time"),
            }
        });
    }
}

fn clip(text: &str, longest: usize) -> String {
    let end = (0..=longest.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(clip("äöü", 3), "ä");
        assert_eq!(clip("abc", 10), "abc");
    }
}
