use std::{
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::{Child, ChildStderr},
    time::{sleep, timeout},
};

use crate::{
    WAIT_TIMEOUT,
    cluster::path_from,
    eventually,
    run::{output_of, run},
};

/// Runs kubectl, and returns its output.
pub async fn kubectl(arguments: &[&str]) -> Result<String> {
    let mut kubectl = program()?;
    kubectl.args(arguments);
    output_of(kubectl.into(), "").await
}

/// Applies `yaml` in a namespace, like a user.
pub async fn kubectl_apply(namespace: &str, yaml: &str) -> Result<String> {
    let apply = ["apply", "--namespace", namespace, "--filename", "-"];
    let (succeeded, said) = kubectl_with_input(&apply, yaml).await?;
    ensure!(succeeded, "kubectl apply: {said}");
    Ok(said)
}

/// Creates the object of `yaml` in a namespace, like a user, and returns its name: `kind.group/name`.
pub async fn kubectl_create(namespace: &str, yaml: &str) -> Result<String> {
    let arguments = ["create", "--namespace", namespace, "--filename", "-", "--output", "name"];
    let (succeeded, said) = kubectl_with_input(&arguments, yaml).await?;
    ensure!(succeeded, "kubectl create: {said}");
    Ok(said.trim().to_owned())
}

/// Runs kubectl with an input, and returns whether it succeeded, with its output.
pub async fn kubectl_with_input(arguments: &[&str], text: &str) -> Result<(bool, String)> {
    let mut kubectl = program()?;
    kubectl.args(arguments);
    let output = run(kubectl.into(), text).await?;
    let said = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
}

/// A request with a body that has not come yet. Until it has, the API server does not end the watches that show objects by the
/// definition that was valid before.
pub struct RequestUnderWay {
    kubectl: Child,
    said: BufReader<ChildStderr>,
}

impl RequestUnderWay {
    /// Begins to create an object in this collection, such as `/api/v1/namespaces/default/pods`.
    pub async fn of(collection: &str) -> Result<Self> {
        let mut kubectl = tokio::process::Command::from(program()?);
        kubectl.args(["create", "--raw", collection, "--filename", "-", "--v=9"]).kill_on_drop(true);
        let mut kubectl =
            kubectl.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut said = BufReader::new(kubectl.stderr.take().context("it has no output")?);
        let mut line = String::new();
        let connected = async {
            while !line.contains("HTTP Trace: Dial") {
                line.clear();
                ensure!(said.read_line(&mut line).await? > 0, "kubectl has not begun a request");
            }
            Ok(())
        };
        timeout(WAIT_TIMEOUT, connected).await.context("kubectl has not connected")??;
        // The head of the request follows, of which it tells nothing.
        sleep(Duration::from_millis(500)).await;
        Ok(Self { kubectl, said })
    }

    /// Has the request refused, which is an empty one.
    pub async fn end(mut self) -> Result<()> {
        let status = self.kubectl.wait_with_output().await?.status;
        let mut said = String::new();
        self.said.read_to_string(&mut said).await?;
        ensure!(!status.success() && said.contains("Error from server"), "it was over before: {said}");
        Ok(())
    }
}

/// Waits until these definitions are served, named as kubectl does. kubectl gives up at once about one that has no conditions yet.
pub async fn until_established(definitions: &[&str]) {
    let wait = [&["wait", "--for=condition=Established", "--timeout=60s"], definitions].concat();
    eventually("the definitions are served", 2 * WAIT_TIMEOUT, async || kubectl(&wait).await).await;
}

/// kubectl with a cache of its own beside the kubeconfig, because the user's cache may belong to another cluster with
/// the same address.
fn program() -> Result<Command> {
    let mut kubectl = Command::new(path_from("CATENA_KUBECTL")?);
    let kubeconfig = path_from("KUBECONFIG")?;
    let cache = kubeconfig.parent().unwrap_or(Path::new(".")).join("kubectl-cache");
    kubectl.arg("--cache-dir").arg(cache);
    Ok(kubectl)
}

/// The objects in a namespace, for the output of a failed test.
pub(crate) fn inspect(namespace: &str) -> String {
    let show = |arguments: &[&str]| -> Result<String> {
        let output = program()?.args(["--namespace", namespace]).args(arguments).output()?;
        Ok(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    [
        &["get", "basicdeployments,basicreplicasets", "--output", "yaml"][..],
        &["get", "pods", "--output", "wide"],
        &["get", "events.events.k8s.io"],
    ]
    .into_iter()
    .map(|arguments| show(arguments).unwrap_or_else(|error| format!("{error:#}")))
    .collect::<Vec<_>>()
    .join("\n")
}
