//! Names that are taken, pods that could not be looked up, and owner references in another version.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use operator_watch::{Cause, Verb};

use super::*;

fn taken(slot: u32, holder: Holder) -> TakenName {
    TakenName { slot, name: format!("web-{slot}"), holder }
}

fn unreadable() -> ApiError {
    ApiError::new(Verb::Read, ("Pod", "web-0"), Cause::Failed, "503")
}

#[test]
fn a_pod_of_ours_without_its_marks_is_marked_and_no_other_is_made_in_its_place() {
    let mut observed = observed(2, vec![pod(0, NEW, PodState::Ready)]);
    observed.taken = vec![taken(1, Holder::Unmarked { uid: "lost".into() })];
    let mark = Action::Mark { name: "web-1".into(), uid: "lost".into(), slot: 1 };
    assert_eq!(decide(&observed), mark);
    observed.backoffs = Backoffs::default().and_step(step::MARK, failure("Forbidden"));
    let status = written(decide(&observed));
    let reason = status.blocked_by.as_ref().map(|blocker| blocker.reason.as_str());
    assert_eq!(reason, Some("Forbidden"), "it runs, and one more would be too many");
    Arc::make_mut(&mut observed.set).status = Some(status);
    assert_eq!(decide(&observed), Action::Settle, "and nobody looks for it once a second");
}

#[test]
fn a_pod_of_ours_that_no_watch_has_shown_yet_is_waited_for() {
    let mut observed = observed(2, vec![pod(0, NEW, PodState::Ready)]);
    observed.taken = vec![taken(1, Holder::Own)];
    Arc::make_mut(&mut observed.set).status = Some(written(decide(&observed)));
    assert_eq!(decide(&observed), Action::Wait(LOOK_UP_INTERVAL));
    Arc::make_mut(&mut observed.set).spec.replicas = 3;
    assert_eq!(created(&decide(&observed)), [2], "it counts, and its place is not filled twice");
}

#[test]
fn a_name_that_is_somebody_elses_is_passed_over() {
    let mut observed = observed(1, Vec::new());
    observed.taken = vec![taken(0, Holder::Other), taken(1, Holder::Own)];
    assert_eq!(decide(&observed), Action::PassOver(vec![taken(0, Holder::Other)]));
}

#[test]
fn a_name_that_is_somebody_elses_hides_no_failure_of_all_creates() {
    let mut observed = observed(2, Vec::new());
    observed.taken = vec![taken(0, Holder::Other)];
    observed.backoffs = Backoffs::default().and_step(step::CREATE, failure("QuotaExceeded"));
    let status = written(decide(&observed));
    assert_eq!(status.blocked_by.as_ref().unwrap().reason, "QuotaExceeded");
    Arc::make_mut(&mut observed.set).status = Some(status);
    assert_eq!(decide(&observed), Action::Settle, "and nobody looks for it once a second");
}

#[test]
fn a_look_up_that_fails_holds_up_nothing_but_the_place_of_that_pod() {
    let dead = |slot| {
        let mut dead = pod(slot, NEW, finished());
        Arc::make_mut(&mut dead).created = ago(20);
        dead
    };
    let mut observed = observed(3, vec![dead(7)]);
    (observed.unclear, observed.unanswered) = (1, Some(unreadable()));
    assert_eq!(deleted(&decide(&observed)), ["web-7"]);
    observed.pods.clear();
    assert_eq!(created(&decide(&observed)), [0, 1], "one may be there");
    observed.pods = vec![pod(0, NEW, PodState::Ready), pod(1, NEW, PodState::Ready)];
    assert_eq!(decide(&observed), Action::GiveUp(unreadable()), "it is told, and tried again later");

    observed.unanswered = None;
    observed.backoffs = Backoffs::default().and_step(step::LOOK_UP, failure("LookUpFailed"));
    let status = written(decide(&observed));
    assert_eq!(status.blocked_by.unwrap().reason, "LookUpFailed");
    Arc::make_mut(&mut observed.set).spec.replicas = 4;
    assert_eq!(created(&decide(&observed)), [2]);
}

#[test]
fn an_owner_reference_in_another_version_is_refreshed_also_while_the_set_is_deleted() {
    let mut old = pod(0, NEW, PodState::Ready);
    Arc::make_mut(&mut old).owner = Some(Owner { uid: "set".into(), name: "web".into(), is_outdated: true });
    let mut observed = observed(2, vec![old.clone(), pod(1, NEW, PodState::Ready)]);
    assert_eq!(decide(&observed), Action::RefreshOwner(vec![old.clone()]));
    Arc::make_mut(&mut observed.set).metadata.deletion_timestamp = Some(Time(now()));
    assert_eq!(decide(&observed), Action::RefreshOwner(vec![old]));
    let held = Backoffs::default().and_item(step::REFRESH_OWNER, "pod-0", failure("Forbidden"));
    observed.backoffs = held;
    assert!(!matches!(decide(&observed), Action::RefreshOwner(_)), "it holds up nothing else");
}
