//! Each action over a mocked client: its requests, and the effects of each answer.

mod answers;
mod requests;

use std::time::Duration;

use basic_deployment_controller::drift::added_keys;
use catena_api::BasicDeploymentStatus;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::discovery::ApiResource;
use operator_kit::{
    report::Failures,
    testing::{Answer, Sent, answering, in_turn},
};
use operator_watch::SeenVersion;
use serde_json::Value;

use super::*;
use crate::fixtures::{child, deployment, desired, observed, owner, rendered, revision};

/// The field manager of the controller.
const MANAGER: &str = env!("CARGO_PKG_NAME");

const REVISIONS: &str = "/apis/apps/v1/namespaces/shop/controllerrevisions";
const CHILDREN: &str = "/apis/catena.dev/v1alpha1/namespaces/shop/basicreplicasets";
const DEPLOYMENTS: &str = "/apis/catena.dev/v1alpha1/namespaces/shop/basicdeployments";

/// The outcome of an action.
struct Acted {
    sent: Vec<Sent>,
    result: Result<Requeue, Failures>,
    memory: Memory,
}

/// Takes a step against a server that gives these answers, and then the last one forever.
async fn act_on(observed: &Observed, action: Action, answers: &[Answer]) -> Acted {
    let (client, log) = answering(in_turn(answers));
    let memory = Memory::default();
    let executor = Executor::new(Writer::over(client, MANAGER), revisions(), memory.clone());
    let result = executor.act(observed, action).await.map_err(Failures::from);
    Acted { sent: log.take(), result, memory }
}

async fn act(action: Action, answers: &[Answer]) -> Acted {
    act_on(&observed(), action, answers).await
}

/// Where revisions are.
fn revisions() -> WriteTarget {
    WriteTarget::new(ApiResource::erase::<ControllerRevision>(&()), &SeenVersion::default())
}

const DONE: Answer = Answer::Echo("child");

fn record() -> Action {
    Action::Record { rendered: rendered(), number: 4 }
}

fn adopt() -> Action {
    let orphan = Revision { made_for: Some("former".into()), ..Revision::clone(&revision("web-old")) };
    Action::Adopt(vec![Arc::new(orphan)])
}

fn renumber() -> Action {
    Action::Renumber { revision: revision("web-new"), number: 5 }
}

fn create() -> Action {
    let token = Some("2026-01-03T00:00:00Z".into());
    Action::Create { desired: Desired { token, ..desired() }, replicas: 3 }
}

fn apply(heals: bool) -> Action {
    let mut child = child("web", "child");
    Arc::make_mut(&mut child).object["spec"]["restartedAt"] = "2026-01-01T00:00:00Z".into();
    Action::Apply { child, desired: desired(), replicas: 3, heals }
}

fn hand_token() -> Action {
    Action::Restart { child: child("web", "child"), token: "2026-01-02T00:00:00Z".into() }
}

fn scale(heals: bool) -> Action {
    Action::Scale { child: child("web", "child"), replicas: 3, heals, is_former: false }
}

fn scale_former() -> Action {
    Action::Scale { child: child("old", "former"), replicas: 2, heals: false, is_former: true }
}

fn strip() -> Action {
    let mut added = Child::clone(&child("web", "child"));
    added.object["spec"]["parameters"]["env.EVIL"] = "yes".into();
    let (field, patch) = added_keys(&added, &desired()).unwrap();
    Action::Strip { child: Arc::new(added), field, patch }
}

fn delete(names: &[&str]) -> Action {
    Action::Delete(names.iter().map(|name| child(name, &format!("uid-of-{name}"))).collect())
}

fn prune() -> Action {
    Action::Prune(vec![revision("web-old")])
}

fn write_status() -> Action {
    Action::WriteStatus(Box::new(BasicDeploymentStatus { active: 2, ..BasicDeploymentStatus::default() }))
}
