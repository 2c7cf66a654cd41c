//! How a cluster is reached, whatever kind of cluster it is, and what charts are installed with.

use std::path::PathBuf;

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
    /// The file of values with which a chart is installed.
    pub fn values_of(&self, chart: &str) -> PathBuf {
        if self.values.is_dir() { self.values.join(format!("{chart}.yaml")) } else { self.values.clone() }
    }
}
