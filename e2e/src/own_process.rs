use std::{
    future::pending,
    net::SocketAddr,
    path::PathBuf,
    process::{ExitStatus, Stdio},
};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::{ChaosProxy, Controller, cluster::path_from, process::resident};

/// A controller that a test runs by itself, behind a proxy, as administrator.
pub struct OwnProcess {
    program: PathBuf,
    directory: PathBuf,
    child: Option<Child>,
    /// The namespace of its Lease, if it has other replicas.
    lease_in: Option<String>,
    /// Number of starts.
    starts: usize,
}

impl OwnProcess {
    /// Where the program of a controller is on this machine, where clusters run it from too.
    pub fn program(controller: Controller) -> Result<PathBuf> {
        Ok(path_from("CATENA_PLUGIN")?.with_file_name(controller.name()))
    }

    /// Starts the only replica.
    pub fn start(program: PathBuf, proxy: &ChaosProxy, settings: &Value) -> Result<Self> {
        Self::with(program, proxy.address, settings, None)
    }

    /// Starts one of several replicas, the leader of which holds a Lease in this namespace.
    pub fn start_replica(
        program: PathBuf,
        server: SocketAddr,
        settings: &Value,
        lease_in: &str,
    ) -> Result<Self> {
        Self::with(program, server, settings, Some(lease_in.to_owned()))
    }

    fn with(
        program: PathBuf,
        server: SocketAddr,
        settings: &Value,
        lease_in: Option<String>,
    ) -> Result<Self> {
        let directory = std::env::temp_dir().join(format!("catena-{}", server.port()));
        std::fs::create_dir_all(&directory)?;
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "x", "cluster": {"server": format!("http://{server}")}}],
            "users": [{"name": "x", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        });
        std::fs::write(directory.join("kubeconfig"), kubeconfig.to_string())?;
        let mut process = Self { program, directory, child: None, lease_in, starts: 0 };
        process.configure(settings)?;
        process.child = Some(process.spawn(&[])?);
        Ok(process)
    }

    /// Writes other settings, which it reads by itself.
    pub fn configure(&self, settings: &Value) -> Result<()> {
        Ok(std::fs::write(self.directory.join("settings.yaml"), settings.to_string())?)
    }

    /// Kills it (SIGKILL), and starts it again.
    pub async fn crash(&mut self) -> Result<()> {
        self.stop().await?;
        self.again()
    }

    /// Starts it again, after it has ended.
    pub fn again(&mut self) -> Result<()> {
        self.starts += 1;
        // Small steps, so that many kills fit into one run.
        self.child = Some(self.spawn(&["--concurrency", "8"])?);
        Ok(())
    }

    /// Kills it (SIGKILL).
    pub async fn stop(&mut self) -> Result<()> {
        Ok(self.child.take().context("it does not run")?.kill().await?)
    }

    /// Asks it to end (SIGTERM), and waits until it has.
    pub async fn terminate(&mut self) -> Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        let mut child = self.child.take().context("it does not run")?;
        Ok(child.wait().await?)
    }

    /// Stops it (SIGSTOP), until it is continued.
    pub fn freeze(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Continues it (SIGCONT).
    pub fn thaw(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = self.child.as_ref().and_then(Child::id).context("it does not run")?;
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("its pid is unknown")?;
        Ok(kill_process(pid, signal)?)
    }

    /// Waits until it ends by itself, which it never should.
    pub async fn until_ended(&mut self) -> Result<ExitStatus> {
        match &mut self.child {
            Some(child) => Ok(child.wait().await?),
            None => pending().await,
        }
    }

    /// The file that it logs to, which is removed with it.
    #[must_use]
    pub fn log_file(&self) -> PathBuf {
        self.directory.join("log")
    }

    /// Its resident memory in bytes.
    pub fn resident(&self) -> Result<u64> {
        let pid = self.child.as_ref().and_then(Child::id).context("it does not run")?;
        resident(&std::fs::read_to_string(format!("/proc/{pid}/status"))?)
    }

    /// Its output so far.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// Starts the program with the same settings and more arguments.
    pub fn spawn(&self, more: &[&str]) -> Result<Child> {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.log_file())?;
        let child = Command::new(&self.program)
            .args(["--settings", &self.path("settings.yaml"), "--listen", "127.0.0.1:0"])
            .args(self.election())
            .args(["--log-format", "text"])
            .args(more)
            .env("KUBECONFIG", self.path("kubeconfig"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn();
        child.with_context(|| format!("could not start {}", self.program.display()))
    }

    /// Each start of a replica is another candidate, as a new pod is.
    fn election(&self) -> Vec<String> {
        let identity = format!("{}-{}", self.directory.display(), self.starts);
        let arguments = match &self.lease_in {
            None => vec!["--leader-election", "false"],
            Some(namespace) => vec!["--lease-namespace", namespace, "--identity", &identity],
        };
        arguments.into_iter().map(str::to_owned).collect()
    }

    fn path(&self, file: &str) -> String {
        self.directory.join(file).display().to_string()
    }
}

impl Drop for OwnProcess {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
        std::fs::remove_dir_all(&self.directory).ok();
    }
}
