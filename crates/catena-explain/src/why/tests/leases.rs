//! Leases that look old by the clock of this machine, or by the one of a controller.

use jiff::SignedDuration;
use serde_json::json;

use super::scene::{controller, now};
use crate::why::{
    controllers::{Controllers, Verdict},
    gather::join,
};

#[test]
fn a_controller_that_renews_its_lease_runs_whatever_the_clocks_say() {
    let lease = |renewed: &str, written: &str| {
        let object = json!({
            "metadata": {
                "name": "shop-binder", "namespace": "catena-system",
                "labels": {"app.kubernetes.io/name": "command-binder"},
                "managedFields": [{"manager": "command-binder", "time": written}],
            },
            "spec": {"holderIdentity": "a", "leaseDurationSeconds": 30, "renewTime": renewed},
        });
        serde_json::from_value(object).unwrap()
    };
    let verdict = |renewed: &str, written: &str, lead: i64| {
        let seen = join(vec![lease(renewed, written)], Vec::new(), SignedDuration::from_secs(lead));
        Controllers { seen, unseen: None }.verdict("command-binder", now())
    };
    let (early, late) = ("2026-01-01T00:04:00.000000Z", "2026-01-01T00:09:55.000000Z");
    assert_eq!(verdict(late, "2026-01-01T00:09:55Z", 0), Verdict::Runs);
    assert!(matches!(verdict(early, "2026-01-01T00:04:00Z", 0), Verdict::Down(_)));
    // The clock of this machine is six minutes ahead.
    assert_eq!(verdict(early, "2026-01-01T00:04:00Z", 360), Verdict::Runs);
    // The clock of the controller is behind, and the API server has just written what it sent.
    assert_eq!(verdict(early, "2026-01-01T00:09:55Z", 0), Verdict::Runs);
}

#[test]
fn a_controller_whose_pods_are_ready_but_leave_its_lease_alone_does_not_run() {
    let mut seen = controller("command-binder", "");
    seen.pods = Some((1, 1));
    seen.lease.as_mut().unwrap().holder.clear();
    let verdict = Controllers { seen: vec![seen], unseen: None }.verdict("command-binder", now());
    let Verdict::Down(down) = verdict else { panic!("{verdict:?}") };
    assert!(down.contains("nobody has acquired its Lease catena-system/shop-command-binder"), "{down}");
}
