use std::{path::Path, process::Stdio, time::Duration};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::{WAIT_TIMEOUT, cluster::path_from, eventually, run::run};

/// The output of kubectl-catena.
#[derive(Debug)]
pub struct Said {
    /// Its exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Said {
    /// Standard output as JSON.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.out).with_context(|| format!("no JSON: {self:?}"))
    }
}

/// Runs kubectl-catena like a user, in a namespace.
pub async fn catena(namespace: &str, arguments: &[&str]) -> Result<Said> {
    catena_as(&path_from("KUBECONFIG")?, &[&["--namespace", namespace], arguments].concat()).await
}

/// Runs kubectl-catena, which must succeed.
pub async fn succeeds(namespace: &str, arguments: &[&str]) -> Result<Said> {
    let said = catena(namespace, arguments).await?;
    ensure!(said.code == 0, "{arguments:?}: {said:?}");
    Ok(said)
}

/// The exit code of `why` for an object that is not well.
const NOT_WELL: i32 = 5;

/// Asks `why` about an object, well or not, which it must be able to explain.
pub async fn explained(namespace: &str, object: &[&str]) -> Result<Said> {
    let said = catena(namespace, &[&["why"], object].concat()).await?;
    ensure!([0, NOT_WELL].contains(&said.code), "why {object:?}: {said:?}");
    Ok(said)
}

/// Waits until `why` names a reason as the root cause, and returns the answer.
pub async fn until_root_cause(namespace: &str, object: &str, reason: &str) -> Value {
    let is_so = |answer: &Value| answer["rootCause"]["reason"] == reason;
    until_why(WAIT_TIMEOUT, namespace, object, &format!("is explained by {reason}"), is_so).await
}

/// Waits until the sentence of `why` about an object begins with these words, and returns the answer.
pub async fn until_says(limit: Duration, namespace: &str, object: &str, begins: &str) -> Value {
    let is_so =
        |answer: &Value| answer["sentence"].as_str().is_some_and(|sentence| sentence.starts_with(begins));
    until_why(limit, namespace, object, &format!("says: {begins}"), is_so).await
}

async fn until_why(
    limit: Duration,
    namespace: &str,
    object: &str,
    what: &str,
    is_so: impl Fn(&Value) -> bool,
) -> Value {
    eventually(&format!("why {object} {what}"), limit, async || {
        let said = catena(namespace, &["why", object, "-o", "json"]).await;
        let answer = said.and_then(|said| said.json()).map_err(|error| json!(format!("{error:#}")))?;
        if is_so(&answer) { Ok(answer) } else { Err(answer) }
    })
    .await
}

/// kubectl-catena as a process that a test may end, in a namespace.
pub fn catena_process(namespace: &str, arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(path_from("CATENA_PLUGIN")?);
    command.args(["--namespace", namespace]).args(arguments);
    command.env("KUBECONFIG", path_from("KUBECONFIG")?).stdin(Stdio::null()).kill_on_drop(true);
    Ok(command)
}

/// Runs kubectl-catena with another kubeconfig.
pub async fn catena_as(kubeconfig: &Path, arguments: &[&str]) -> Result<Said> {
    let mut catena = Command::new(path_from("CATENA_PLUGIN")?);
    catena.args(arguments).env("KUBECONFIG", kubeconfig);
    let output = run(catena, "").await?;
    Ok(Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
