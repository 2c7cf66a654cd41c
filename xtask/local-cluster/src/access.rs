//! Access to a cluster of any kind.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Everything that a program needs to work with a running cluster.
#[derive(Clone, Debug)]
pub struct Access {
    /// The administrator's kubeconfig, with one context.
    pub kubeconfig: PathBuf,
    /// The directory of the logs.
    pub logs: PathBuf,
    /// The requests to the API server, if the cluster records them.
    pub audit_log: Option<PathBuf>,
    /// The program kubectl.
    pub kubectl: PathBuf,
    /// The program helm.
    pub helm: PathBuf,
}

impl Access {
    /// A run of kubectl on this cluster.
    #[must_use]
    pub fn kubectl(&self) -> Command {
        self.run(&self.kubectl)
    }

    /// A run of helm on this cluster.
    #[must_use]
    pub fn helm(&self) -> Command {
        self.run(&self.helm)
    }

    fn run(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("KUBECONFIG", &self.kubeconfig);
        command
    }
}
