//! One container: started, probed and restarted, until the pod ends.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read, Seek, SeekFrom},
    mem::take,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::{
    Container, ContainerStateTerminated as End, ContainerStateWaiting as Waiting,
};
use kube::ResourceExt;

use super::{
    HOST_IP, environment, image,
    mounts::Mounts,
    pod::Sandbox,
    probe::watch_health,
    process::Process,
    service_names,
    shutdown::Shutdown,
    status::{Board, are_restarted, waiting},
    volumes,
};
use crate::{backoff::Backoff, explain::note, kubeconfig, own_program};

/// Pause before a failed start is retried, for example until a binary is built or a ConfigMap created.
const RETRY: Duration = Duration::from_secs(1);
/// The path where every Kubernetes client looks for its ServiceAccount.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// A kubelet's limits of a termination message from the log.
const MAX_BYTES: u64 = 2048;
const MAX_LINES: usize = 80;

/// Runs the container until its policy or the shutdown ends it.
pub async fn keep(sandbox: &Sandbox, container: &Container, board: &Board, mut shutdown: Shutdown) {
    let (name, title) = (&container.name, sandbox.title());
    let mut backoff = Backoff::default();
    while shutdown.grace().is_none() {
        let started = Instant::now();
        let mut process = match start(sandbox, container).await {
            Ok(process) => process,
            Err(problem) => {
                board.waits(name, problem);
                shutdown.sleep(RETRY).await;
                continue;
            }
        };
        note(&format!("{title} {name} runs as pid {}", process.pid));
        board.runs(name, process.pid, process.started);
        let mut end = attend(sandbox, container, &mut process, board, &mut shutdown).await;
        let from_log = || message_from_log(container, end.exit_code, &log_of(sandbox, container));
        end.message = end.message.take().or_else(from_log);
        note(&format!("{title} {name} ended with exit code {}", end.exit_code));
        board.ended(name, end);
        if !are_restarted(&sandbox.pod()) || shutdown.grace().is_some() {
            return;
        }
        let pause = backoff.after(started.elapsed());
        if !pause.is_zero() {
            let seconds = pause.as_secs();
            let message = format!("back-off {seconds}s restarting failed container={name} pod={title}");
            board.waits(name, waiting("CrashLoopBackOff", message));
            shutdown.sleep(pause).await;
        }
        if shutdown.grace().is_none() {
            board.update(name, |container| container.restart_count += 1);
        }
    }
}

/// Follows a running process to its end.
async fn attend(
    sandbox: &Sandbox,
    container: &Container,
    process: &mut Process,
    board: &Board,
    shutdown: &mut Shutdown,
) -> End {
    let name = &container.name;
    let report = |ready| board.update(name, |container| container.ready = ready);
    tokio::select! {
        end = process.end() => end,
        reason = watch_health(container, sandbox.address, report) => {
            note(&format!("{} {name} is restarted: {reason}", sandbox.title()));
            let end = process.terminate(sandbox.grace(), shutdown).await;
            End { message: Some(reason), ..end }
        }
        grace = shutdown.asked() => process.terminate(grace, shutdown).await
    }
}

async fn start(sandbox: &Sandbox, container: &Container) -> Result<Process, Waiting> {
    let pod = sandbox.pod();
    let spec = pod.spec.clone().unwrap_or_default();
    let image = container.image.as_deref().unwrap_or_default();
    let binary = image::locate(image, container.image_pull_policy.as_deref(), &sandbox.runner.bin_dir())?;
    let mounts = volumes::mounts(&sandbox.directory, &spec, container);
    let given = given_environment(sandbox, &mounts);
    let variables = environment::resolve(&pod, container, sandbox.address, given)?;
    write_kubeconfig(sandbox, &mounts, &variables)?;
    let local = |text: &String| mounts.rewrite(&environment::expand(text, &variables));
    // The binary is the image's entrypoint.
    let mut arguments: Vec<String> = container.args.iter().flatten().map(local).collect();
    for argument in &mut arguments {
        let resolved = service_names::resolve(&sandbox.runner.client, take(argument)).await;
        *argument = resolved.map_err(|error| waiting("CreateContainerError", error.to_string()))?;
    }
    let mut command = own_program::child(&sandbox.runner.cluster.supervisor_binary(), &binary, &arguments);
    command.envs(variables.iter().map(|(name, value)| (name, mounts.rewrite(value))));
    command.current_dir(&sandbox.directory).process_group(0);
    Process::start(command, &binary, &log_of(sandbox, container))
        .map_err(|error| waiting("RunContainerError", format!("{error:#}")))
}

fn log_of(sandbox: &Sandbox, container: &Container) -> PathBuf {
    let pod = sandbox.pod();
    let namespace = pod.namespace().unwrap_or_default();
    sandbox.runner.cluster.log_of_container(&namespace, &pod.name_any(), &container.name)
}

/// The environment variables that every container gets.
fn given_environment(sandbox: &Sandbox, mounts: &Mounts) -> BTreeMap<String, String> {
    let port = sandbox.runner.server_port.to_string();
    let mut given: BTreeMap<String, String> = [
        ("HOSTNAME", sandbox.pod().name_any()),
        ("HOME", sandbox.directory.display().to_string()),
        ("KUBERNETES_SERVICE_HOST", HOST_IP.to_owned()),
        ("KUBERNETES_SERVICE_PORT", port.clone()),
        ("KUBERNETES_SERVICE_PORT_HTTPS", port),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    if mounts.local(SERVICE_ACCOUNT).is_some() {
        given.insert("KUBECONFIG".to_owned(), sandbox.directory.join("kubeconfig").display().to_string());
    }
    given
}

/// Writes the configuration of a client in the container. A client reads the fixed path of a container, which does not
/// exist on this machine; a kubeconfig has the same content and is read first. As in a container, the variables say
/// where the API server is.
fn write_kubeconfig(
    sandbox: &Sandbox,
    mounts: &Mounts,
    variables: &BTreeMap<String, String>,
) -> Result<(), Waiting> {
    let Some(account) = mounts.local(SERVICE_ACCOUNT) else { return Ok(()) };
    let variable = |name: &str| variables.get(name).map(String::as_str).unwrap_or_default();
    let server =
        format!("https://{}:{}", variable("KUBERNETES_SERVICE_HOST"), variable("KUBERNETES_SERVICE_PORT"));
    let namespace = sandbox.pod().namespace().unwrap_or_default();
    let document = kubeconfig::for_pod(&server, &account.join("ca.crt"), &account.join("token"), &namespace);
    kubeconfig::write(&sandbox.directory.join("kubeconfig"), &document)
        .map_err(|error| waiting("CreateContainerError", format!("{error:#}")))
}

/// The end of the log of a container that failed, where its policy asks for that.
fn message_from_log(container: &Container, exit_code: i32, log: &Path) -> Option<String> {
    let is_asked = container.termination_message_policy.as_deref() == Some("FallbackToLogsOnError");
    if exit_code == 0 || !is_asked {
        return None;
    }
    let mut file = File::open(log).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_BYTES))).ok()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Some(lines[lines.len().saturating_sub(MAX_LINES)..].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_failure_has_a_message_from_the_log_and_only_where_it_is_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let lines: Vec<String> = (0..200).map(|line| format!("line {line}")).collect();
        std::fs::write(&log, lines.join("\n")).unwrap();
        let policy = Some("FallbackToLogsOnError".into());
        let asked = Container { termination_message_policy: policy, ..Container::default() };
        let message = message_from_log(&asked, 1, &log).unwrap();
        assert!(message.ends_with("line 198\nline 199") && message.lines().count() == 80, "{message}");
        assert_eq!(message_from_log(&asked, 0, &log), None);
        assert_eq!(message_from_log(&Container::default(), 1, &log), None);
    }
}
