//! A new revision replaces another one only when it serves.

use operator_kit::report::conditions;

use super::*;

#[test]
fn a_pod_that_has_just_become_ready_replaces_nobody_before_it_has_served_for_long_enough() {
    let ready = |slot, revision, since| {
        let mut pod = pod(slot, revision, PodState::Ready);
        Arc::make_mut(&mut pod).ready_since = Some(ago(since));
        pod
    };
    let mut observed = observed(1, vec![ready(0, OLD, 3600), ready(1, NEW, 2)]);
    Arc::make_mut(&mut observed.set).spec.min_ready_seconds = 10;
    let status = written(decide(&observed));
    let said = conditions::find(&status.conditions, conditions::READY).unwrap();
    assert_eq!((said.status.as_str(), status.active), ("False", 2));
    assert!(said.message.contains("1 are ready for less than spec.minReadySeconds"), "{}", said.message);
    Arc::make_mut(&mut observed.set).status = Some(status);
    assert_eq!(decide(&observed), Action::Wait(Duration::from_secs(8)));
    observed.now = now() + SignedDuration::from_secs(8);
    assert_eq!(deleted(&decide(&observed)), ["web-0"]);
}
