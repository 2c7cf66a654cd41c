//! Leases that look old by the clock of this machine, or by the one of a controller.

use serde_json::json;

use super::scene::{controller, now};
use crate::why::{
    controllers::{Controllers, PodTrouble, Verdict},
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
    let verdict = |renewed: &str, written: &str| {
        let seen = join(vec![lease(renewed, written)], Vec::new());
        Controllers { seen, unseen: None }.verdict("command-binder", now())
    };
    let (early, late) = ("2026-01-01T00:04:00.000000Z", "2026-01-01T00:09:55.000000Z");
    assert_eq!(verdict(late, "2026-01-01T00:09:55Z"), Verdict::Runs);
    assert!(matches!(verdict(early, "2026-01-01T00:04:00Z"), Verdict::Down(_)));
    // The clock of the controller is behind, and the API server has just written what it sent.
    assert_eq!(verdict(early, "2026-01-01T00:09:55Z"), Verdict::Runs);
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

#[test]
fn somebody_who_holds_the_lease_of_a_controller_is_named_also_where_its_pod_is_ready() {
    let mut seen = controller("command-binder", "2026-01-01T00:09:55Z");
    let lease = seen.lease.as_mut().unwrap();
    (lease.holder, lease.is_held_by_pod) = ("laptop".into(), Some(false));
    let told = "its pod b is ready, but has not renewed its Lease".into();
    (seen.pods, seen.trouble) = (Some((1, 1)), Some(PodTrouble { told, runs: true, is_stuck: false }));
    let verdict = Controllers { seen: vec![seen], unseen: None }.verdict("command-binder", now());
    let Verdict::Down(down) = verdict else { panic!("{verdict:?}") };
    assert!(
        down.ends_with(
            "its Lease catena-system/shop-command-binder is held by laptop, which is none of its pods"
        ),
        "{down}"
    );
}
