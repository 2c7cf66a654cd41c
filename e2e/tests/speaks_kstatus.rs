//! Tools that wait for an object by kstatus, such as Flux and kpt, see each kind in each state as it is: in progress from its
//! creation, failed with the message, and current only when it is done.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use catena_api::BasicDeployment;
use e2e::{
    CHAIN, COMMANDED, Cluster, GoModule, Namespace, WAIT_TIMEOUT, another_image, deployment, eventually,
    kubectl, kubectl_with_input, output_of,
};
use serde_json::{Value, json};
use tokio::{process::Command, sync::OnceCell};

const API: &str = "catena.dev/v1alpha1";

/// The program in `e2e/kstatus`, which only calls the library by which Flux and kpt decide whether an object is done.
static PROGRAM: OnceCell<PathBuf> = OnceCell::const_new();

/// The result of kstatus.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Computed {
    /// `InProgress`, `Failed`, `Current`, `Terminating`, …
    status: String,
    /// The message, which is that of the deciding condition.
    message: String,
}

/// Computes the status of an object, given as JSON.
async fn kstatus(json: &str) -> Result<Computed> {
    let program = PROGRAM.get_or_try_init(|| GoModule("kstatus").build(".")).await?;
    let line = output_of(Command::new(program), json).await?;
    let (status, message) = line.trim_end().split_once('\t').context("kstatus printed no status")?;
    Ok(Computed { status: status.to_owned(), message: message.to_owned() })
}

/// Waits until kstatus computes a status for an object (`kind/name`), and returns the message.
async fn until_kstatus(namespace: &Namespace, object: &str, status: &str) -> String {
    let get = ["get", object, "--namespace", &namespace.name, "--output", "json"];
    eventually(&format!("{object} is {status}"), WAIT_TIMEOUT, async || {
        let json = kubectl(&get).await.map_err(|error| format!("{error:#}"))?;
        let computed = kstatus(&json).await.map_err(|error| format!("{error:#}"))?;
        if computed.status == status { Ok(computed.message) } else { Err(format!("{computed:?}: {json}")) }
    })
    .await
}

/// Creates an object, and returns its status at that moment: no controller has seen it.
async fn created(namespace: &Namespace, object: &Value) -> Result<Computed> {
    let create = ["create", "--namespace", &namespace.name, "--filename", "-", "--output", "json"];
    let (succeeded, said) = kubectl_with_input(&create, &object.to_string()).await?;
    ensure!(succeeded, "kubectl create: {said}");
    kstatus(&said).await
}

fn command(kind: &str, name: &str, target: &str, spec: &Value) -> Value {
    let mut command = json!({
        "apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": {"targetRef": {"name": target}},
    });
    for (field, value) in spec.as_object().into_iter().flatten() {
        command["spec"][field.as_str()] = value.clone();
    }
    command
}

#[tokio::test]
async fn a_workload_is_in_progress_until_it_serves_and_failed_when_it_is_stuck() -> Result<()> {
    e2e::needs!(Go);
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("workloads").await?;
    let web = created(&namespace, &json!(deployment("web", 2))).await?;
    assert_eq!(web.status, "InProgress", "{web:?}");
    for object in ["basicdeployment/web", "basicreplicaset/web"] {
        until_kstatus(&namespace, object, "Current").await;
    }
    let image = json!({"spec": {"parameters": {"image": another_image()}, "replicas": 3}});
    let changed = namespace.merge::<BasicDeployment>("web", image).await?;
    let changed = kstatus(&json!(changed).to_string()).await?;
    assert_eq!(changed.status, "InProgress", "its numbers are those of the former spec: {changed:?}");
    until_kstatus(&namespace, "basicdeployment/web", "Current").await;

    for kind in ["BasicDeployment", "BasicReplicaSet"] {
        let stuck = json!({
            "apiVersion": API, "kind": kind, "metadata": {"name": "stuck"}, "spec": {"template": "missing"},
        });
        let new = created(&namespace, &stuck).await?;
        assert_eq!(new.status, "InProgress", "{kind}: {new:?}");
        let message = until_kstatus(&namespace, &format!("{kind}/stuck"), "Failed").await;
        ensure!(message.contains("missing"), "{kind}: {message}");
    }
    Ok(())
}

#[tokio::test]
async fn a_command_is_in_progress_while_it_waits_current_after_success_and_failed_with_the_message()
-> Result<()> {
    e2e::needs!(Go);
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("commands").await?;
    for kind in ["BasicDeploymentRestart", "BasicDeploymentRollback"] {
        let lost = command(kind, "lost", "nothing", &json!({"activeDeadlineSeconds": 600}));
        let new = created(&namespace, &lost).await?;
        assert_eq!(new.status, "InProgress", "{kind}: {new:?}");
        // command-binder has reported that there is no target.
        let wait = ["wait", "--for=condition=Bound=False", &format!("{kind}/lost"), "--timeout=60s"];
        kubectl(&[&wait[..], &["--namespace", &namespace.name]].concat()).await?;
        until_kstatus(&namespace, &format!("{kind}/lost"), "InProgress").await;

        let late = command(kind, "late", "nothing", &json!({"activeDeadlineSeconds": 1}));
        created(&namespace, &late).await?;
        let message = until_kstatus(&namespace, &format!("{kind}/late"), "Failed").await;
        ensure!(message.contains("its deadline has passed"), "{kind}: {message}");
    }

    namespace.create(&deployment("web", 2)).await?;
    namespace.until_ready("web").await;
    created(&namespace, &command("BasicDeploymentRollback", "unknown", "web", &json!({"toRevision": 99})))
        .await?;
    let message = until_kstatus(&namespace, "basicdeploymentrollback/unknown", "Failed").await;
    ensure!(message.contains("99"), "{message}");

    // While the rollout is paused, the first restart waits for that, and the second one is queued behind it.
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"paused": true}})).await?;
    for name in ["first", "second"] {
        created(&namespace, &command("BasicDeploymentRestart", name, "web", &json!({}))).await?;
        until_kstatus(&namespace, &format!("basicdeploymentrestart/{name}"), "InProgress").await;
    }
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"paused": false}})).await?;
    for name in ["first", "second"] {
        until_kstatus(&namespace, &format!("basicdeploymentrestart/{name}"), "Current").await;
    }

    let image = json!({"spec": {"parameters": {"image": another_image()}}});
    namespace.merge::<BasicDeployment>("web", image).await?;
    namespace.until_ready("web").await;
    created(&namespace, &command("BasicDeploymentRollback", "back", "web", &json!({}))).await?;
    until_kstatus(&namespace, "basicdeploymentrollback/back", "Current").await;
    Ok(())
}
