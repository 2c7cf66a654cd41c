//! One container: started, probed and restarted, until the pod ends.

use std::{
    collections::BTreeMap,
    mem::take,
    path::PathBuf,
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::Container;
use kube::ResourceExt;

use super::{
    backoff::Backoff,
    board::{Activity, Board, End, Trouble},
    environment, image, last_words,
    mounts::Mounts,
    probe::watch_health,
    probe_attempt::Target,
    process::{Process, Program},
    restart_policy::RestartPolicy,
    runner::HOST_IP,
    sandbox::Sandbox,
    service_names,
    shutdown::Shutdown,
    variables::expand,
    volumes,
};
use crate::{journal::note, kubeconfig};

/// Pause before a failed start is retried, for example until a binary is built or a ConfigMap created.
const RETRY: Duration = Duration::from_secs(1);
/// The path where every Kubernetes client looks for its ServiceAccount.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Runs the container until its policy or the shutdown ends it.
pub async fn keep(
    sandbox: &Sandbox,
    container: &Container,
    policy: RestartPolicy,
    board: &Board,
    mut shutdown: Shutdown,
) {
    let name = &container.name;
    let mut backoff = Backoff::default();
    while shutdown.grace().is_none() {
        let started = Instant::now();
        let mut process = match start(sandbox, container).await {
            Ok(process) => process,
            Err(trouble) => {
                board.waits(name, trouble);
                shutdown.sleeps(RETRY).await;
                continue;
            }
        };
        note(&format!("{} {name} runs as pid {}", sandbox.title(), process.pid));
        board.update(name, |record| {
            record.activity = Activity::Running { pid: process.pid, since: process.started };
        });
        let mut end = attend(sandbox, container, &mut process, board, &mut shutdown).await;
        let words = || last_words::of(container, end.exit_code, &log_of(sandbox, container));
        end.message = end.message.take().or_else(words);
        note(&format!("{} {name} ended with exit code {}", sandbox.title(), end.exit_code));
        board.update(name, |record| record.last_end = Some(end.clone()));
        board.ended(name, end);
        if policy == RestartPolicy::Never || shutdown.grace().is_some() {
            return;
        }
        let pause = backoff.after(started.elapsed());
        if !pause.is_zero() {
            let message = format!(
                "back-off {}s restarting failed container={name} pod={}",
                pause.as_secs(),
                sandbox.title()
            );
            board.waits(name, Trouble::new("CrashLoopBackOff", message));
            shutdown.sleeps(pause).await;
        }
        if shutdown.grace().is_none() {
            board.update(name, |record| record.restarts += 1);
        }
    }
}

async fn start(sandbox: &Sandbox, container: &Container) -> Result<Process, Trouble> {
    let program = program(sandbox, container).await?;
    program.start().map_err(|error| Trouble::new("RunContainerError", format!("{error:#}")))
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
    let report = |ready| board.update(name, |record| record.ready = ready);
    let ports = container.ports.as_deref().unwrap_or_default();
    let target = Target { address: sandbox.address, ports };
    tokio::select! {
        end = process.end() => end,
        reason = watch_health(container, &target, report) => {
            note(&format!("{} {name} is restarted: {reason}", sandbox.title()));
            let end = process.terminate(sandbox.grace(), shutdown).await;
            End { message: Some(reason), ..end }
        }
        _ = shutdown.asked() => {
            let grace = shutdown.grace().unwrap_or_default();
            process.terminate(grace, shutdown).await
        }
    }
}

async fn program(sandbox: &Sandbox, container: &Container) -> Result<Program, Trouble> {
    let pod = sandbox.pod();
    let spec = pod.spec.clone().unwrap_or_default();
    let image = container.image.as_deref().unwrap_or_default();
    let binary = image::locate(image, container.image_pull_policy.as_deref(), &sandbox.runner.bin_dir())?;
    let mounts = volumes::mounts(&sandbox.directory, &spec, container);
    let given = given_environment(sandbox, &mounts);
    let variables = environment::resolve(&pod, container, sandbox.address, given)?;
    write_kubeconfig(sandbox, &mounts, &variables)?;
    let local = |text: &String| mounts.rewrite(&expand(text, &variables));
    // The binary is the image's entrypoint.
    let mut arguments: Vec<String> = container.args.iter().flatten().map(local).collect();
    for argument in &mut arguments {
        let resolved = service_names::resolve(&sandbox.runner.client, take(argument)).await;
        *argument = resolved.map_err(|error| Trouble::new("CreateContainerError", error.to_string()))?;
    }
    let environment = variables.iter().map(|(name, value)| (name.clone(), mounts.rewrite(value))).collect();
    Ok(Program {
        supervisor_binary: sandbox.runner.home.supervisor_binary(),
        binary,
        arguments,
        environment,
        directory: sandbox.directory.clone(),
        log: log_of(sandbox, container),
    })
}

fn log_of(sandbox: &Sandbox, container: &Container) -> PathBuf {
    let pod = sandbox.pod();
    let namespace = pod.namespace().unwrap_or_default();
    sandbox.runner.home.log_of_container(&namespace, &pod.name_any(), &container.name)
}

/// The environment variables that every container gets.
fn given_environment(sandbox: &Sandbox, mounts: &Mounts) -> BTreeMap<String, String> {
    let port = sandbox.runner.server_port.to_string();
    let pod = sandbox.pod();
    let mut given: BTreeMap<String, String> = [
        ("HOSTNAME", pod.name_any()),
        ("HOME", sandbox.directory.display().to_string()),
        ("KUBERNETES_SERVICE_HOST", HOST_IP.to_owned()),
        ("KUBERNETES_SERVICE_PORT", port.clone()),
        ("KUBERNETES_SERVICE_PORT_HTTPS", port.clone()),
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
) -> Result<(), Trouble> {
    let Some(account) = mounts.local(SERVICE_ACCOUNT) else { return Ok(()) };
    let variable = |name: &str| variables.get(name).map(String::as_str).unwrap_or_default();
    let server =
        format!("https://{}:{}", variable("KUBERNETES_SERVICE_HOST"), variable("KUBERNETES_SERVICE_PORT"));
    let namespace = sandbox.pod().namespace().unwrap_or_default();
    let document = kubeconfig::for_pod(&server, &account.join("ca.crt"), &account.join("token"), &namespace);
    kubeconfig::write(&sandbox.directory.join("kubeconfig"), &document)
        .map_err(|error| Trouble::new("CreateContainerError", format!("{error:#}")))
}
