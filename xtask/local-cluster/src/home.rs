//! The directory with all files of one cluster.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::cache;

/// One cluster's directory, and the names of its files.
#[derive(Clone, Debug)]
pub struct Home {
    name: String,
    directory: PathBuf,
}

impl Home {
    /// The directory of the cluster `name`, whether or not it exists yet.
    pub fn of(name: &str) -> Result<Self> {
        ensure!(
            !name.is_empty()
                && name.len() <= 40
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
                && !name.starts_with('-'),
            "{name:?} cannot name a cluster: use up to 40 lower-case letters, digits and dashes"
        );
        Ok(Self { name: name.to_owned(), directory: all_clusters()?.join(name) })
    }

    /// Every cluster that has a directory.
    pub fn existing() -> Result<Vec<Self>> {
        let mut homes = Vec::new();
        for entry in fs::read_dir(all_clusters()?).context("could not list the clusters")? {
            let entry = entry?;
            if entry.file_type()?.is_dir()
                && let Some(name) = entry.file_name().to_str()
                && let Ok(home) = Self::of(name)
            {
                homes.push(home);
            }
        }
        homes.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(homes)
    }

    /// Creates the directories. They contain keys, so only their owner can read them.
    pub fn create(&self) -> Result<()> {
        for directory in
            [&self.directory, &self.certificates(), &self.logs(), &self.configs(), &self.pods(), &self.data()]
        {
            fs::create_dir_all(directory)
                .with_context(|| format!("could not create {}", directory.display()))?;
        }
        fs::set_permissions(&self.directory, fs::Permissions::from_mode(0o700))
            .with_context(|| format!("could not close {} to others", self.directory.display()))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn exists(&self) -> bool {
        self.directory.is_dir()
    }

    pub fn state(&self) -> PathBuf {
        self.directory.join("state.json")
    }

    /// The kubeconfig of the administrator: `system:masters`.
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.join("kubeconfig")
    }

    /// The kubeconfig of one of the cluster's own programs.
    pub fn kubeconfig_of(&self, program: &str) -> PathBuf {
        self.configs().join(format!("{program}.kubeconfig"))
    }

    pub fn certificates(&self) -> PathBuf {
        self.directory.join("certificates")
    }

    pub fn configs(&self) -> PathBuf {
        self.directory.join("config")
    }

    pub fn data(&self) -> PathBuf {
        self.directory.join("etcd")
    }

    pub fn logs(&self) -> PathBuf {
        self.directory.join("logs")
    }

    pub fn log_of(&self, component: &str) -> PathBuf {
        self.logs().join(format!("{component}.log"))
    }

    pub fn log_of_container(&self, namespace: &str, pod: &str, container: &str) -> PathBuf {
        self.log_of(&format!("{namespace}_{pod}_{container}"))
    }

    pub fn audit_log(&self) -> PathBuf {
        self.logs().join("audit.log")
    }

    /// Volumes of the pods that run as local processes.
    pub fn pods(&self) -> PathBuf {
        self.directory.join("pods")
    }

    /// The copy of this program that supervises, so that a rebuild does not replace it.
    pub fn supervisor_binary(&self) -> PathBuf {
        self.directory.join("supervisor")
    }

    pub fn supervisor_pid(&self) -> PathBuf {
        self.directory.join("supervisor.pid")
    }

    /// Locked by the supervisor as long as it lives; the kernel unlocks it when it dies.
    pub fn supervisor_lock(&self) -> PathBuf {
        self.directory.join("supervisor.lock")
    }

    /// The last state of the supervisor's children.
    pub fn components(&self) -> PathBuf {
        self.directory.join("components.json")
    }

    /// Locked while somebody brings the cluster up or takes it down. It is outside the directory, which is deleted with
    /// the cluster.
    pub fn change_lock(&self) -> PathBuf {
        self.directory.with_file_name(format!(".{}.lock", self.name))
    }
}

/// The directory of all clusters.
pub fn all_clusters() -> Result<PathBuf> {
    let directory = cache::directory()?.join("clusters");
    fs::create_dir_all(&directory).with_context(|| format!("could not create {}", directory.display()))?;
    Ok(directory)
}

/// Writes a file so that no reader sees half of it.
pub fn write_atomically(path: &Path, content: &[u8]) -> Result<()> {
    let unfinished = path.with_extension("unfinished");
    fs::write(&unfinished, content)
        .and_then(|()| fs::rename(&unfinished, path))
        .with_context(|| format!("could not write {}", path.display()))
}
