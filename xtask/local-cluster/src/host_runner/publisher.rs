//! Reports the state of a pod's containers to the API server.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    board::{Activity, Record},
    pod_status::status,
    restart_policy::RestartPolicy,
    sandbox::Sandbox,
};
use crate::{explain::explain, journal::note};

const RETRY: Duration = Duration::from_secs(1);
const RECHECK: Duration = Duration::from_secs(30);

/// The pid of the first container; those of the others have the container's name appended.
pub const PID_ANNOTATION: &str = "catena.dev/host-pid";

/// Writes the pod's status and its pid annotations, each only when it changed.
pub struct Publisher<'a> {
    sandbox: &'a Sandbox,
    policy: RestartPolicy,
    board: watch::Receiver<Vec<Record>>,
    status: Option<Value>,
    annotations: Option<BTreeMap<String, Option<String>>>,
}

impl<'a> Publisher<'a> {
    pub fn new(sandbox: &'a Sandbox, policy: RestartPolicy, board: watch::Receiver<Vec<Record>>) -> Self {
        Self { sandbox, policy, board, status: None, annotations: None }
    }

    /// Publishes every change; never ends.
    pub async fn follow(&mut self) {
        let mut pod = self.sandbox.latest();
        loop {
            self.publish().await;
            tokio::select! {
                Ok(()) = self.board.changed() => {}
                // During a deletion, the end of a container leads to another phase; and an ephemeral container may have
                // been added.
                Ok(()) = pod.changed() => {}
                () = tokio::time::sleep(RECHECK) => self.notice_overwriting(),
            }
        }
    }

    /// After this machine slept, the node counts as lost and the controller manager marks its pods.
    fn notice_overwriting(&mut self) {
        let ready = |pod: &Pod| {
            let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
            conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
        };
        let written = self.status.as_ref().and_then(|status| serde_json::from_value(status.clone()).ok());
        if ready(&Pod { status: written, ..Pod::default() }) != ready(&self.sandbox.pod()) {
            self.status = None;
        }
    }

    /// Publishes the present state of the board, and retries until it is accepted or the pod is gone.
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
        let records = self.board.borrow_and_update().clone();
        let pod = self.sandbox.pod();
        let pods =
            Api::<Pod>::namespaced(self.sandbox.runner.client.clone(), &pod.namespace().unwrap_or_default());
        let (name, uid) = (pod.name_any(), pod.uid());

        // Before the status, because a test that waits for Ready may read the pid at once.
        let annotations = pids(&records);
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
        let status = status(&basis, &records, self.policy, self.sandbox.address, Timestamp::now());
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
fn pids(records: &[Record]) -> BTreeMap<String, Option<String>> {
    let containers = records.iter().enumerate();
    containers
        .map(|(index, record)| {
            let key = if index == 0 {
                PID_ANNOTATION.to_owned()
            } else {
                format!("{PID_ANNOTATION}.{}", record.name)
            };
            let pid = match record.activity {
                Activity::Running { pid, .. } => Some(pid.to_string()),
                _ => None,
            };
            (key, pid)
        })
        .collect()
}
