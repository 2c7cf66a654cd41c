//! Kinds of commands that are described by their own definitions.

use std::sync::Arc;

use catena_api::{keys, reason};
use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Client, Resource};
use operator_watch::{Cache, PrunedObject, Watch, Watches};
use serde::Deserialize;

use crate::{definition::describe, kind::CommandKind};

/// A definition with the label of commands, as one that describes a kind. One with a mistake cannot be read as such: as with settings,
/// a mistake changes nothing, and the last kind stays, because the commands of a kind that went would no longer be counted.
#[derive(Resource, Deserialize)]
#[resource(inherit = "CustomResourceDefinition")]
#[serde(try_from = "PrunedObject")]
struct Definition {
    metadata: ObjectMeta,
    kind: Arc<CommandKind>,
}

impl TryFrom<PrunedObject> for Definition {
    type Error = String;

    fn try_from(definition: PrunedObject) -> Result<Self, String> {
        Ok(Self { kind: Arc::new(describe(&definition)?), metadata: definition.metadata })
    }
}

/// The definitions that describe kinds of commands.
pub struct Definitions(Arc<Cache<Definition>>);

impl Definitions {
    /// Follows them, and calls `changed` at each change. The others are reported by Events, each on itself.
    pub fn follow(client: &Client, watches: &Watches, changed: impl Fn() + Send + Sync + 'static) -> Self {
        let watch = Watch::<Definition>::all(client, &())
            .called("CustomResourceDefinition with the label catena.dev/command")
            .labelled(&format!("{}=true", keys::COMMAND_KIND))
            .reported_as(reason::INVALID_BINDING);
        Self(watches.cache(watch, |definition| definition, move |_| changed()))
    }

    /// The kinds that are described.
    #[must_use]
    pub fn kinds(&self) -> Vec<Arc<CommandKind>> {
        let definitions = self.0.filter(|_| true);
        let mut kinds: Vec<_> = definitions.iter().map(|definition| definition.kind.clone()).collect();
        kinds.sort_by(|a, b| a.id.cmp(&b.id));
        kinds
    }

    /// Why not all of them may be known.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.0.watch().problem()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use operator_kit::{
        report::Events,
        testing::{Answer, Log, Sent, answering},
    };
    use serde_json::{Value, json};
    use tokio::time::sleep;

    use super::*;

    const GOOD: &str = "{target: {name: object.spec.pod, kinds: [{version: v1, resource: pods, kind: Pod}]}}";
    const BAD: &str = "{tarjet: {}}";

    /// A definition, as an item of a list.
    fn definition(binding: &str) -> Value {
        json!({
            "metadata": {
                "name": "drains.ops.example", "uid": "u", "resourceVersion": "1",
                "annotations": {keys::BINDING: binding},
            },
            "spec": {
                "group": "ops.example", "names": {"plural": "drains", "kind": "Drain"},
                "versions": [{"name": "v1", "served": true, "storage": true}],
            },
        })
    }

    /// The definitions of a server that lists these in turn, the last one again and again; and all requests to it.
    fn following(lists: Vec<Value>) -> (Definitions, Log) {
        let mut lists = lists.into_iter();
        let mut last = json!([]);
        let (client, log) = answering(move |sent| match sent {
            Sent { verb, .. } if verb == "POST" => Answer::Done,
            Sent { uri, .. } if uri.contains("watch=true") => Answer::Json(410, json!({"code": 410})),
            _ => {
                last = lists.next().unwrap_or_else(|| last.clone());
                Answer::Object(json!({"metadata": {"resourceVersion": "1"}, "items": last}))
            }
        });
        let watches = Watches::new(Arc::new(Events::over(client.clone(), "controller")));
        (Definitions::follow(&client, &watches, || {}), log)
    }

    fn events(log: &Log) -> Vec<Value> {
        log.take().into_iter().filter(|sent| sent.verb == "POST").map(|sent| sent.body).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn before_the_first_list_not_all_definitions_are_known() {
        let (client, _log) = answering(|_| Answer::Silence);
        let definitions = Definitions::follow(&client, &Watches::default(), || {});
        assert_eq!(definitions.kinds().len(), 0);
        assert_eq!(definitions.problem().as_deref(), Some("waiting for the first list"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_definition_that_describes_no_kind_carries_an_event_that_says_why() {
        let (definitions, log) = following(vec![json!([definition(BAD)])]);
        sleep(Duration::from_secs(55 * 60)).await;
        assert_eq!(definitions.kinds().len(), 0, "nobody knows what it was");
        let events = events(&log);
        let [event, _] = &events[..] else { panic!("it is told again before its Event expires: {events:?}") };
        assert_eq!((&event["type"], &event["reason"]), (&json!("Warning"), &json!("InvalidBinding")));
        let note = event["note"].as_str().unwrap();
        assert!(note.starts_with("the annotation catena.dev/binding cannot be parsed: "), "{note}");
        let regarding = ["apiVersion", "kind", "name", "uid"].map(|field| &event["regarding"][field]);
        assert_eq!(
            regarding,
            ["apiextensions.k8s.io/v1", "CustomResourceDefinition", "drains.ops.example", "u"]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_definition_that_becomes_malformed_keeps_its_last_kind_until_it_is_gone() {
        for (last, expected) in [(json!([definition(BAD)]), 1), (json!([]), 0)] {
            let (definitions, _log) = following(vec![json!([definition(GOOD)]), last]);
            sleep(Duration::from_secs(60)).await;
            assert_eq!(definitions.kinds().len(), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_malformed_definition_is_reported_at_once_after_it_was_correct_or_when_its_mistake_is_another()
    {
        let lists = [BAD, GOOD, BAD, "{}"].map(|binding| json!([definition(binding)]));
        let (_definitions, log) = following(lists.into());
        sleep(Duration::from_secs(20 * 60)).await;
        let events = events(&log);
        assert_eq!(events.len(), 3, "{events:?}");
        assert!(events[2]["note"].as_str().unwrap().contains("target"), "{events:?}");
    }
}
