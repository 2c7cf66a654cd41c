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
    /// Values with which every chart is installed.
    pub values: PathBuf,
    pub kubectl: PathBuf,
    pub helm: PathBuf,
}
