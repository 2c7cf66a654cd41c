//! Kinds of commands that are described by their own definitions.

use std::{collections::HashMap, sync::Arc};

use catena_api::keys;
use k8s_openapi::{
    api::core::v1::ObjectReference,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, Client, Resource, discovery::ApiResource};
use operator_kit::report::Events;
use operator_watch::{Cache, ObjectId, PrunedObject, Row, Watch, Watches};

use crate::{definition::describe, kind::CommandKind};

/// The reason of Events about definitions that describe no kind of commands.
const INVALID_BINDING: &str = "InvalidBinding";

/// A definition with the label of commands.
pub struct Discovered {
    definition: ObjectReference,
    /// The kind, or the reason why the definition does not describe one.
    pub kind: Result<Arc<CommandKind>, String>,
}

impl Discovered {
    fn of(definition: &PrunedObject) -> Self {
        let resource = ApiResource::erase::<CustomResourceDefinition>(&());
        Self { definition: definition.object_ref(&resource), kind: describe(definition).map(Arc::new) }
    }

    /// The definition and the mistake in it, if there is one.
    fn malformed(&self) -> Option<(ObjectReference, String)> {
        Some((self.definition.clone(), self.kind.as_ref().err()?.clone()))
    }
}

impl Row for Discovered {
    fn id(&self) -> ObjectId<'_> {
        let ObjectReference { name, uid, .. } = &self.definition;
        let [name, uid] = [name, uid].map(|part| part.as_deref().unwrap_or_default());
        ObjectId { namespace: "", name, uid }
    }

    fn index_key(&self) -> Option<&str> {
        None
    }
}

/// The definitions that describe kinds of commands.
pub struct Definitions {
    found: Arc<Cache<Discovered>>,
    kinds: LastGood,
}

impl Definitions {
    /// Follows them, and calls `changed` at each change.
    pub fn follow(client: Client, watches: &Watches, changed: impl Fn() + Send + Sync + 'static) -> Self {
        let resource = ApiResource::erase::<CustomResourceDefinition>(&());
        let watch = Watch::<PrunedObject>::new(
            Api::all_with(client, &resource),
            "CustomResourceDefinition with the label catena.dev/command",
        )
        .labelled(&format!("{}=true", keys::COMMAND_KIND));
        let found = watches.cache(watch, |definition| Discovered::of(&definition), move |_| changed());
        Self { found, kinds: LastGood::default() }
    }

    /// The kinds that are described.
    pub fn kinds(&mut self) -> Vec<Arc<CommandKind>> {
        self.kinds.of(&self.found.find(|_| true))
    }

    /// The definitions that describe no kind, each with the mistake in it.
    #[must_use]
    pub fn malformed(&self) -> Vec<(ObjectReference, String)> {
        self.found.find(|found| found.kind.is_err()).iter().filter_map(|found| found.malformed()).collect()
    }

    /// Why not all of them may be known.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.found.watch().problem()
    }
}

/// The kinds that definitions last described without a mistake, by their uids: as with settings, a mistake changes nothing, and
/// commands of a kind that went would no longer be counted.
#[derive(Default)]
struct LastGood(HashMap<Box<str>, Arc<CommandKind>>);

impl LastGood {
    /// The kinds of these definitions, which are all.
    fn of(&mut self, definitions: &[Arc<Discovered>]) -> Vec<Arc<CommandKind>> {
        let kind = |found: &Arc<Discovered>| {
            let uid = found.id().uid;
            let kind = found.kind.as_ref().ok().or(self.0.get(uid))?.clone();
            Some((uid.into(), kind))
        };
        self.0 = definitions.iter().filter_map(kind).collect();
        let mut kinds: Vec<_> = self.0.values().cloned().collect();
        kinds.sort_by(|a, b| a.id.cmp(&b.id));
        kinds
    }
}

/// Reports the definitions that describe no kind of commands, although their labels say so.
pub struct Malformed {
    events: Events,
    /// The last known ones.
    known: Vec<ObjectReference>,
}

impl Malformed {
    /// Knows of none.
    #[must_use]
    pub fn new(events: Events) -> Self {
        Self { events, known: Vec::new() }
    }

    /// Reports each of these, which are all: once, and again before its Event expires. Without room for an Event, the next
    /// call reports it.
    pub fn report(&mut self, definitions: &[(ObjectReference, String)]) {
        let malformed: Vec<_> = definitions.iter().map(|(definition, _)| definition.clone()).collect();
        for corrected in self.known.iter().filter(|known| !malformed.contains(known)) {
            self.events.resolved(corrected, INVALID_BINDING);
        }
        self.known = malformed;
        for (definition, problem) in definitions {
            let event = Events::warning(INVALID_BINDING, problem);
            if self.events.publish_lasting(definition, INVALID_BINDING, problem, event).is_queued {
                tracing::warn!(definition = definition.name, "{problem}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use operator_kit::testing::{Answer::Done, Answer::Silence, Log, Sent, answering};
    use serde_json::json;
    use tokio::time::sleep;

    use super::*;

    #[test]
    fn a_definition_that_describes_no_kind_is_known_with_the_mistake_in_it() {
        let definition = json!({"metadata": {"name": "drains.ops.example", "uid": "u"}});
        let found = Discovered::of(&serde_json::from_value(definition).unwrap());
        let (definition, problem) = found.malformed().unwrap();
        let ObjectReference { api_version, kind, name, uid, .. } = definition;
        assert_eq!(
            [api_version, kind, name, uid].map(Option::unwrap),
            ["apiextensions.k8s.io/v1", "CustomResourceDefinition", "drains.ops.example", "u"]
        );
        assert!(problem.contains("the annotation catena.dev/binding is missing"), "{problem}");
    }

    #[test]
    fn a_definition_that_becomes_malformed_keeps_its_last_kind_until_it_is_gone() {
        let definition = |uid: &str, binding: &str| {
            let definition = json!({
                "metadata": {"name": "drains.ops.example", "uid": uid, "annotations": {keys::BINDING: binding}},
                "spec": {
                    "group": "ops.example", "names": {"plural": "drains", "kind": "Drain"},
                    "versions": [{"name": "v1", "served": true, "storage": true}],
                },
            });
            Arc::new(Discovered::of(&serde_json::from_value(definition).unwrap()))
        };
        let good = "{target: {name: object.spec.pod, kinds: [{version: v1, resource: pods, kind: Pod}]}}";
        let (mut kinds, bad) = (LastGood::default(), definition("u", "{tarjet: {}}"));
        assert!(bad.malformed().is_some());
        let mut count = |definitions: &[Arc<Discovered>]| kinds.of(definitions).len();
        assert_eq!(count(std::slice::from_ref(&bad)), 0, "nobody knows what it was");
        assert_eq!(count(&[definition("u", good)]), 1);
        assert_eq!(count(std::slice::from_ref(&bad)), 1);
        assert_eq!(count(&[definition("other", "")]), 0);
        assert_eq!(count(&[bad]), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn before_the_first_list_not_all_definitions_are_known() {
        let (client, _log) = answering(|_| Silence);
        let mut definitions = Definitions::follow(client, &Watches::default(), || {});
        assert_eq!(definitions.kinds().len(), 0);
        assert_eq!(definitions.problem().as_deref(), Some("waiting for the first list"));
    }

    /// A reporter, the log of its requests, and its Events.
    fn reporter() -> (Malformed, Log, Events) {
        let (client, log) = answering(|_| Done);
        let events = Events::over(client, "controller");
        (Malformed::new(events.clone()), log, events)
    }

    /// A definition that describes no kind, and the mistake in it.
    fn malformed(name: &str) -> (ObjectReference, String) {
        let definition = ObjectReference {
            name: Some(name.into()),
            uid: Some(format!("uid-of-{name}")),
            ..ObjectReference::default()
        };
        (definition, "target is missing".into())
    }

    #[tokio::test(start_paused = true)]
    async fn a_definition_that_describes_no_kind_carries_an_event_that_says_why() {
        let (mut reporter, log, _) = reporter();
        reporter.report(&[malformed("drains.ops.example")]);
        let sent = log.take_after(reporter).await;
        let [Sent { verb, body, .. }] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!(verb, "POST");
        assert_eq!(
            (&body["type"], &body["reason"], &body["note"]),
            (&json!("Warning"), &json!("InvalidBinding"), &json!("target is missing"))
        );
        assert_eq!(body["regarding"]["name"], "drains.ops.example");
    }

    #[tokio::test(start_paused = true)]
    async fn a_malformed_definition_is_reported_again_before_its_event_expires() {
        let (mut reporter, log, _) = reporter();
        let malformed = [malformed("drains.ops.example")];
        for _ in 0..55 * 60 {
            reporter.report(&malformed);
            sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(log.take_after(reporter).await.len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_malformed_definition_is_reported_at_once_after_it_was_correct_or_when_its_mistake_is_another()
    {
        let (mut reporter, log, _) = reporter();
        let (definition, problem) = malformed("drains.ops.example");
        let other = (definition.clone(), "target.kinds: is empty".to_owned());
        for definitions in
            [vec![(definition.clone(), problem.clone())], vec![], vec![(definition, problem)], vec![other]]
        {
            reporter.report(&definitions);
            reporter.report(&definitions);
        }
        let notes: Vec<_> =
            log.take_after(reporter).await.into_iter().map(|sent| sent.body["note"].clone()).collect();
        assert_eq!(notes.len(), 3, "{notes:?}");
        assert_eq!(notes[2], "target.kinds: is empty");
    }

    #[tokio::test(start_paused = true)]
    async fn a_malformed_definition_is_reported_as_soon_as_the_queue_of_events_has_room() {
        let (mut reporter, log, events) = reporter();
        while events.has_capacity() {
            events.publish(&ObjectReference::default(), Events::normal("Other", ""));
        }
        reporter.report(&[malformed("drains.ops.example")]);
        sleep(Duration::from_secs(60)).await;
        let is_told = |sent: &[Sent]| sent.iter().any(|sent| sent.body["reason"] == "InvalidBinding");
        assert!(!is_told(&log.take()));
        reporter.report(&[malformed("drains.ops.example")]);
        drop(events);
        assert!(is_told(&log.take_after(reporter).await));
    }
}
