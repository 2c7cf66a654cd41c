use super::{
    watch_status::{FAILURE_TOLERANCE, FIRST_LIST_TIMEOUT, MAX_REQUEUES, REQUEUE_WINDOW},
    *,
};
use crate::{ApiError, Cause, Verb};

fn epoch(health: &Health) -> u64 {
    *health.requeue_epoch.borrow()
}

#[tokio::test(start_paused = true)]
async fn ready_means_that_every_watch_has_listed() {
    let health = Health::default();
    let (mut pods, mut sets) =
        (health.watch("Pod", ReadinessRule::Always), health.watch("Set", ReadinessRule::Always));
    pods.synced();
    assert_eq!(health.unready().len(), 1);
    sets.synced();
    assert!(health.unready().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_only_fails_makes_the_process_unready_and_recovers_with_the_next_event() {
    let health = Health::default();
    let mut pods = health.watch("Pod", ReadinessRule::Always);
    pods.synced();
    pods.failed(refused());
    assert!(health.unready().is_empty(), "a short failure is tolerated");
    tokio::time::advance(FAILURE_TOLERANCE + Duration::from_secs(1)).await;
    assert_eq!(health.unready(), [format!("Pod: {}", refused())]);
    let before = epoch(&health);
    pods.alive();
    assert!(health.unready().is_empty());
    assert!(epoch(&health) > before, "what backed off meanwhile is tried again");
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_others_bring_is_told_and_does_not_make_the_process_unready() {
    let health = Health::default();
    let (mut own, mut child) =
        (health.watch("Parent", ReadinessRule::Always), health.watch("Child", ReadinessRule::WhileServed));
    own.synced();
    assert_eq!(health.unready().len(), 1, "nobody knows yet whether it is served");
    child.failed(not_served());
    assert!(health.unready().is_empty());
    assert_eq!(health.observed(), BTreeMap::from([("Child".into(), false), ("Parent".into(), true)]));
    let before = epoch(&health);
    child.synced();
    assert!(epoch(&health) > before, "what waited for it is tried again");
    assert!(health.observed().values().all(|observed| *observed));
    child.failed(not_served());
    assert!(epoch(&health) > before + 1 && health.unready().is_empty());
    child.synced();
    child.failed(refused());
    tokio::time::advance(FAILURE_TOLERANCE + Duration::from_secs(1)).await;
    assert_eq!(health.unready(), [format!("Child: {}", refused())], "but it is served, and has to be seen");
}

#[tokio::test(start_paused = true)]
async fn a_missing_kind_is_settled_so_that_others_can_start() {
    let health = Health::default();
    let mut missing = health.watch("Child", ReadinessRule::Always);
    missing.failed(not_served());
    health.settled().await;
    assert_eq!(health.unready(), [format!("Child: {}", not_served())]);
    let before = epoch(&health);
    missing.synced();
    assert!(epoch(&health) > before, "what waited for it is tried again");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_begins_while_others_are_waited_for_is_waited_for_too() {
    let health = Health::default();
    let mut pods = health.watch("Pod", ReadinessRule::Always);
    let second = Duration::from_secs(1);
    let watches = async {
        let mut sets = health.watch("Set", ReadinessRule::Always);
        tokio::time::sleep(second).await;
        pods.synced();
        tokio::time::sleep(second).await;
        sets.synced();
    };
    let settled = async {
        let began = Instant::now();
        health.settled().await;
        began.elapsed()
    };
    let (waited, ()) = tokio::join!(settled, watches);
    assert_eq!(waited, 2 * second);
}

#[test]
fn a_kind_that_is_taken_away_is_no_short_failure_and_all_is_looked_at_again_once() {
    let health = Health::default();
    let mut sets = health.watch("Child", ReadinessRule::Always);
    sets.synced();
    sets.failed(refused());
    let before = epoch(&health);
    sets.failed(not_served());
    assert_eq!(health.unready(), [format!("Child: {}", not_served())]);
    assert_eq!(epoch(&health), before + 1);
    sets.failed(not_served());
    assert_eq!(epoch(&health), before + 1);
}

#[test]
fn a_kind_without_which_the_others_go_on_can_be_taken_away_unheard() {
    let health = Health::default();
    let mut one_of_many = health.watch("Secret", ReadinessRule::Never);
    one_of_many.synced();
    let before = epoch(&health);
    one_of_many.failed(not_served());
    assert_eq!(epoch(&health), before);
}

#[test]
fn a_kind_that_is_not_configured_does_not_count_as_not_served() {
    let health = Health::default();
    let [mut backups, mut gadgets] =
        ["Job (backups)", "Gadget"].map(|kind| health.watch(kind, ReadinessRule::Never));
    gadgets.in_any_version();
    for watch in [&mut backups, &mut gadgets] {
        watch.failed(not_served());
    }
    assert_eq!(health.unserved(), 1);
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
async fn a_main_loop_that_hangs_is_dead() {
    let health = Health::default();
    health.beat();
    assert_eq!(health.dead(), None);
    tokio::time::advance(HEARTBEAT_TIMEOUT + Duration::from_secs(1)).await;
    assert!(health.dead().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_list_that_nobody_answers_is_not_alive_after_minutes_and_one_that_is_refused_is() {
    let health = Health::default();
    let mut pods = health.watch("Pod", ReadinessRule::Always);
    let mut optional = health.watch("Secret", ReadinessRule::Never);
    pods.listing();
    optional.listing();
    for _ in 0..10 {
        tokio::time::advance(FIRST_LIST_TIMEOUT / 4).await;
        health.beat();
        pods.failed(refused());
        assert_eq!(health.dead(), None);
    }
    tokio::time::advance(FIRST_LIST_TIMEOUT / 2).await;
    pods.failed(failed(Cause::Silent, "no answer"));
    pods.listing();
    tokio::time::advance(FIRST_LIST_TIMEOUT).await;
    health.beat();
    assert_eq!(health.dead().unwrap(), "Pod: the list request has not been answered for 450 s");
    pods.progressed();
    assert_eq!(health.dead(), None);
    pods.synced();
    tokio::time::advance(2 * FIRST_LIST_TIMEOUT).await;
    health.beat();
    assert_eq!(health.dead(), None, "a watch has nothing to tell for hours");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_fails_and_recovers_again_and_again_voids_few_backoffs_and_the_last_recovery_counts() {
    let health = Health::default();
    let mut pods = health.watch("Pod", ReadinessRule::Always);
    pods.synced();
    for _ in 0..20 {
        pods.failed(not_served());
        pods.alive();
    }
    assert_eq!(epoch(&health), u64::from(MAX_REQUEUES));
    tokio::time::sleep(REQUEUE_WINDOW / 2).await;
    assert_eq!(epoch(&health), u64::from(MAX_REQUEUES));
    tokio::time::sleep(REQUEUE_WINDOW).await;
    assert_eq!(epoch(&health), u64::from(MAX_REQUEUES) + 1);
    tokio::time::sleep(2 * REQUEUE_WINDOW).await;
    assert_eq!(epoch(&health), u64::from(MAX_REQUEUES) + 1);
}

/// Nothing is heard of its watch afterwards.
#[tokio::test(start_paused = true)]
async fn the_loss_of_a_kind_that_came_and_went_counts_although_it_stays_away() {
    let health = Health::default();
    let mut sets = health.watch("Child", ReadinessRule::Always);
    for _ in 0..MAX_REQUEUES {
        sets.synced();
        sets.failed(not_served());
    }
    let before = epoch(&health);
    tokio::time::sleep(2 * REQUEUE_WINDOW).await;
    assert_eq!(epoch(&health), before + 1);
}

/// It restarts every minute, and an API server that sheds load refuses it now and then.
#[tokio::test(start_paused = true)]
async fn a_watch_that_stumbles_voids_no_backoff_and_one_that_was_away_does() {
    let health = Health::default();
    let mut pods = health.watch("Pod", ReadinessRule::Always);
    pods.synced();
    let before = epoch(&health);
    pods.failed(refused());
    pods.alive();
    assert_eq!(epoch(&health), before);
    pods.failed(refused());
    tokio::time::advance(FAILURE_TOLERANCE + Duration::from_secs(1)).await;
    pods.alive();
    assert_eq!(epoch(&health), before + 1);
}

#[test]
fn nothing_is_kept_of_a_watch_that_has_ended() {
    let health = Health::default();
    drop(health.watch("Pod", ReadinessRule::Always));
    assert!(health.unready().is_empty());
    assert!(health.watches.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_may_not_read_its_kind_is_told_after_some_time_and_a_kind_that_is_not_served_is_not() {
    let health = Health::default();
    let (mut forbidden, mut missing) =
        (health.watch("Drain", ReadinessRule::Never), health.watch("Widget", ReadinessRule::Never));
    forbidden.failed(failed(Cause::Forbidden, "no right"));
    missing.failed(not_served());
    assert!(health.lasting_failures().is_empty());
    tokio::time::advance(FAILURE_TOLERANCE * 2).await;
    assert_eq!(health.lasting_failures(), [failed(Cause::Forbidden, "no right").to_string()].into());
    forbidden.synced();
    assert!(health.lasting_failures().is_empty());
}
