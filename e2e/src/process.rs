use std::{fs, process::Command, time::Duration};

use anyhow::{Context, Result, anyhow, bail, ensure};
use axum::http::Request;
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, Config, ResourceExt, client::Body};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{Cluster, Controller, WAIT_TIMEOUT, eventually, system::NAMESPACE};

/// The annotation with the process id of a pod that runs on the test's own machine.
const PID: &str = "catena.dev/host-pid";

/// A run of a controller.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its process id on its machine; if that is unknown, a number that is unique among runs.
    pub pid: i32,
    controller: Controller,
    pod: String,
    place: Place,
}

/// The location of a process.
#[derive(Clone, Debug)]
enum Place {
    /// On this machine, reached at this address.
    Here { address: String },
    /// In a kind node, which is a container of this name.
    Node(String),
    /// On an inaccessible node.
    Elsewhere,
}

/// A stopped process, until this is dropped.
pub struct Frozen(Process);

impl Drop for Frozen {
    fn drop(&mut self) {
        if let Err(error) = self.0.signal(Signal::CONT) {
            eprintln!("clean-up failed: a controller stays frozen: {error:#}");
        }
    }
}

impl Process {
    /// The process of a controller's pod.
    pub(crate) fn of(controller: Controller, pod: &Pod) -> Result<Self> {
        let name = pod.name_any();
        if let Some(pid) = pod.annotations().get(PID) {
            let address = pod.status.as_ref().and_then(|status| status.pod_ip.clone());
            let place = Place::Here { address: address.context("the pod has no address")? };
            return Ok(Self { pid: pid.parse()?, controller, pod: name, place });
        }
        // If controllers run beside the tests, a pod without a process is being restarted.
        match std::env::var("CATENA_ON").as_deref() {
            Ok("local") => bail!("no process of {name} runs"),
            Ok("kind") => {}
            _ => return Ok(Self { pid: run(pod)?, controller, pod: name, place: Place::Elsewhere }),
        }
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).context("it has no node")?;
        // The pod's name is in the environment of its one process.
        let find = format!("grep -lz '^POD_NAME={name}$' /proc/[0-9]*/environ | cut -d/ -f3 | head -n1");
        let pid = in_node(&node, &["sh", "-c", &find])?;
        let pid = pid.trim().parse().with_context(|| format!("no process of {name} in {node}"))?;
        Ok(Self { pid, controller, pod: name, place: Place::Node(node) })
    }

    /// Kills it (SIGKILL).
    pub fn kill(&self) -> Result<()> {
        self.signal(Signal::KILL)
            .with_context(|| format!("could not kill {} ({})", self.controller.name(), self.pid))
    }

    /// Stops it at an arbitrary point, until the result is dropped.
    pub fn freeze(&self) -> Result<Frozen> {
        self.signal(Signal::STOP)?;
        Ok(Frozen(self.clone()))
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        match &self.place {
            Place::Here { .. } => {
                kill_process(Pid::from_raw(self.pid).context("0 is no process")?, signal).map_err(Into::into)
            }
            Place::Node(node) => {
                in_node(node, &["kill", &format!("-{}", signal.as_raw()), &self.pid.to_string()]).map(drop)
            }
            Place::Elsewhere => Err(self.out_of_reach()),
        }
    }

    /// Waits until another process replaces it, ready or not.
    pub async fn until_replaced(&self, cluster: &Cluster) -> Self {
        let what = format!("{} was started again", self.controller.name());
        eventually(&what, WAIT_TIMEOUT, async || match self.controller.process(cluster).await {
            Ok(process) if process.pid != self.pid => Ok(process),
            other => Err(other),
        })
        .await
    }

    /// Its resident memory in bytes.
    pub fn resident(&self) -> Result<u64> {
        resident(&self.read("status")?)
    }

    /// Its processor time so far.
    pub fn processor_time(&self) -> Result<Duration> {
        let stat = self.read("stat")?;
        // The second field is the name, in parentheses, and may contain spaces.
        let after_name = stat.rsplit_once(')').context("the process tells no times")?.1;
        let fields: Vec<u64> = after_name.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        // Without pid, name and state: user time is the 11th, system time the 12th, in hundredths of a second.
        let ticks: u64 = fields.iter().skip(10).take(2).sum();
        Ok(Duration::from_millis(10 * ticks))
    }

    /// Its answer under /readyz: the status and the text.
    pub async fn readiness(&self) -> Result<(u16, String)> {
        self.page("readyz").await
    }

    /// Its answer under /metrics.
    pub async fn metrics(&self) -> Result<String> {
        Ok(self.page("metrics").await?.1)
    }

    /// Its answer under a path: the status and the text.
    pub async fn page(&self, page: &str) -> Result<(u16, String)> {
        let Place::Here { address } = &self.place else {
            let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{}:8080/proxy/{page}", self.pod);
            let request = Request::get(path).body(Body::empty())?;
            // The answer is neither parsed as a Status nor retried, because the proxy forwards the controller's answer.
            let mut config = Config::infer().await?;
            config.default_retry = false;
            let (head, body) = Client::try_from(config)?.send(request).await?.into_parts();
            let text = body.collect_bytes().await?;
            return Ok((head.status.as_u16(), String::from_utf8_lossy(&text).into_owned()));
        };
        let mut stream = TcpStream::connect((address.as_str(), 8080)).await?;
        let request = format!("GET /{page} HTTP/1.1\r\nHost: pod\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let status = answer.split_whitespace().nth(1).and_then(|code| code.parse().ok());
        let text = answer.split_once("\r\n\r\n").map_or_else(String::new, |(_, body)| body.to_owned());
        Ok((status.context("no HTTP answer")?, text))
    }

    fn read(&self, file: &str) -> Result<String> {
        let path = format!("/proc/{}/{file}", self.pid);
        match &self.place {
            Place::Here { .. } => fs::read_to_string(&path).with_context(|| format!("could not read {path}")),
            Place::Node(node) => in_node(node, &["cat", &path]),
            Place::Elsewhere => Err(self.out_of_reach()),
        }
    }

    fn out_of_reach(&self) -> anyhow::Error {
        anyhow!(
            "the process of {} is out of reach: the test has to say that it `needs!(Processes)`",
            self.pod
        )
    }
}

/// The resident memory in bytes, by the file `status` of a process.
pub(crate) fn resident(status: &str) -> Result<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    Ok(1024 * kibibytes.context("the process tells no VmRSS")?)
}

/// A number that distinguishes the runs of a pod's container, and those of other pods.
fn run(pod: &Pod) -> Result<i32> {
    let uid = pod.uid().context("the pod has no uid")?;
    let start = i32::from_str_radix(uid.get(..7).unwrap_or_default(), 16).context("an odd uid")?;
    let containers = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    Ok(start + containers.map(|container| container.restart_count).sum::<i32>())
}

/// Runs a program in a kind node, and returns its output.
fn in_node(node: &str, command: &[&str]) -> Result<String> {
    let output = Command::new("docker").args(["exec", node]).args(command).output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} in {node}: {error}", command.join(" "));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
