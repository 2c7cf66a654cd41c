//! Leases that look old by the clock of this machine.

use http::StatusCode;
use jiff::Timestamp;
use serde_json::json;

use super::scene::controller;
use crate::{
    connection::tests::answering,
    why::{
        controllers::{Controllers, Installation, Verdict},
        renewals::observe_renewals,
    },
};

#[tokio::test(start_paused = true)]
async fn a_controller_that_renews_its_lease_runs_whatever_this_clock_says() {
    let lease = |name: &str, renewed: &str| json!({"metadata": {"name": name, "namespace": "catena-system"}, "spec": {"renewTime": renewed}});
    let (cluster, requests) = answering(move |_, _, _| {
        let items = [
            lease("shop-backup-controller", "2026-01-01T00:00:05.000000Z"),
            lease("shop-command-binder", "2026-01-01T00:00:00.000000Z"),
        ];
        (StatusCode::OK, json!({"kind": "LeaseList", "apiVersion": "v1", "metadata": {}, "items": items}))
    });
    let mut seen: Vec<Installation> = ["backup-controller", "command-binder", "command-reaper"]
        .map(|name| Installation { pods: Some((1, 1)), ..controller(name, "2026-01-01T00:00:00Z") })
        .into();
    // None of its pods is available: its Lease tells nothing more.
    seen[2].pods = Some((0, 1));
    observe_renewals(&cluster, &mut seen).await;
    let controllers = Controllers { seen, unseen: None };
    let now = Timestamp::now();
    assert_eq!(controllers.verdict("backup-controller", now), Verdict::Runs);
    for name in ["command-binder", "command-reaper"] {
        assert!(matches!(controllers.verdict(name, now), Verdict::Down(_)), "{name}");
    }
    assert_eq!(requests.lock().unwrap().len(), 1, "{requests:?}");
    // What looks well is not read again.
    let mut well = [controller("backup-controller", &now.to_string())];
    observe_renewals(&cluster, &mut well).await;
    assert_eq!(requests.lock().unwrap().len(), 1, "{requests:?}");
}
