//! Brings up a new or a stopped cluster until it accepts pods.

use std::{
    fs::{self, File, OpenOptions},
    path::PathBuf,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use kube::Client;

use super::supervision;
use crate::{
    control_plane::{
        addresses,
        certificates::{self, Authority},
        credentials, fake_nodes,
        keeper::Roster,
        readiness,
    },
    home::Home,
    kubeconfig, own_program,
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

/// Brings the cluster up; returns false when it was up already.
pub async fn bring_up(home: &Home, wanted: &Wanted) -> Result<bool> {
    let toolchain = Toolchain::provide().await?;
    let path = home.change_lock();
    let lock = File::create(&path).with_context(|| format!("could not create {}", path.display()))?;
    if lock.try_lock().is_err() {
        bail!("cluster {:?} is being brought up or taken down by somebody else: wait for it", home.name());
    }

    let was_running = supervision::is_running(home);
    let earlier = State::read(home)?;
    let state = match earlier {
        Some(mut state) => {
            if let Some(bin_dir) = &wanted.bin_dir {
                state.bin_dir.clone_from(bin_dir);
            }
            if !was_running {
                state.toolchain = toolchain;
            }
            state.write(home)?;
            state
        }
        None => set_up(home, toolchain, wanted)?,
    };
    let mut supervisor = if was_running { None } else { Some(start_supervisor(home)?) };
    let result = wait_until_usable(home, &state, wanted.nodes, supervisor.as_mut()).await;
    if result.is_err() && supervisor.is_some() {
        // Half a cluster is useless; its logs stay.
        supervision::stop_supervisor(home, Duration::from_secs(60), |_| {})?;
    }
    result?;
    Ok(!was_running)
}

fn set_up(home: &Home, toolchain: Toolchain, wanted: &Wanted) -> Result<State> {
    let step = Step::start("certificates and addresses");
    home.create()?;
    let choice = addresses::choose()?;
    let authority = Authority::new()?;
    certificates::write(&authority, home)?;
    credentials::write(&authority, home, &choice.addresses)?;
    let state = State {
        addresses: choice.addresses,
        bin_dir: wanted.bin_dir.clone().unwrap_or_else(|| wanted.default_bin_dir.clone()),
        toolchain,
    };
    // Written last: a directory without a state is an incomplete setup, and is set up again.
    state.write(home)?;
    step.done(format!("API server at {}", state.addresses.server()));
    Ok(state)
}

fn start_supervisor(home: &Home) -> Result<Child> {
    let own = own_program::file();
    let copy = home.supervisor_binary();
    // Written beside and moved, because a supervisor that has just died may still keep the old file busy.
    let unfinished = copy.with_extension("unfinished");
    fs::copy(&own, &unfinished)
        .and_then(|_| fs::rename(&unfinished, &copy))
        .with_context(|| format!("could not copy {} to {}", own.display(), copy.display()))?;
    fs::remove_file(home.components()).ok();
    let path = home.log_of("supervisor");
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .with_context(|| format!("could not open {}", path.display()))?;
    own_program::supervisor(&copy, home.name())
        .current_dir(home.directory())
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("could not start {}", copy.display()))
}

async fn wait_until_usable(
    home: &Home,
    state: &State,
    nodes: u32,
    supervisor: Option<&mut Child>,
) -> Result<()> {
    let mut watch = Watch { home, supervisor, deadline: Instant::now() + START_TIMEOUT };
    let client = kubeconfig::client(&home.kubeconfig()).await?;

    let step = Step::start("control plane");
    while !readiness::api_server_is_ready(&client).await {
        watch.pause("the API server is not ready", &step).await?;
    }
    let components = Roster::read(home);
    step.done(format!("{} ({} processes)", state.addresses.server(), components.len()));

    let step = Step::start("nodes");
    let created = fake_nodes::create(&client, nodes).await?;
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
    home: &'a Home,
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
        for (name, kept) in Roster::read(self.home) {
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
        let path = self.home.log_of(component);
        let text = fs::read(&path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(15)..].join("\n  ");
        format!("The end of {}:\n  {last}", path.display())
    }
}
