//! Brings up a new or a stopped cluster until it accepts pods.

use std::{
    fs,
    path::PathBuf,
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use kube::Client;
use tokio::process::Child;

use crate::{
    control_plane::{addresses, certificates, readiness},
    files, kubeconfig,
    local_cluster::LocalCluster,
    own_program,
    progress::Step,
    state::State,
    toolchain::Toolchain,
};

/// Time limit of the start, which takes long on a loaded machine with two cores.
const START_TIMEOUT: Duration = Duration::from_secs(180);
/// Number of restarts of a component after which waiting is pointless.
const HOPELESS_RESTARTS: u32 = 4;

/// The options of a cluster.
pub struct Wanted {
    /// Minimum number of fake nodes.
    pub nodes: u32,
    /// The directory in which the host runner finds programs named like images; `None` keeps the present one, or the
    /// default.
    pub bin_dir: Option<PathBuf>,
    /// The same for a new cluster.
    pub default_bin_dir: PathBuf,
}

impl LocalCluster {
    /// Brings it up; returns false when it was up already. An error names the part that does not come up in time. The caller's
    /// `main` calls [`crate::play_role`] first.
    pub async fn bring_up(&self, wanted: &Wanted) -> Result<bool> {
        let toolchain = Toolchain::provide().await?;
        let lock = files::create(&self.change_lock())?;
        if lock.try_lock().is_err() {
            bail!(
                "cluster {:?} is being brought up or taken down by somebody else: wait for it",
                self.name()
            );
        }

        let was_running = self.is_running();
        let state = match State::read(self)? {
            Some(mut state) => {
                if let Some(bin_dir) = &wanted.bin_dir {
                    state.bin_dir.clone_from(bin_dir);
                }
                if !was_running {
                    state.toolchain = toolchain;
                }
                state.write(self)?;
                state
            }
            None => set_up(self, toolchain, wanted)?,
        };
        let mut supervisor = if was_running { None } else { Some(start_supervisor(self)?) };
        let result = wait_until_usable(self, &state, wanted.nodes, supervisor.as_mut()).await;
        if result.is_err() && supervisor.is_some() {
            // Half a cluster is useless; its logs stay.
            self.stop_supervisor(Duration::from_secs(60), |_| {})?;
        }
        result?;
        Ok(!was_running)
    }
}

fn set_up(cluster: &LocalCluster, toolchain: Toolchain, wanted: &Wanted) -> Result<State> {
    let step = Step::start("certificates and addresses");
    cluster.create()?;
    let choice = addresses::choose()?;
    certificates::write(cluster, &choice.addresses)?;
    let bin_dir = wanted.bin_dir.as_ref().unwrap_or(&wanted.default_bin_dir).clone();
    let state = State { addresses: choice.addresses, bin_dir, toolchain };
    // Written last: a directory without a state is an incomplete setup, and is set up again.
    state.write(cluster)?;
    drop(choice);
    step.done(format!("API server at {}", state.addresses.server()));
    Ok(state)
}

fn start_supervisor(cluster: &LocalCluster) -> Result<Child> {
    let own = own_program::file();
    let copy = cluster.supervisor_binary();
    // Written beside and moved, because a supervisor that has just died may still keep the old file busy.
    let unfinished = copy.with_extension("unfinished");
    fs::copy(&own, &unfinished)
        .and_then(|_| fs::rename(&unfinished, &copy))
        .with_context(|| format!("could not copy {} to {}", own.display(), copy.display()))?;
    fs::remove_file(cluster.components_file()).ok();
    let mut command = own_program::supervisor(&copy, cluster.name());
    command.current_dir(cluster.directory()).stdin(Stdio::null());
    own_program::spawn(command, &copy, &cluster.log_of("supervisor"))
}

async fn wait_until_usable(
    cluster: &LocalCluster,
    state: &State,
    nodes: u32,
    supervisor: Option<&mut Child>,
) -> Result<()> {
    let mut watch = Watch { cluster, supervisor, deadline: Instant::now() + START_TIMEOUT };
    let client = kubeconfig::client(&cluster.kubeconfig()).await?;

    let step = Step::start("control plane");
    while !readiness::api_server_is_ready(&client).await {
        watch.pause("the API server is not ready", &step).await?;
    }
    let components = cluster.components();
    step.done(format!("{} ({} processes)", state.addresses.server(), components.len()));

    let step = Step::start("nodes");
    let created = readiness::create_fake_nodes(&client, nodes).await?;
    step.note(format!("{created} created"));
    let ready = wait_for_nodes(&client, &mut watch, &step, nodes).await?;
    step.done(format!("{ready} ready"));

    let step = Step::start("service account of the namespace default");
    while !readiness::default_service_account_exists(&client).await {
        watch.pause("no ServiceAccount default in the namespace default", &step).await?;
    }
    step.done("");
    Ok(())
}

async fn wait_for_nodes(client: &Client, watch: &mut Watch<'_>, step: &Step, nodes: u32) -> Result<usize> {
    // The host runner's own node comes in addition to the fake ones.
    let wanted = nodes as usize + 1;
    loop {
        let (ready, known) = readiness::nodes_ready(client).await?;
        if ready >= wanted && ready == known {
            return Ok(ready);
        }
        watch.pause(&format!("{ready} of {} nodes ready", known.max(wanted)), step).await?;
    }
}

/// Waits, and fails early when that is pointless.
struct Watch<'a> {
    cluster: &'a LocalCluster,
    supervisor: Option<&'a mut Child>,
    deadline: Instant,
}

impl Watch<'_> {
    async fn pause(&mut self, waiting_for: &str, step: &Step) -> Result<()> {
        step.note(waiting_for);
        if let Some(supervisor) = &mut self.supervisor
            && let Some(end) = supervisor.try_wait().context("could not look at the supervisor")?
        {
            bail!("the supervisor ended ({end}) while {waiting_for}\n{}", self.tail("supervisor"));
        }
        for (name, kept) in self.cluster.components() {
            if kept.restarts >= HOPELESS_RESTARTS {
                bail!("{name} ends again and again while {waiting_for}\n{}", self.tail(&name));
            }
        }
        if Instant::now() > self.deadline {
            let component = if waiting_for.contains("API server") { "api-server" } else { "supervisor" };
            bail!("{waiting_for} after {} s\n{}", START_TIMEOUT.as_secs(), self.tail(component));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        Ok(())
    }

    fn tail(&self, component: &str) -> String {
        let path = self.cluster.log_of(component);
        let text = fs::read(&path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(15)..].join("\n  ");
        format!("The end of {}:\n  {last}", path.display())
    }
}
