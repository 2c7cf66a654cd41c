//! What a controller reads of its settings is a ConfigMap that a kubelet mounts. A kubelet of somebody's cluster looks once a minute
//! for what changed in it, and at once when the pod itself changes; tests change settings often.

use std::{process::Stdio, time::Duration};

use jiff::Timestamp;
use local_cluster::Access;
use tokio::{process::Command, time::sleep};

use crate::charts::NAMESPACE;

/// An annotation that means nothing.
const TOUCHED: &str = "e2e.catena.dev/touched-at";
/// A test's patience with new settings is a minute.
const EVERY: Duration = Duration::from_secs(3);

/// Touches the controllers' pods again and again, until it is dropped. What fails is tried again: a test may have taken the
/// controllers away.
pub async fn look_often(access: &Access) -> ! {
    loop {
        let touched = format!("{TOUCHED}={}", Timestamp::now());
        Command::from(access.kubectl())
            .args(["annotate", "pods", "--all", "--overwrite", "--namespace", NAMESPACE, &touched])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .status()
            .await
            .ok();
        sleep(EVERY).await;
    }
}
