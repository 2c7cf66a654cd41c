//! Publishes an Event under a name that the API server takes.

use jiff::Timestamp;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event as EventObject},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{
    Api, Client,
    api::PostParams,
    runtime::events::{Event, EventType, Recorder as KubeRecorder, Reporter},
};

use crate::render::short_digest;

/// Maximum length of an object's name that an Event can be named after: 253 characters less a dot and the time, which is in
/// hexadecimal nanoseconds.
const LONGEST_NAME: usize = 253 - 17;

/// Publishes Events about objects with any name. A [`KubeRecorder`] names an Event after its object and the time; where the
/// server does not take such a name, the Event gets another one, and its repeats are Events of their own.
pub(super) struct Recorder {
    named_after_objects: KubeRecorder,
    client: Client,
    reporter: Reporter,
}

impl Recorder {
    pub fn new(client: Client, reporter: Reporter) -> Self {
        let named_after_objects = KubeRecorder::new(client.clone(), reporter.clone());
        Self { named_after_objects, client, reporter }
    }

    /// Publishes an Event about an object.
    pub async fn publish(&self, event: &Event, about: &ObjectReference) -> Result<(), kube::Error> {
        match &about.name {
            Some(name) if !names_events(name) => self.publish_renamed(event, about, name).await,
            _ => self.named_after_objects.publish(event, about).await,
        }
    }

    async fn publish_renamed(
        &self,
        event: &Event,
        about: &ObjectReference,
        name: &str,
    ) -> Result<(), kube::Error> {
        let now = Timestamp::now();
        let type_ = match event.type_ {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        };
        let event = EventObject {
            metadata: ObjectMeta {
                name: Some(format!("{}.{:x}", short_digest(&[name]), now.as_nanosecond())),
                namespace: about.namespace.clone(),
                ..ObjectMeta::default()
            },
            type_: Some(type_.into()),
            reason: Some(event.reason.clone()),
            action: Some(event.action.clone()),
            note: event.note.clone(),
            event_time: Some(MicroTime(now)),
            regarding: Some(about.clone()),
            related: event.secondary.clone(),
            reporting_controller: Some(self.reporter.controller.clone()),
            reporting_instance: self.reporter.instance.clone(),
            ..EventObject::default()
        };
        // Events about objects without a namespace are in this one.
        let namespace = about.namespace.as_deref().unwrap_or("default");
        Api::namespaced(self.client.clone(), namespace).create(&PostParams::default(), &event).await.map(drop)
    }
}

/// Whether Events can be named after an object with this name: it is a DNS subdomain, which the names of some kinds need not
/// be, and leaves room for the time.
fn names_events(object: &str) -> bool {
    let may_stand = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_label = |label: &str| {
        !label.is_empty() && !label.starts_with('-') && !label.ends_with('-') && label.bytes().all(may_stand)
    };
    object.len() <= LONGEST_NAME && object.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use regex::Regex;
    use serde_json::{Value, json};

    use crate::{
        report::Events,
        testing::{Answer, answering},
    };

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_event_about_an_object_of_any_name_has_a_name_that_the_server_takes() {
        let subdomain =
            Regex::new(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$").unwrap();
        let (too_long, longest) = ("a".repeat(250), "a".repeat(LONGEST_NAME));
        for (name, is_in_the_name) in [
            ("web-1.shop", true),
            (longest.as_str(), true),
            (too_long.as_str(), false),
            ("system:node", false),
            ("A_b", false),
            ("a..b", false),
            ("a-", false),
        ] {
            for (namespace, path) in [(Some("shop"), "shop"), (None, "default")] {
                let (client, log) = answering(|_| Answer::Done);
                let about = ObjectReference {
                    kind: Some("Role".into()),
                    name: Some(name.into()),
                    namespace: namespace.map(Into::into),
                    uid: Some("u".into()),
                    ..ObjectReference::default()
                };
                Events::over(client, "binder").warn(&about, "Refused", "as it says");
                tokio::time::sleep(Duration::from_secs(1)).await;
                let sent = log.take();
                assert_eq!(sent.len(), 1, "{sent:?}");
                let (uri, event) = (&sent[0].uri, &sent[0].body);
                assert_eq!(*uri, format!("/apis/events.k8s.io/v1/namespaces/{path}/events?"));
                let given = event["metadata"]["name"].as_str().unwrap();
                assert!(given.len() <= 253 && subdomain.is_match(given), "{given}");
                assert_eq!(given.starts_with(&format!("{name}.")), is_in_the_name, "{given}");
                assert_eq!(event["regarding"], json!(about));
                let fields = ["type", "reason", "action", "note", "reportingController", "reportingInstance"];
                let told = ["Warning", "Refused", "Reconcile", "as it says", "binder", "binder"];
                assert_eq!(fields.map(|field| &event[field]), told.map(Value::from).each_ref());
                assert!(event["eventTime"].is_string(), "{event}");
            }
        }
    }
}
