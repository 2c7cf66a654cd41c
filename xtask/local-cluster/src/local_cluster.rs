//! A local cluster: its name, its directory, and the names of its files.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::{access::Access, cache, control_plane::keeper::Kept, files, state::State, toolchain::Tool};

/// One cluster of local processes; several can run concurrently.
#[derive(Clone, Debug)]
pub struct LocalCluster {
    name: String,
    directory: PathBuf,
}

impl LocalCluster {
    /// The cluster with this name, whether or not it exists.
    pub fn named(name: &str) -> Result<Self> {
        ensure!(
            !name.is_empty()
                && name.len() <= 40
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
                && !name.starts_with('-'),
            "{name:?} cannot name a cluster: use up to 40 lower-case letters, digits and dashes"
        );
        Ok(Self { name: name.to_owned(), directory: all_clusters()?.join(name) })
    }

    /// All clusters of this user, running or not, by name.
    pub fn all() -> Result<Vec<Self>> {
        let directories = files::list(&all_clusters()?)?.into_iter().filter(|path| path.is_dir());
        Ok(directories.filter_map(|path| Self::named(path.file_name()?.to_str()?).ok()).collect())
    }

    /// Creates the directories. They contain keys, so only their owner can read them.
    pub(crate) fn create(&self) -> Result<()> {
        for directory in [self.certificates(), self.logs(), self.configs(), self.pods(), self.data()] {
            files::create_directory(&directory)?;
        }
        fs::set_permissions(&self.directory, fs::Permissions::from_mode(0o700))
            .with_context(|| format!("could not close {} to others", self.directory.display()))
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether it exists, running or not.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.directory.is_dir()
    }

    /// Whether it was set up, so that it is accessible as soon as it runs.
    #[must_use]
    pub fn is_set_up(&self) -> bool {
        self.state_file().is_file()
    }

    /// Its access; an error when it was never set up.
    pub fn access(&self) -> Result<Access> {
        let state = State::require(self)?;
        Ok(Access {
            kubeconfig: self.kubeconfig(),
            logs: self.logs(),
            audit_log: Some(self.audit_log()),
            kubectl: state.toolchain.path(Tool::Kubectl)?.clone(),
            helm: state.toolchain.path(Tool::Helm)?.clone(),
        })
    }

    /// The last known state of the components of its control plane, by name.
    #[must_use]
    pub fn components(&self) -> BTreeMap<String, Kept> {
        let written = fs::read(self.components_file()).ok();
        written.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    pub(crate) fn state_file(&self) -> PathBuf {
        self.directory.join("state.json")
    }

    /// The kubeconfig of the administrator: `system:masters`.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.join("kubeconfig")
    }

    /// The kubeconfig of one of the cluster's own programs.
    pub(crate) fn kubeconfig_of(&self, program: &str) -> PathBuf {
        self.configs().join(format!("{program}.kubeconfig"))
    }

    pub(crate) fn certificates(&self) -> PathBuf {
        self.directory.join("certificates")
    }

    pub(crate) fn configs(&self) -> PathBuf {
        self.directory.join("config")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.directory.join("etcd")
    }

    /// The directory of its logs.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.directory.join("logs")
    }

    /// The log of a component of the control plane.
    #[must_use]
    pub fn log_of(&self, component: &str) -> PathBuf {
        self.logs().join(format!("{component}.log"))
    }

    /// The log of a container that runs or ran as a process of this machine.
    #[must_use]
    pub fn log_of_container(&self, namespace: &str, pod: &str, container: &str) -> PathBuf {
        self.log_of(&format!("{namespace}_{pod}_{container}"))
    }

    /// The log of the requests to its API server.
    #[must_use]
    pub fn audit_log(&self) -> PathBuf {
        self.log_of("audit")
    }

    /// Volumes of the pods that run as local processes.
    pub(crate) fn pods(&self) -> PathBuf {
        self.directory.join("pods")
    }

    /// The copy of this program that supervises, so that a rebuild does not replace it.
    pub(crate) fn supervisor_binary(&self) -> PathBuf {
        self.directory.join("supervisor")
    }

    pub(crate) fn supervisor_pid(&self) -> PathBuf {
        self.directory.join("supervisor.pid")
    }

    /// Locked by the supervisor as long as it lives; the kernel unlocks it when it dies.
    pub(crate) fn supervisor_lock(&self) -> PathBuf {
        self.directory.join("supervisor.lock")
    }

    /// The last state of the supervisor's children.
    pub(crate) fn components_file(&self) -> PathBuf {
        self.directory.join("components.json")
    }

    /// Locked while somebody brings the cluster up or takes it down. It is outside the directory, which is deleted with
    /// the cluster.
    pub(crate) fn change_lock(&self) -> PathBuf {
        self.directory.with_file_name(format!(".{}.lock", self.name))
    }
}

/// The directory of all clusters.
pub fn all_clusters() -> Result<PathBuf> {
    let directory = cache::directory()?.join("clusters");
    files::create_directory(&directory)?;
    Ok(directory)
}
