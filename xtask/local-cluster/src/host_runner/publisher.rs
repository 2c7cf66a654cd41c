//! Reports the state of a pod's containers to the API server.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    pod::Sandbox,
    status::{is_ready, pid, status},
};
use crate::explain::{explain, note};

const RETRY: Duration = Duration::from_secs(1);
const RECHECK: Duration = Duration::from_secs(30);

/// The pid of the first container; those of the others have the container's name appended.
pub const PID_ANNOTATION: &str = "catena.dev/host-pid";

/// Writes the pod's status and its pid annotations, each only when it changed.
pub struct Publisher<'a> {
    sandbox: &'a Sandbox,
    containers: watch::Receiver<Vec<ContainerStatus>>,
    status: Option<Value>,
    annotations: Option<BTreeMap<String, Option<String>>>,
}

impl<'a> Publisher<'a> {
    pub fn new(sandbox: &'a Sandbox, containers: watch::Receiver<Vec<ContainerStatus>>) -> Self {
        Self { sandbox, containers, status: None, annotations: None }
    }

    /// Publishes every change; never ends.
    pub async fn follow(&mut self) {
        let mut pod = self.sandbox.latest();
        loop {
            self.publish().await;
            tokio::select! {
                Ok(()) = self.containers.changed() => {}
                // During a deletion, the end of a container leads to another phase; and an ephemeral container may have
                // been added.
                Ok(()) = pod.changed() => {}
                () = tokio::time::sleep(RECHECK) => self.notice_overwriting(),
            }
        }
    }

    /// After this machine slept, the node counts as lost and the controller manager marks its pods.
    fn notice_overwriting(&mut self) {
        let written = self.status.as_ref().and_then(|status| serde_json::from_value(status.clone()).ok());
        if is_ready(&Pod { status: written, ..Pod::default() }) != is_ready(&self.sandbox.pod()) {
            self.status = None;
        }
    }

    /// Publishes the present state of the containers, and retries until it is accepted or the pod is gone.
    pub async fn publish(&mut self) {
        while let Err(error) = self.write().await {
            if let Some(kube::Error::Api(status)) = error.downcast_ref()
                && (status.is_not_found() || status.is_conflict())
            {
                // Gone, or replaced by another pod of the same name: there is nothing left to report to.
                return;
            }
            note(&format!("{}: {}", self.sandbox.title(), explain(&error)));
            tokio::time::sleep(RETRY).await;
        }
    }

    async fn write(&mut self) -> Result<()> {
        let containers = self.containers.borrow_and_update().clone();
        let pod = self.sandbox.pod();
        let pods =
            Api::<Pod>::namespaced(self.sandbox.runner.client.clone(), &pod.namespace().unwrap_or_default());
        let (name, uid) = (pod.name_any(), pod.uid());

        // Before the status, because a test that waits for Ready may read the pid at once.
        let annotations = pids(&containers);
        if self.annotations.as_ref() != Some(&annotations) {
            let patch = json!({ "metadata": { "uid": uid, "annotations": annotations } });
            pods.patch(&name, &PatchParams::default(), &Patch::Merge(patch))
                .await
                .context("could not write the pid")?;
            self.annotations = Some(annotations);
        }
        // Times alone must not make a status new.
        let mut basis = pod.as_ref().clone();
        if let Some(status) = &self.status {
            basis.status = serde_json::from_value(status.clone()).ok();
        }
        let status = status(&basis, &containers, self.sandbox.address, Timestamp::now());
        if self.status.as_ref() != Some(&status) {
            let mut patch = json!({ "metadata": { "uid": uid }, "status": status });
            // By default the list is merged, so an address of a former run would stay in it.
            patch["status"]["podIPs"] = json!([{ "$patch": "replace" }, { "ip": self.sandbox.address }]);
            pods.patch_status(&name, &PatchParams::default(), &Patch::Strategic(patch))
                .await
                .context("could not write the status")?;
            self.status = Some(status);
        }
        Ok(())
    }
}

/// The annotation of every container; null removes the pid of a stopped one.
fn pids(containers: &[ContainerStatus]) -> BTreeMap<String, Option<String>> {
    let key = |index, container: &ContainerStatus| match index {
        0 => PID_ANNOTATION.to_owned(),
        _ => format!("{PID_ANNOTATION}.{}", container.name),
    };
    let containers = containers.iter().enumerate();
    containers.map(|(index, container)| (key(index, container), pid(container).map(str::to_owned))).collect()
}
