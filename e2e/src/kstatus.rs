//! The status of objects as kstatus computes it: the library by which Flux and kpt decide whether an object is done. The
//! program in `e2e/kstatus` only calls it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::{process::Command, sync::OnceCell};

use crate::{Namespace, WAIT_TIMEOUT, eventually, kubectl, run::output_of};

static PROGRAM: OnceCell<PathBuf> = OnceCell::const_new();

/// The result of kstatus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computed {
    /// `InProgress`, `Failed`, `Current`, `Terminating`, …
    pub status: String,
    /// The message, which is that of the deciding condition.
    pub message: String,
}

/// Computes the status of an object, given as JSON.
pub async fn kstatus(json: &str) -> Result<Computed> {
    let program = PROGRAM.get_or_try_init(build).await?;
    let line = output_of(Command::new(program), json).await?;
    let (status, message) = line.trim_end().split_once('\t').context("kstatus printed no status")?;
    Ok(Computed { status: status.to_owned(), message: message.to_owned() })
}

/// Waits until kstatus computes a status for an object (`kind/name`), and returns the message.
pub async fn until_kstatus(namespace: &Namespace, object: &str, status: &str) -> String {
    let get = ["get", object, "--namespace", &namespace.name, "--output", "json"];
    eventually(&format!("{object} is {status}"), WAIT_TIMEOUT, async || {
        let json = kubectl(&get).await.map_err(|error| format!("{error:#}"))?;
        let computed = kstatus(&json).await.map_err(|error| format!("{error:#}"))?;
        if computed.status == status { Ok(computed.message) } else { Err(format!("{computed:?}: {json}")) }
    })
    .await
}

/// Builds the program beside the test's own; Go's cache makes all builds but the first one quick.
async fn build() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let program = own.parent().context("the test has no directory")?.join("kstatus");
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("kstatus");
    let mut go = Command::new("go");
    go.current_dir(module)
        .args(["build", "-trimpath", "-mod=readonly", "-buildvcs=false", "-o"])
        .arg(&program)
        .arg(".")
        // Never fetch another Go behind the user's back.
        .envs([("GOTOOLCHAIN", "local"), ("GOFLAGS", ""), ("GOWORK", "off")]);
    output_of(go, "").await?;
    Ok(program)
}
