//! Warns of kinds without a mapping whose definitions do not say that they honour the contract.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    time::Duration,
};

use basic_deployment_controller::{
    Settings,
    child_kind::ChildKind,
    undeclared_kind::{assumption, definition_of},
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Client, discovery::ApiResource};
use operator_kit::{
    render::short_digest,
    report::{SettingsEvents, Told},
    run::LiveSettings,
    watch::{ReadCause, ReadError, ServedKinds, live},
};
use tokio::{
    select,
    time::{sleep, timeout},
};

/// Time between looks at the definitions while the settings stay the same.
const LOOK_INTERVAL: Duration = Duration::from_secs(600);
/// Delay after a look at which a definition could not be read.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);
/// Time limit for reading one definition.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The kind of definitions, in words.
const CRD: &str = "CustomResourceDefinition";

/// The labels of the definitions of kinds without a mapping.
pub struct ContractLabels {
    client: Client,
    settings: LiveSettings<Settings>,
    served_kinds: ServedKinds,
    events: SettingsEvents,
    /// The warnings since the last change of the settings, by the name of the kind.
    told: Told,
    /// The kinds whose definition could not be read since then.
    unread: BTreeSet<String>,
}

impl ContractLabels {
    pub fn new(
        client: Client,
        settings: LiveSettings<Settings>,
        served_kinds: ServedKinds,
        events: SettingsEvents,
    ) -> Self {
        Self { client, settings, served_kinds, events, told: Told::default(), unread: BTreeSet::new() }
    }

    /// Looks at the definitions now, after each change of the settings, and from time to time.
    pub async fn keep(mut self) -> Infallible {
        loop {
            let next = self.look().await;
            select! {
                () = sleep(next) => {}
                () = self.settings.changed() => {
                    self.told.clear();
                    self.unread.clear();
                }
            }
        }
    }

    /// Looks at each definition once, and returns the time until the next look.
    async fn look(&mut self) -> Duration {
        let (settings, mut next) = (self.settings.current(), LOOK_INTERVAL);
        for kind in settings.children.iter().filter(|kind| !kind.is_mapped) {
            let name = format!("{} {}", kind.api_version, kind.kind);
            match self.warning_about(kind).await {
                Ok(Some(warning)) => self.warn(&name, &warning),
                Ok(None) => {
                    self.told.forget(&name);
                }
                Err(error) => {
                    if matches!(error.cause, ReadCause::Unanswered { .. }) {
                        next = RETRY_INTERVAL;
                    }
                    if self.unread.insert(name) {
                        tracing::warn!(
                            "whether {} honours the replica contract is unknown: {error}",
                            kind.kind
                        );
                    }
                }
            }
        }
        next
    }

    fn warn(&mut self, name: &str, warning: &str) {
        if self.told.is_due(name, warning) {
            tracing::warn!("{warning}");
            let action = format!("Assume{}", short_digest(&[warning]));
            self.events.warn("ContractNotDeclared", &action, warning);
        }
    }

    /// The warning about a kind; none while the kind is not served, which each object that needs it reports.
    async fn warning_about(&self, kind: &ChildKind) -> Result<Option<String>, ReadError> {
        let definition = match definition_of(kind) {
            Some(name) => self.definition(&name).await?,
            None => None,
        };
        if definition.is_none() && self.served_kinds.find(&kind.api_resource()).await?.is_none() {
            return Ok(None);
        }
        Ok(assumption(kind, definition.as_ref()))
    }

    /// The labels of a definition, if it exists.
    async fn definition(&self, name: &str) -> Result<Option<BTreeMap<String, String>>, ReadError> {
        let definitions = ApiResource::erase::<CustomResourceDefinition>(&());
        match timeout(READ_TIMEOUT, live::metadata_opt(&self.client, &definitions, "", name)).await {
            Ok(Ok(found)) => Ok(found.map(|metadata| metadata.labels.unwrap_or_default())),
            Ok(Err(error)) => Err(ReadError::of(&error, CRD, name)),
            Err(elapsed) => Err(ReadError::unanswered(CRD, name, elapsed.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use operator_kit::{
        report::Events,
        testing::{Answer, Log, Sent, answering},
    };
    use serde_json::{Value, json};

    use super::*;

    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/";

    /// A task with these kinds, over a server with these definitions: a code, and the labels. It serves apps/v1 Deployments.
    fn labels(
        children: &Value,
        definition: impl Fn(&str) -> (u16, Value) + Send + 'static,
    ) -> (ContractLabels, Log) {
        let (client, log) = answering(move |sent: &Sent| match sent.uri.strip_prefix(DEFINITIONS) {
            Some(name) => match definition(name) {
                (200, labels) => Answer::Object(json!({"metadata": {"name": name, "labels": labels}})),
                (code, _) => Answer::Refusal(code, if code == 404 { "NotFound" } else { "Forbidden" }),
            },
            None if sent.uri == "/apis/apps/v1" => Answer::Object(json!({
                "kind": "APIResourceList", "groupVersion": "apps/v1",
                "resources": [{
                    "name": "deployments", "singularName": "deployment", "namespaced": true, "kind": "Deployment",
                    "verbs": ["get", "list", "watch"],
                }],
            })),
            None if sent.verb == "GET" => Answer::Refusal(404, "NotFound"),
            None => Answer::Done,
        });
        let settings = json!({"children": children, "templates": {"default": "x"}});
        let settings = LiveSettings::fixed(serde_json::from_value(settings).unwrap());
        let events = SettingsEvents::over(Events::over(client.clone(), "test"), "system", "settings");
        let served_kinds = ServedKinds::new(client.clone());
        (ContractLabels::new(client, settings, served_kinds, events), log)
    }

    /// The notes of the Events since the last call.
    async fn notes(log: &Log) -> Vec<String> {
        sleep(Duration::from_secs(1)).await;
        let notes = log.take().into_iter().filter(|sent| sent.uri.contains("/events"));
        notes.map(|sent| sent.body["note"].as_str().unwrap_or_default().to_owned()).collect()
    }

    fn kind(name: &str) -> Value {
        json!({"apiVersion": "example.com/v1", "kind": name})
    }

    #[tokio::test(start_paused = true)]
    async fn a_definition_without_the_label_is_told_once_and_one_with_it_never() {
        let children = json!([kind("Labelled"), kind("Plain"), {"apiVersion": "example.com/v1", "kind": "Mapped", "contract": {}}]);
        let (mut labels, log) = labels(&children, |name| {
            assert_ne!(name, "mappeds.example.com", "its fields are mapped");
            let labels = json!({"contract.catena.dev/replicas": "v1"});
            (200, if name == "labelleds.example.com" { labels } else { Value::Null })
        });
        assert_eq!(labels.look().await, LOOK_INTERVAL);
        let told = notes(&log).await;
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("example.com/v1 Plain"), "{told:?}");
        labels.look().await;
        assert!(notes(&log).await.is_empty(), "it is told twice");
    }

    #[tokio::test(start_paused = true)]
    async fn a_warning_is_told_again_before_its_event_expires() {
        let (labels, log) = labels(&json!([kind("Plain")]), |_| (200, Value::Null));
        let keep = timeout(Duration::from_secs(55 * 60), labels.keep()).await;
        assert!(keep.is_err() && notes(&log).await.len() == 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_that_no_crd_defines_is_told_if_it_is_served() {
        let children = json!([{"apiVersion": "apps/v1", "kind": "Deployment"}, kind("Absent")]);
        let (mut labels, log) = labels(&children, |_| (404, Value::Null));
        labels.look().await;
        let told = notes(&log).await;
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("apps/v1 Deployment") && told[0].contains("no CRD defines it"), "{told:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_definition_that_may_not_be_read_accuses_nobody() {
        let (mut labels, log) = labels(&json!([kind("Hidden"), kind("Plain")]), |name| {
            if name == "hiddens.example.com" { (403, Value::Null) } else { (200, Value::Null) }
        });
        assert_eq!(labels.look().await, LOOK_INTERVAL);
        let told = notes(&log).await;
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("Plain"), "the one does not hide the other: {told:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_answer_is_asked_again_soon() {
        let (mut labels, log) = labels(&json!([kind("Plain")]), |_| (503, Value::Null));
        assert_eq!(labels.look().await, RETRY_INTERVAL);
        assert!(notes(&log).await.is_empty());
    }
}
