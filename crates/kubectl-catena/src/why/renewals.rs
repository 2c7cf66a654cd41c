//! Judges a Lease by two reads where only its age speaks against its holder: the clock of this machine may be ahead.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, api::ListParams};
use tokio::time::sleep;

use super::{chart_labels::OURS, controllers::Installation};
use crate::{connection::Cluster, pages};

/// Longer than the interval at which controllers renew their Leases, which is 5 s.
const RENEWED_WITHIN: Duration = Duration::from_secs(6);

/// The Leases of the controllers.
pub async fn leases(cluster: &Cluster) -> kube::Result<Vec<Lease>> {
    pages::all(&Api::all(cluster.client.clone()), ListParams::default().labels(OURS)).await
}

/// Finds out which Leases of controllers with available pods are renewed although they look old.
pub async fn observe_renewals(cluster: &Cluster, installations: &mut [Installation]) {
    let now = Timestamp::now();
    let doubtful: Vec<_> = installations.iter_mut().filter(|seen| seen.has_only_an_old_lease(now)).collect();
    if doubtful.is_empty() {
        return;
    }
    sleep(RENEWED_WITHIN).await;
    let again = leases(cluster).await.unwrap_or_default();
    for Installation { name, namespace, lease, .. } in doubtful {
        let is_it = |again: &&Lease| {
            again.metadata.name.as_ref() == Some(name) && again.metadata.namespace.as_ref() == Some(namespace)
        };
        let renewed = again.iter().find(is_it).and_then(|again| again.spec.as_ref()?.renew_time.as_ref());
        if let (Some(lease), Some(renewed)) = (lease, renewed) {
            lease.is_renewed = lease.renewed != Some(renewed.0);
        }
    }
}
