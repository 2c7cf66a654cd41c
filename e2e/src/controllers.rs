use std::{fs, time::Duration};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt, api::ListParams};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{Cluster, PATIENCE, eventually, pods};

/// The namespace that `cargo xtask test` installs the charts in.
pub(crate) const NAMESPACE: &str = "catena-system";

/// The annotation that tells the process of a pod which runs on the test's own machine.
const PID: &str = "catena.dev/host-pid";

/// A controller of the chain: the name of its chart, release and ServiceAccount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controller(&'static str);

/// basic-deployment-controller.
pub const DEPLOYMENTS: Controller = Controller("basic-deployment-controller");
/// basic-replicaset-controller.
pub const REPLICA_SETS: Controller = Controller("basic-replicaset-controller");

/// A run of a controller.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its process id.
    pub pid: i32,
    controller: Controller,
    address: String,
}

impl Controller {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0
    }

    /// Who it is for the API server.
    #[must_use]
    pub fn user(self) -> String {
        format!("system:serviceaccount:{NAMESPACE}:{}", self.0)
    }

    async fn pod(self, cluster: &Cluster) -> Result<Pod> {
        let labels = ListParams::default().labels(&format!("app.kubernetes.io/name={}", self.0));
        let found = Api::<Pod>::namespaced(cluster.client.clone(), NAMESPACE).list(&labels).await?;
        let mut pods = pods::alive(found.items);
        ensure!(pods.len() == 1, "{} has {} pods instead of one", self.0, pods.len());
        Ok(pods.remove(0))
    }

    /// The process that runs now.
    pub async fn process(self, cluster: &Cluster) -> Result<Process> {
        let pod = self.pod(cluster).await?;
        let pid = pod.annotations().get(PID).and_then(|pid| pid.parse().ok());
        let pid = pid.with_context(|| {
            format!("{} has no {PID}: this test needs controllers on this machine", pod.name_any())
        })?;
        let address = pod.status.and_then(|status| status.pod_ip).context("the pod has no address")?;
        Ok(Process { pid, controller: self, address })
    }

    /// Waits until the controller is ready, and gives its process.
    ///
    /// # Panics
    /// When it is not ready in time.
    pub async fn until_ready(self, cluster: &Cluster) -> Process {
        let what = format!("{} is ready", self.0);
        eventually(&what, 2 * PATIENCE, async || {
            let pod = self.pod(cluster).await.map_err(|error| format!("{error:#}"))?;
            if !pods::is_ready(&pod) {
                return Err(pods::describe(&pod));
            }
            self.process(cluster).await.map_err(|error| format!("{error:#}"))
        })
        .await
    }
}

impl Process {
    /// Kills it without a word (SIGKILL).
    pub fn kill(&self) -> Result<()> {
        let pid = Pid::from_raw(self.pid).context("0 is no process")?;
        kill_process(pid, Signal::KILL)
            .with_context(|| format!("could not kill {} ({})", self.controller.0, self.pid))
    }

    /// Waits until another process runs in its place, ready or not.
    ///
    /// # Panics
    /// When none does in time.
    pub async fn until_replaced(&self, cluster: &Cluster) -> Process {
        let what = format!("{} was started again", self.controller.0);
        eventually(&what, PATIENCE, async || match self.controller.process(cluster).await {
            Ok(process) if process.pid != self.pid => Ok(process),
            other => Err(other),
        })
        .await
    }

    /// Its memory: resident bytes now.
    pub fn resident(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        Ok(1024 * kibibytes.context("the process tells no VmRSS")?)
    }

    /// The processor time that it took so far.
    pub fn processor_time(&self) -> Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid))?;
        // The second field is the name, in parentheses, and may hold spaces.
        let after_name = stat.rsplit_once(')').context("the process tells no times")?.1;
        let fields: Vec<u64> = after_name.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        // Without pid, name and state: user time is the 11th, system time the 12th, in hundredths of a second.
        let ticks: u64 = fields.iter().skip(10).take(2).sum();
        Ok(Duration::from_millis(10 * ticks))
    }

    /// What it answers under /readyz: the status and the text.
    pub async fn readiness(&self) -> Result<(u16, String)> {
        let mut stream = TcpStream::connect((self.address.as_str(), 8080)).await?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: pod\r\nConnection: close\r\n\r\n").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let status = answer.split_whitespace().nth(1).and_then(|code| code.parse().ok());
        let text = answer.split_once("\r\n\r\n").map_or_else(String::new, |(_, body)| body.to_owned());
        Ok((status.context("no HTTP answer")?, text))
    }
}
