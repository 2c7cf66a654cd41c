//! A local cluster, for other programs.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::Result;

use crate::{
    access::Access,
    control_plane::keeper::{Kept, Roster},
    home::Home,
    lifecycle::{
        bring_up::{Wanted, bring_up},
        health::{Health, health},
        take_down::take_down,
    },
    state::State,
    toolchain::Tool,
};

/// One cluster of local processes; several can run concurrently.
#[derive(Clone, Debug)]
pub struct LocalCluster(Home);

impl LocalCluster {
    /// The cluster with this name, whether or not it exists.
    ///
    /// # Errors
    /// When the name is invalid, or there is no cache directory.
    pub fn named(name: &str) -> Result<Self> {
        Home::of(name).map(Self)
    }

    /// All clusters of this user, running or not, by name.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub fn all() -> Result<Vec<Self>> {
        Ok(Home::existing()?.into_iter().map(Self).collect())
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// Whether it exists, running or not.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.0.exists()
    }

    /// Whether it was set up, so that it is accessible as soon as it runs.
    #[must_use]
    pub fn is_set_up(&self) -> bool {
        self.0.state().is_file()
    }

    /// The administrator's kubeconfig.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.0.kubeconfig()
    }

    /// The directory of its logs.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.0.logs()
    }

    /// The log of a component of the control plane.
    #[must_use]
    pub fn log_of(&self, component: &str) -> PathBuf {
        self.0.log_of(component)
    }

    /// The log of a container that runs or ran as a process of this machine.
    #[must_use]
    pub fn log_of_container(&self, namespace: &str, pod: &str, container: &str) -> PathBuf {
        self.0.log_of_container(namespace, pod, container)
    }

    /// The log of the requests to its API server.
    #[must_use]
    pub fn audit_log(&self) -> PathBuf {
        self.0.audit_log()
    }

    /// Brings it up; returns false when it was up already. The caller's `main` calls [`crate::Role::given`] first.
    ///
    /// # Errors
    /// When it does not come up in time; the error names the missing part.
    pub async fn bring_up(&self, wanted: &Wanted) -> Result<bool> {
        bring_up(&self.0, wanted).await
    }

    /// Stops all of its processes and removes its data; returns false when there was nothing.
    ///
    /// # Errors
    /// When a process does not end, or data cannot be removed.
    pub fn take_down(&self) -> Result<bool> {
        take_down(&self.0)
    }

    /// Its health; `None` if it is not running.
    pub async fn health(&self) -> Option<Health> {
        health(&self.0).await
    }

    /// The last known state of the components of its control plane, by name.
    #[must_use]
    pub fn components(&self) -> BTreeMap<String, Kept> {
        Roster::read(&self.0)
    }

    /// Its access.
    ///
    /// # Errors
    /// When it was never set up.
    pub fn access(&self) -> Result<Access> {
        let state = State::require(&self.0)?;
        Ok(Access {
            kubeconfig: self.kubeconfig(),
            logs: self.logs(),
            audit_log: Some(self.audit_log()),
            kubectl: state.toolchain.path(Tool::Kubectl)?.clone(),
            helm: state.toolchain.path(Tool::Helm)?.clone(),
        })
    }
}
