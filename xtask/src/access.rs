//! How a cluster is reached, whatever kind of cluster it is, and what charts are installed with.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use crate::{cluster::home::Home, kind::Kind};

/// Everything that a command needs to work with a running cluster.
#[derive(Clone, Debug)]
pub struct Access {
    /// As administrator.
    pub kubeconfig: PathBuf,
    /// Where what was said goes.
    pub logs: PathBuf,
    /// What the API server was asked, if the cluster writes it down.
    pub audit_log: Option<PathBuf>,
    /// Values with which every chart is installed: a file for all, or a directory with a file for each.
    pub values: PathBuf,
    pub kubectl: PathBuf,
    pub helm: PathBuf,
}

impl Access {
    /// How the cluster of a name is reached: a local one, else the one that the demo made on kind.
    ///
    /// # Errors
    /// When there is neither.
    pub fn of(name: &str) -> Result<Self> {
        let (home, kind) = (Home::of(name)?, Kind::called(name)?);
        if !home.exists() && kind.is_known() { kind.access() } else { home.access() }
    }

    /// A run of kubectl on this cluster.
    pub fn kubectl(&self) -> Command {
        self.client(&self.kubectl)
    }

    /// A run of helm on this cluster.
    pub fn helm(&self) -> Command {
        self.client(&self.helm)
    }

    fn client(&self, program: &Path) -> Command {
        let mut client = Command::new(program);
        client.env("KUBECONFIG", &self.kubeconfig);
        client
    }

    /// The file of values with which a chart is installed.
    pub fn values_of(&self, chart: &str) -> PathBuf {
        if self.values.is_dir() { self.values.join(format!("{chart}.yaml")) } else { self.values.clone() }
    }
}
