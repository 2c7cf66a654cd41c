//! The common state of the parts of one pod.

use std::{net::Ipv4Addr, path::PathBuf, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use tokio::sync::watch;

use super::runner::Runner;

/// As Kubernetes' own default.
const DEFAULT_GRACE: Duration = Duration::from_secs(30);

/// The newest version of the pod's object; `None` once it is gone.
pub type Latest = watch::Receiver<Option<Arc<Pod>>>;

/// One pod of the node: its object, its address and its directory.
pub struct Sandbox {
    pub runner: Arc<Runner>,
    first: Arc<Pod>,
    latest: Latest,
    pub address: Ipv4Addr,
    pub directory: PathBuf,
}

impl Sandbox {
    pub fn new(
        runner: Arc<Runner>,
        first: Arc<Pod>,
        latest: Latest,
        address: Ipv4Addr,
        directory: PathBuf,
    ) -> Self {
        Self { runner, first, latest, address, directory }
    }

    /// The present or last state of the pod.
    pub fn pod(&self) -> Arc<Pod> {
        self.latest.borrow().clone().unwrap_or_else(|| Arc::clone(&self.first))
    }

    /// Follows the changes of the pod.
    pub fn latest(&self) -> Latest {
        self.latest.clone()
    }

    /// Namespace and name.
    pub fn title(&self) -> String {
        format!("{}/{}", self.first.namespace().unwrap_or_default(), self.first.name_any())
    }

    /// The grace period of a container.
    pub fn grace(&self) -> Duration {
        let pod = self.pod();
        let of_deletion = pod.metadata.deletion_grace_period_seconds;
        let seconds =
            of_deletion.or_else(|| pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds));
        seconds.and_then(|seconds| u64::try_from(seconds).ok()).map_or(DEFAULT_GRACE, Duration::from_secs)
    }
}
