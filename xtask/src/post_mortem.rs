//! Keeps the evidence of a failed run, in a folder that survives the cluster.

use std::{fs, path::Path, process::Stdio};

use anyhow::{Context, Result, anyhow, ensure};
use local_cluster::{Access, Step, explain, files};

use crate::workspace;

/// The queries to the cluster, and the files for their answers.
const QUESTIONS: [(&str, &str); 6] = [
    ("events.txt", "get events --all-namespaces --sort-by=.lastTimestamp"),
    // A separate query, because a missing kind makes the whole query fail.
    ("catena.yaml", "get catena --all-namespaces --output=yaml"),
    (
        "objects.yaml",
        "get pods,deployments,jobs,configmaps,controllerrevisions,leases,namespaces,nodes --all-namespaces --output=yaml",
    ),
    ("definitions.txt", "get customresourcedefinitions --output=wide"),
    (
        "controllers.log",
        "logs --namespace=catena-system --selector=app.kubernetes.io/name --prefix --tail=-1",
    ),
    (
        "controllers-that-ended.log",
        "logs --namespace=catena-system --selector=app.kubernetes.io/name --prefix --tail=-1 --previous --ignore-errors",
    ),
];

/// If `result` is a failure, keeps the objects of the cluster, its logs and its audit log, and adds their path to the
/// failure. There is no `access` to a cluster that never came up.
pub fn on_failure(
    result: Result<()>,
    cluster: &str,
    logs: &Path,
    access: impl FnOnce() -> Option<Access>,
) -> Result<()> {
    let Err(error) = result else { return Ok(()) };
    let step = Step::start("collecting events, objects and logs");
    let collected = workspace::target().and_then(|target| {
        let folder = target.join("e2e-failures").join(cluster);
        Ok((collect(&folder, logs, access().as_ref())?, folder))
    });
    match collected {
        Ok((files, folder)) => {
            step.done(format!("{files} files"));
            Err(anyhow!(
                "{}; events, objects, logs and the audit log, as far as there are any, are in {}",
                explain(&error),
                folder.display()
            ))
        }
        Err(problem) => {
            eprintln!("what the cluster held could not be kept: {problem:#}");
            Err(error)
        }
    }
}

/// The result of a run whose cluster was taken down afterwards: its own failure takes precedence.
pub fn ended(result: Result<()>, taken_down: Result<()>) -> Result<()> {
    match (result, taken_down) {
        (Ok(()), taken_down) => taken_down,
        (failed, Ok(())) => failed,
        (failed, Err(error)) => {
            eprintln!("{}", explain(&error));
            failed
        }
    }
}

fn collect(folder: &Path, logs: &Path, access: Option<&Access>) -> Result<usize> {
    ensure!(logs.is_dir(), "there is no {}", logs.display());
    // The audit log is among them.
    let copied = copy(logs, &folder.join("logs"))?;
    let Some(access) = access else { return Ok(copied) };
    for (file, question) in QUESTIONS {
        files::write(&folder.join(file), answer(access, question))?;
    }
    Ok(copied + QUESTIONS.len())
}

/// The answer of the cluster, or the reason why there is none.
fn answer(access: &Access, question: &str) -> Vec<u8> {
    let mut kubectl = access.kubectl();
    kubectl.args(question.split(' ')).arg("--request-timeout=20s").stdin(Stdio::null());
    kubectl
        .output()
        .map_or_else(|error| error.to_string().into_bytes(), |output| [output.stdout, output.stderr].concat())
}

fn copy(from: &Path, to: &Path) -> Result<usize> {
    files::create_directory(to)?;
    let mut count = 0;
    for path in files::list(from)? {
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            count += copy(&path, &target)?;
        } else {
            fs::copy(&path, &target).with_context(|| format!("could not write {}", target.display()))?;
            count += 1;
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn a_failure_names_the_folder_that_has_the_logs_and_the_answers() {
        let directory = tempfile::tempdir().unwrap();
        let logs = directory.path().join("logs");
        fs::create_dir_all(logs.join("pods")).unwrap();
        fs::write(logs.join("audit.log"), "asked").unwrap();
        fs::write(logs.join("pods/controller.log"), "said").unwrap();
        let access = Access {
            kubeconfig: directory.path().join("kubeconfig"),
            logs: logs.clone(),
            audit_log: Some(logs.join("audit.log")),
            kubectl: "echo".into(),
            helm: "false".into(),
        };
        let folder = directory.path().join("failure");
        assert_eq!(collect(&folder, &logs, Some(&access)).unwrap(), 2 + QUESTIONS.len());
        assert_eq!(fs::read_to_string(folder.join("logs/audit.log")).unwrap(), "asked");
        assert_eq!(fs::read_to_string(folder.join("logs/pods/controller.log")).unwrap(), "said");
        let events = fs::read_to_string(folder.join("events.txt")).unwrap();
        assert!(events.starts_with("get events"), "{events}");
    }

    #[test]
    fn a_cluster_that_never_came_up_leaves_its_logs() {
        let directory = tempfile::tempdir().unwrap();
        let logs = directory.path().join("logs");
        fs::create_dir(&logs).unwrap();
        fs::write(logs.join("kind-create.log"), "no").unwrap();
        let folder = directory.path().join("failure");
        assert_eq!(collect(&folder, &logs, None).unwrap(), 1);
    }

    #[test]
    fn a_success_is_left_alone_and_a_failure_stays_one() {
        let nowhere = Path::new("/nowhere");
        assert!(on_failure(Ok(()), "unit", nowhere, || panic!("nothing is collected")).is_ok());
        let failed = || -> Result<()> { bail!("a test failed") };
        let said = on_failure(failed(), "unit", nowhere, || None).unwrap_err().to_string();
        assert_eq!(said, "a test failed", "there was nothing to keep");
    }
}
