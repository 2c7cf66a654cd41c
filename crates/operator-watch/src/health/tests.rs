use std::time::Duration;

use tokio::time::Instant;

use super::{
    watch_status::{FAILURE_TOLERANCE, FIRST_LIST_TIMEOUT, MAX_REQUEUES, REQUEUE_WINDOW},
    *,
};
use crate::{ApiError, Cause, Verb};

fn epoch(watches: &Watches) -> u64 {
    *watches.requeue_epoch.borrow()
}

#[tokio::test(start_paused = true)]
async fn ready_means_that_every_watch_has_listed() {
    let watches = Watches::default();
    let (mut pods, mut sets) =
        (watches.status("Pod", ReadinessRule::Always), watches.status("Set", ReadinessRule::Always));
    pods.synced();
    assert_eq!(watches.unready().len(), 1);
    sets.synced();
    assert!(watches.unready().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_only_fails_makes_the_process_unready_and_recovers_with_the_next_event() {
    let watches = Watches::default();
    let mut pods = watches.status("Pod", ReadinessRule::Always);
    pods.synced();
    pods.failed(refused());
    assert!(watches.unready().is_empty(), "a short failure is tolerated");
    tokio::time::advance(FAILURE_TOLERANCE + Duration::from_secs(1)).await;
    assert_eq!(watches.unready(), [format!("Pod: {}", refused())]);
    let before = epoch(&watches);
    pods.alive();
    assert!(watches.unready().is_empty());
    assert!(epoch(&watches) > before, "what backed off meanwhile is tried again");
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_others_bring_is_told_and_does_not_make_the_process_unready() {
    let watches = Watches::default();
    let (mut own, mut child) = (
        watches.status("Parent", ReadinessRule::Always),
        watches.status("Child", ReadinessRule::WhileServed),
    );
    own.synced();
    assert_eq!(watches.unready().len(), 1, "nobody knows yet whether it is served");
    child.failed(not_served());
    assert!(watches.unready().is_empty());
    assert_eq!(watches.observed(), BTreeMap::from([("Child".into(), false), ("Parent".into(), true)]));
    let before = epoch(&watches);
    child.synced();
    assert!(epoch(&watches) > before, "what waited for it is tried again");
    assert!(watches.observed().values().all(|observed| *observed));
    child.failed(not_served());
    assert!(epoch(&watches) > before + 1 && watches.unready().is_empty());
    child.synced();
    child.failed(refused());
    tokio::time::advance(FAILURE_TOLERANCE + Duration::from_secs(1)).await;
    assert_eq!(watches.unready(), [format!("Child: {}", refused())], "but it is served, and has to be seen");
}

#[tokio::test(start_paused = true)]
async fn a_missing_kind_is_settled_so_that_others_can_start() {
    let watches = Watches::default();
    let mut missing = watches.status("Child", ReadinessRule::Always);
    missing.failed(not_served());
    watches.settled().await;
    assert_eq!(watches.unready(), [format!("Child: {}", not_served())]);
    let before = epoch(&watches);
    missing.synced();
    assert!(epoch(&watches) > before, "what waited for it is tried again");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_begins_while_others_are_waited_for_is_waited_for_too() {
    let watches = Watches::default();
    let mut pods = watches.status("Pod", ReadinessRule::Always);
    let second = Duration::from_secs(1);
    let listing = async {
        let mut sets = watches.status("Set", ReadinessRule::Always);
        tokio::time::sleep(second).await;
        pods.synced();
        tokio::time::sleep(second).await;
        sets.synced();
    };
    let settled = async {
        let began = Instant::now();
        watches.settled().await;
        began.elapsed()
    };
    let (waited, ()) = tokio::join!(settled, listing);
    assert_eq!(waited, 2 * second);
}

#[test]
fn a_kind_that_is_taken_away_is_no_short_failure_and_all_is_looked_at_again_once() {
    let watches = Watches::default();
    let mut sets = watches.status("Child", ReadinessRule::Always);
    sets.synced();
    sets.failed(refused());
    let before = epoch(&watches);
    sets.failed(not_served());
    assert_eq!(watches.unready(), [format!("Child: {}", not_served())]);
    assert_eq!(epoch(&watches), before + 1);
    sets.failed(not_served());
    assert_eq!(epoch(&watches), before + 1);
}

#[test]
fn a_kind_without_which_the_others_go_on_can_be_taken_away_unheard() {
    let watches = Watches::default();
    let mut one_of_many = watches.status("Secret", ReadinessRule::Never);
    one_of_many.synced();
    let before = epoch(&watches);
    one_of_many.failed(not_served());
    assert_eq!(epoch(&watches), before);
}

#[test]
fn a_kind_that_is_not_configured_does_not_count_as_not_served() {
    let watches = Watches::default();
    let [mut backups, mut gadgets] =
        ["Job (backups)", "Gadget"].map(|kind| watches.status(kind, ReadinessRule::Never));
    gadgets.in_any_version();
    for watch in [&mut backups, &mut gadgets] {
        watch.failed(not_served());
    }
    assert_eq!(watches.unserved(), 1);
}

fn failed(cause: Cause, message: &str) -> ApiError {
    ApiError::new(Verb::Watch, ("Kind", ""), cause, message)
}

fn refused() -> ApiError {
    failed(Cause::Unanswered, "connection refused")
}

fn not_served() -> ApiError {
    failed(Cause::KindNotServed, "")
}

#[tokio::test(start_paused = true)]
async fn a_list_that_nobody_answers_is_not_alive_after_minutes_and_one_that_is_refused_is() {
    let watches = Watches::default();
    let mut pods = watches.status("Pod", ReadinessRule::Always);
    let mut optional = watches.status("Secret", ReadinessRule::Never);
    pods.listing();
    optional.listing();
    for _ in 0..10 {
        tokio::time::advance(FIRST_LIST_TIMEOUT / 4).await;
        pods.failed(refused());
        assert_eq!(watches.stalled(), None);
    }
    tokio::time::advance(FIRST_LIST_TIMEOUT / 2).await;
    pods.failed(failed(Cause::Silent, "no answer"));
    pods.listing();
    tokio::time::advance(FIRST_LIST_TIMEOUT).await;
    assert_eq!(watches.stalled().unwrap(), "Pod: the list request has not been answered for 450 s");
    pods.progressed();
    assert_eq!(watches.stalled(), None);
    pods.synced();
    tokio::time::advance(2 * FIRST_LIST_TIMEOUT).await;
    assert_eq!(watches.stalled(), None, "a watch has nothing to tell for hours");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_fails_and_recovers_again_and_again_voids_few_backoffs_and_the_last_recovery_counts() {
    let watches = Watches::default();
    let mut pods = watches.status("Pod", ReadinessRule::Always);
    pods.synced();
    for _ in 0..20 {
        pods.failed(not_served());
        pods.alive();
    }
    assert_eq!(epoch(&watches), u64::from(MAX_REQUEUES));
    tokio::time::sleep(REQUEUE_WINDOW / 2).await;
    assert_eq!(epoch(&watches), u64::from(MAX_REQUEUES));
    tokio::time::sleep(REQUEUE_WINDOW).await;
    assert_eq!(epoch(&watches), u64::from(MAX_REQUEUES) + 1);
    tokio::time::sleep(2 * REQUEUE_WINDOW).await;
    assert_eq!(epoch(&watches), u64::from(MAX_REQUEUES) + 1);
}

/// Nothing is heard of its watch afterwards.
#[tokio::test(start_paused = true)]
async fn the_loss_of_a_kind_that_came_and_went_counts_although_it_stays_away() {
    let watches = Watches::default();
    let mut sets = watches.status("Child", ReadinessRule::Always);
    for _ in 0..MAX_REQUEUES {
        sets.synced();
        sets.failed(not_served());
    }
    let before = epoch(&watches);
    tokio::time::sleep(2 * REQUEUE_WINDOW).await;
    assert_eq!(epoch(&watches), before + 1);
}

/// It restarts every minute, and an API server that sheds load refuses it now and then.
#[tokio::test(start_paused = true)]
async fn a_watch_that_stumbles_voids_no_backoff_and_one_that_was_away_does() {
    let watches = Watches::default();
    let mut pods = watches.status("Pod", ReadinessRule::Always);
    pods.synced();
    let before = epoch(&watches);
    pods.failed(refused());
    pods.alive();
    assert_eq!(epoch(&watches), before);
    pods.failed(refused());
    tokio::time::advance(FAILURE_TOLERANCE + Duration::from_secs(1)).await;
    pods.alive();
    assert_eq!(epoch(&watches), before + 1);
}

#[test]
fn nothing_is_kept_of_a_watch_that_has_ended() {
    let watches = Watches::default();
    drop(watches.status("Pod", ReadinessRule::Always));
    assert!(watches.unready().is_empty());
    assert!(watches.states.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_may_not_read_its_kind_is_told_after_some_time_and_a_kind_that_is_not_served_is_not() {
    let watches = Watches::default();
    let (mut forbidden, mut missing) =
        (watches.status("Drain", ReadinessRule::Never), watches.status("Widget", ReadinessRule::Never));
    forbidden.failed(failed(Cause::Forbidden, "no right"));
    missing.failed(not_served());
    assert!(watches.lasting_failures().is_empty());
    tokio::time::advance(FAILURE_TOLERANCE * 2).await;
    assert_eq!(watches.lasting_failures(), [failed(Cause::Forbidden, "no right")]);
    forbidden.synced();
    assert!(watches.lasting_failures().is_empty());
}
