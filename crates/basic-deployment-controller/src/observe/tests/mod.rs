//! Live reads over a mocked client, and the effects of each answer.

mod child;
mod orphans;
mod pauses;
mod pods;
mod unlisted;

use std::time::Duration;

use catena_api::{BasicDeploymentStatus, ChildStatus, keys};
use operator_kit::{
    report::{Events, Failures},
    run::{Controller, Queue, Requeue},
    testing::{Answer, Log, Sent, answering},
    write::Writer,
};
use operator_watch::Failure;
use serde_json::{Value, json};

use super::*;
use crate::{
    act::Executor,
    controller::Deployments,
    fixtures::{self, child_object, deployment, owner},
};

const TEMPLATE: &str = "{apiVersion: catena.dev/v1alpha1, kind: BasicReplicaSet, metadata: {name: {{ name }}}, spec: {parameters: {image: nginx}}}";
const REVISIONS: &str = "/apis/apps/v1/namespaces/shop/controllerrevisions";
const CHILD: &str = "/apis/catena.dev/v1alpha1/namespaces/shop/basicreplicasets/web";
const DEPLOYMENT: &str = "/apis/catena.dev/v1alpha1/namespaces/shop/basicdeployments/web";
/// An API group that the cluster does not serve.
const UNSERVED: &str = "/apis/example.com/";

const MISSING: Answer = Answer::Refusal(404, "NotFound");
const FORBIDDEN: Answer = Answer::Refusal(403, "Forbidden");
const BROKEN: Answer = Answer::Refusal(500, "InternalError");

/// An attempt at an object after a failure that holds up everything.
fn held_up() -> Backoffs {
    Backoffs::of_everything(Failure::transient("WriteFailed", ""))
}

/// What is reported of an error.
fn failure(error: StepError) -> Failure {
    Failures::from(error).parts.remove(0)
}

/// A controller with filled caches.
struct Cluster {
    deployments: Deployments,
    log: Log,
}

impl Cluster {
    /// A cluster with these objects, by the plural of their kind, and an answer to all other requests. A kind with `null` is not
    /// served.
    async fn of(
        listed: Vec<(&'static str, Value)>,
        answer: impl FnMut(&Sent) -> Answer + Send + 'static,
    ) -> Self {
        Self::with(settings(), listed, answer).await
    }

    /// The same with other settings.
    async fn with(
        settings: Settings,
        listed: Vec<(&'static str, Value)>,
        mut answer: impl FnMut(&Sent) -> Answer + Send + 'static,
    ) -> Self {
        let (client, log) = answering(move |sent| match sent.uri.split_once('?') {
            Some((path, _)) if path.starts_with(UNSERVED) => MISSING,
            Some((_, query)) if query.contains("watch=") => Answer::Silence,
            Some((path, _)) if sent.verb == "GET" && !path.contains("/namespaces/") => {
                let of_kind = listed.iter().filter(|(kind, _)| path.ends_with(kind));
                if of_kind.clone().any(|(_, object)| object.is_null()) {
                    return MISSING;
                }
                let items: Vec<_> = of_kind.map(|(_, object)| object).collect();
                Answer::Object(json!({"metadata": {"resourceVersion": "1"}, "items": items}))
            }
            _ => answer(sent),
        });
        let queue = Queue::default();
        let (settings, memory) = (SettingsHandle::fixed(settings), Memory::default());
        let observer = Observer::new(
            client.clone(),
            settings.clone(),
            Discovery::new(client.clone()),
            Watches::default(),
            &queue,
            memory.clone(),
        );
        // Events come in the background, and would mix with the requests of a pass.
        let events = Events::over(answering(|_| Answer::Done).0, env!("CARGO_PKG_NAME"));
        let executor =
            Executor::new(Writer::over(client, env!("CARGO_PKG_NAME")), observer.revisions(), memory);
        let blind = || {
            let kinds = observer.children.of(&observer.settings.current().children);
            let mut watches = kinds.iter().map(|known| known.cache.watch());
            watches.any(|watch| watch.problem().is_some() && !watch.is_unserved())
                || observer.history.problem().is_some()
        };
        let known = async {
            while blind() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), known).await.expect("the caches are filled");
        drop(log.take());
        Self { deployments: Deployments { observer, executor, events, settings }, log }
    }

    async fn observe(&self, deployment: BasicDeployment, backoffs: Backoffs) -> Result<Observed, StepError> {
        self.deployments.observe(Arc::new(deployment), backoffs).await
    }

    /// Makes a pass, like the kit.
    async fn pass(&self) -> Result<Requeue, Failure> {
        self.pass_over(deployment()).await
    }

    async fn pass_over(&self, deployment: BasicDeployment) -> Result<Requeue, Failure> {
        let observed = self.deployments.observe(Arc::new(deployment), Backoffs::default()).await;
        let observed = observed.map_err(failure)?;
        let action = self.deployments.decide(&observed);
        self.deployments.act(observed, action).await.map_err(failure)
    }

    /// The requests since the last call: verb and path.
    fn asked(&self) -> Vec<String> {
        let asked = self.log.take().into_iter();
        asked.map(|Sent { verb, uri, .. }| format!("{verb} {}", uri.split('?').next().unwrap())).collect()
    }
}

fn settings() -> Settings {
    let child = json!({"apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet"});
    settings_of(&child)
}

/// Settings with this kind of children.
fn settings_of(child: &Value) -> Settings {
    serde_json::from_value(json!({"children": [child], "templates": {"default": TEMPLATE}})).unwrap()
}

/// The rendering of spec and template.
fn rendering() -> Rendered {
    render(&deployment(), &settings()).unwrap()
}

fn name_of(hash: &str) -> String {
    revision::name("web", "deployment", hash)
}

/// The revision of a rendering on the server.
fn revision_object(rendered: &Rendered, number: i64, uid: &str, owner_uid: &str) -> Value {
    json!({
        "metadata": {
            "name": name_of(&rendered.hash), "namespace": "shop", "uid": uid,
            "labels": {keys::DEPLOYMENT_UID: "deployment"},
            "annotations": {keys::HASH: rendered.hash},
            "ownerReferences": [owner(owner_uid)],
        },
        "data": rendered.object,
        "revision": number,
    })
}

/// The stored rendering of spec and template.
fn stored() -> (&'static str, Value) {
    ("controllerrevisions", revision_object(&rendering(), 1, "stored", "deployment"))
}
