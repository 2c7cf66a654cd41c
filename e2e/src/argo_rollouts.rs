use std::{fs::File, path::PathBuf, process::Stdio};

use anyhow::{Context, Result};
use tokio::process::{Child, Command};

use crate::{ForeignKinds, GoModule, WAIT_TIMEOUT, cluster::path_from, eventually, kubectl};

/// The module in e2e that pins it.
const PINNED_BY: GoModule = GoModule("argo-rollouts");
/// Its own module.
const MODULE: &str = "github.com/argoproj/argo-rollouts";
/// The kinds that it watches, by the beginnings of their files.
const KINDS: [&str; 5] =
    ["rollout", "experiment", "analysis-run", "analysis-template", "cluster-analysis-template"];

/// The real controller of Argo Rollouts with its kinds, until this is dropped.
pub struct ArgoRollouts {
    program: PathBuf,
    process: Option<Child>,
    _kinds: ForeignKinds,
}

impl ArgoRollouts {
    /// Builds it, installs its kinds, and starts it. The test has to want the cluster alone, and to say that it
    /// `needs!(HostProcesses, Go, NoKindsOfOthers)`.
    pub async fn start() -> Result<Self> {
        let program = PINNED_BY.build(&format!("{MODULE}/cmd/rollouts-controller")).await?;
        let definitions = PINNED_BY.directory_of(MODULE).await?.join("manifests/crds");
        let file = |kind: &str| definitions.join(format!("{kind}-crd.yaml")).display().to_string();
        let kinds = ForeignKinds::of(KINDS.map(file).into()).await?;
        eventually("the schema of Rollouts is published", WAIT_TIMEOUT, async || {
            let said = kubectl(&["get", "--raw", "/openapi/v3/apis/argoproj.io/v1alpha1"]).await;
            let schemas = said.map_err(|error| format!("{error:#}"))?;
            if schemas.contains("\"Rollout\"") { Ok(()) } else { Err("it is not among them".to_owned()) }
        })
        .await;
        let mut argo = Self { program, process: None, _kinds: kinds };
        argo.again()?;
        Ok(argo)
    }

    /// Starts it again, after it was stopped. It logs to a file beside its program.
    pub fn again(&mut self) -> Result<()> {
        let log = File::options().create(true).append(true).open(self.program.with_extension("log"))?;
        let process = Command::new(&self.program)
            .arg("--kubeconfig")
            .arg(path_from("KUBECONFIG")?)
            .args(["--healthzPort=0", "--metricsport=0", "--leader-elect=false"])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn();
        self.process = Some(process.with_context(|| format!("could not start {}", self.program.display()))?);
        Ok(())
    }

    /// Kills it (SIGKILL).
    pub async fn stop(&mut self) -> Result<()> {
        Ok(self.process.take().context("it does not run")?.kill().await?)
    }
}
