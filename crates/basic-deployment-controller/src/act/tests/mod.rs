//! Each action over a mocked client: its requests, and the effects of each answer.

mod answers;
mod requests;

use basic_deployment_controller::error::Refusal;
use catena_api::BasicDeploymentStatus;
use operator_kit::testing::{Answer, Sent, answering, in_turn};

use super::*;
use crate::fixtures::{
    MANAGER, child, deployment, desired, observed, owner, places, rendered, restart, revision,
};

const REVISIONS: &str = "/apis/apps/v1/namespaces/shop/controllerrevisions";
const CHILDREN: &str = "/apis/catena.dev/v1alpha1/namespaces/shop/basicreplicasets";
const RESTARTS: &str = "/apis/catena.dev/v1alpha1/namespaces/shop/basicdeploymentrestarts";
const DEPLOYMENTS: &str = "/apis/catena.dev/v1alpha1/namespaces/shop/basicdeployments";

/// The outcome of an action.
struct Acted {
    sent: Vec<Sent>,
    result: Result<Next, Error>,
    memory: Memory,
}

/// Takes a step against a server that gives these answers, and then the last one forever.
async fn act_on(observed: &Observed, action: Action, answers: &[Answer]) -> Acted {
    let (client, log) = answering(in_turn(answers));
    let memory = Memory::default();
    let executor = Executor::new(Writer::over(client, MANAGER), places(), memory.clone());
    let result = executor.act(observed, action).await;
    Acted { sent: log.take(), result, memory }
}

async fn act(action: Action, answers: &[Answer]) -> Acted {
    act_on(&observed(), action, answers).await
}

const DONE: Answer = Answer::Echo("child");

fn record() -> Action {
    Action::Record { rendered: rendered(), number: 4 }
}

fn reclaim() -> Action {
    Action::Reclaim { name: "web-new".into(), uid: "stripped".into(), hash: "new".into(), number: 4 }
}

fn renumber() -> Action {
    let rejects = Rejects { hash: Some("bad".into()), command: Some("undo".into()) };
    Action::Renumber { revision: revision("web-new"), number: 5, rejects }
}

fn create() -> Action {
    Action::Create(desired().under(Some("2026-01-03T00:00:00Z".into())))
}

fn apply(heals: bool) -> Action {
    let mut child = child("web", "child");
    Arc::make_mut(&mut child).object["spec"]["restartedAt"] = "2026-01-01T00:00:00Z".into();
    Action::Apply { child, desired: desired(), heals }
}

fn restart_with(token: Option<&str>) -> Action {
    let token = token.map(str::to_owned);
    Action::Restart { child: child("web", "child"), command: restart(), token }
}

fn scale(heals: bool) -> Action {
    Action::Scale { child: child("web", "child"), heals }
}

fn scale_former() -> Action {
    Action::ScaleFormer { child: child("old", "former"), heals: false }
}

fn strip() -> Action {
    let additions = Additions { map: "spec.parameters".parse().unwrap(), keys: vec!["env.EVIL".into()] };
    Action::Strip { child: child("web", "child"), additions: vec![additions] }
}

fn delete(names: &[&str]) -> Action {
    Action::Delete(names.iter().map(|name| child(name, &format!("uid-of-{name}"))).collect())
}

fn prune() -> Action {
    Action::Prune(vec![revision("web-old")])
}

fn tell() -> Action {
    let status = CommandStatus { progress: Some("1/3".into()), ..CommandStatus::default() };
    Action::Tell(vec![(restart(), status)])
}

fn write_status() -> Action {
    Action::WriteStatus(Box::new(BasicDeploymentStatus { active: 2, ..BasicDeploymentStatus::default() }))
}
