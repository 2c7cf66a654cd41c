use super::*;

const FINGERPRINT: RetryFingerprint = RetryFingerprint { generation: 1, epoch: 1 };
const CREATE: StepRun = StepRun { step: "create", retry_key: 0, longest: MAX_DELAY, has_progressed: false };

fn failure(reason: &'static str) -> Failure {
    Failure::transient(reason, "it broke")
}

fn item(name: &str) -> Failure {
    Failure { item: Some(name.into()), ..failure("NameTaken") }
}

fn shortly() -> Failure {
    Failure { retry_after: Some(Duration::from_secs(1)), ..failure("ServerBusy") }
}

fn backoffs(backoff: &AllBackoffs) -> (Backoffs, Option<Duration>) {
    backoff.of("a", FINGERPRINT, |_| 0)
}

#[tokio::test(start_paused = true)]
async fn an_event_that_comes_early_does_not_shorten_the_backoff() {
    let backoff = AllBackoffs::default();
    backoff.failed("a", FINGERPRINT, CREATE, failure("Broken"));
    let (held, left) = backoffs(&backoff);
    assert_eq!(held.failure().unwrap().reason, "Broken");
    assert!(left.unwrap() >= Duration::from_millis(4_900));
    tokio::time::advance(Duration::from_secs(7)).await;
    assert_eq!(backoffs(&backoff).0, Backoffs::default());
}

#[tokio::test(start_paused = true)]
async fn what_fails_holds_up_its_own_step_and_items_and_nothing_else() {
    let backoff = AllBackoffs::default();
    backoff.failed("a", FINGERPRINT, StepRun { step: "delete", ..CREATE }, item("web-1"));
    let held = backoffs(&backoff).0;
    assert!(held.is_item_backing_off("delete", "web-1") && !held.is_item_backing_off("delete", "web-2"));
    assert!(!held.is_backing_off("delete") && !held.is_backing_off("create"));
    assert_eq!(held.item_failure("delete", |item| item == "web-1").unwrap().reason, "NameTaken");
    assert_eq!(held.item_failure("delete", |item| item != "web-1"), None);
    backoff.failed("a", FINGERPRINT, CREATE, failure("Broken"));
    let held = backoffs(&backoff).0;
    assert!(
        held.is_backing_off("create")
            && held.is_item_backing_off("create", "any")
            && !held.is_backing_off("delete")
    );
    assert_eq!(held.failure().unwrap().reason, "Broken");
    backoff.failed("a", FINGERPRINT, StepRun { step: EVERYTHING, ..CREATE }, failure("NotObserved"));
    let held = backoffs(&backoff).0;
    assert_eq!(held.everything().unwrap().reason, "NotObserved");
    assert!(held.is_backing_off("delete") && held.is_item_backing_off("delete", "web-2"));
}

#[tokio::test(start_paused = true)]
async fn delays_double_up_to_the_longest() {
    for longest in [50, 300] {
        let backoff = AllBackoffs::default();
        for expected in [5, 10, 20, 40, 80, 160, 300, 300] {
            let run = StepRun { longest: Duration::from_secs(longest), ..CREATE };
            backoff.failed("a", FINGERPRINT, run, failure("Broken"));
            let left = backoffs(&backoff).1.unwrap().as_secs_f64();
            let expected = Duration::from_secs(expected.min(longest)).as_secs_f64();
            assert!((expected..=expected * 1.2).contains(&left), "{left} s instead of about {expected} s");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_minute_of_a_busy_server_costs_seconds() {
    let backoff = AllBackoffs::default();
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(60) {
        backoff.failed("a", FINGERPRINT, CREATE, shortly());
        tokio::time::advance(backoffs(&backoff).1.unwrap()).await;
    }
    assert!(started.elapsed() < Duration::from_secs(90), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_passes_by_itself_is_told_when_it_does_not_and_tried_every_minute() {
    let backoff = AllBackoffs::default();
    let gone = || Failure { reason: "NotFound", is_expected: true, ..shortly() };
    for _ in 0..PATIENT_FAILURES {
        assert_eq!(backoff.failed("a", FINGERPRINT, CREATE, gone()), None, "nobody need be told");
        assert_eq!(backoffs(&backoff).0.failure(), None);
    }
    assert!(backoff.failed("a", FINGERPRINT, CREATE, gone()).is_some(), "it is news that it goes on");
    assert!(backoffs(&backoff).0.failure().is_some());
    for _ in 0..50 {
        backoff.failed("a", FINGERPRINT, CREATE, gone());
    }
    assert!(backoffs(&backoff).1.unwrap() <= MAX_PASSING_DELAY.mul_f64(1.2));
}

#[tokio::test(start_paused = true)]
async fn progress_begins_the_delays_of_a_step_anew() {
    let backoff = AllBackoffs::default();
    for _ in 0..5 {
        backoff.failed("a", FINGERPRINT, CREATE, failure("QuotaExceeded"));
    }
    let some = StepRun { has_progressed: true, ..CREATE };
    backoff.failed("a", FINGERPRINT, some, failure("QuotaExceeded"));
    assert!(backoffs(&backoff).1.unwrap() <= Duration::from_secs(6), "some of it was done");
    tokio::time::advance(Duration::from_secs(6)).await;
    backoff.failed("a", FINGERPRINT, StepRun { step: "delete", ..CREATE }, item("web-1"));
    backoff.progressed("a", "create");
    backoff.failed("a", FINGERPRINT, CREATE, failure("QuotaExceeded"));
    assert!(backoffs(&backoff).1.unwrap() <= Duration::from_secs(6), "all of it was done");
    assert!(backoffs(&backoff).0.is_item_backing_off("delete", "web-1"), "no other step progressed");
}

#[tokio::test(start_paused = true)]
async fn an_item_that_fails_again_and_again_is_not_retried_more_often_for_the_others_that_work() {
    let backoff = AllBackoffs::default();
    let some = StepRun { step: "delete", has_progressed: true, ..CREATE };
    for _ in 0..3 {
        backoff.failed("a", FINGERPRINT, some, item("web-1"));
    }
    assert!(backoffs(&backoff).1.unwrap() >= Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn a_changed_object_or_setting_is_retried_at_once() {
    let backoff = AllBackoffs::default();
    let others =
        [RetryFingerprint { generation: 2, ..FINGERPRINT }, RetryFingerprint { epoch: 2, ..FINGERPRINT }];
    for fingerprint in others {
        backoff.failed("a", FINGERPRINT, CREATE, failure("Broken"));
        assert_eq!(backoff.of("a", fingerprint, |_| 0).0, Backoffs::default());
    }
}

#[tokio::test(start_paused = true)]
async fn a_changed_retry_key_of_a_step_counts_soon_but_not_at_once() {
    let backoff = AllBackoffs::default();
    for _ in 0..5 {
        backoff.failed("a", FINGERPRINT, CREATE, failure("QuotaExceeded"));
    }
    backoff.failed("a", FINGERPRINT, StepRun { step: "delete", ..CREATE }, failure("Forbidden"));
    let left = |step| u64::from(step == "create");
    let (held, next) = backoff.of("a", FINGERPRINT, left);
    assert!(held.is_backing_off("create"), "keys may change one after another");
    assert_eq!(next, Some(RETRY_KEY_DELAY));
    tokio::time::advance(RETRY_KEY_DELAY).await;
    let held = backoff.of("a", FINGERPRINT, left).0;
    assert!(!held.is_backing_off("create") && held.is_backing_off("delete"));
}

#[tokio::test(start_paused = true)]
async fn a_failure_with_another_retry_key_counts_from_one_and_is_not_told_again() {
    let backoff = AllBackoffs::default();
    let began = Instant::now();
    for _ in 0..5 {
        backoff.failed("a", FINGERPRINT, CREATE, failure("QuotaExceeded"));
    }
    tokio::time::advance(RETRY_KEY_DELAY).await;
    let another = StepRun { retry_key: 1, ..CREATE };
    backoff.failed("a", FINGERPRINT, another, failure("QuotaExceeded"));
    assert!(backoff.of("a", FINGERPRINT, |_| 1).1.unwrap() <= Duration::from_secs(6));
    assert_eq!(backoff.failing_since("a"), Some(began));
}

#[tokio::test(start_paused = true)]
async fn what_passes_by_itself_is_told_when_it_does_not_whatever_its_retry_key() {
    let backoff = AllBackoffs::default();
    let ends = || Failure { is_expected: true, ..failure("NamespaceTerminating") };
    let told: Vec<_> = (0..=PATIENT_FAILURES)
        .filter(|key| {
            let run = StepRun { retry_key: u64::from(*key), ..CREATE };
            backoff.failed("a", FINGERPRINT, run, ends()).is_some()
        })
        .collect();
    assert_eq!(told, [PATIENT_FAILURES]);
}

#[tokio::test(start_paused = true)]
async fn what_passes_by_itself_is_not_tried_again_for_another_retry_key() {
    let backoff = AllBackoffs::default();
    let ends = Failure { is_expected: true, ..failure("NamespaceTerminating") };
    backoff.failed("a", FINGERPRINT, CREATE, ends);
    tokio::time::advance(RETRY_KEY_DELAY).await;
    assert!(backoff.of("a", FINGERPRINT, |_| 1).0.is_backing_off("create"), "its pods go one after another");
    tokio::time::advance(2 * MIN_DELAY).await;
    assert!(!backoff.of("a", FINGERPRINT, |_| 1).0.is_backing_off("create"));
}

#[tokio::test(start_paused = true)]
async fn a_delay_that_the_server_asks_for_and_the_brake_on_repeated_writes_hold_for_any_retry_key() {
    let busy = Failure { retry_after: Some(Duration::from_secs(30)), ..failure("ServerBusy") };
    for failure in [busy, failure(REPEATED_WRITES)] {
        let backoff = AllBackoffs::default();
        for retry_key in 0..3 {
            backoff.failed("a", FINGERPRINT, StepRun { retry_key, ..CREATE }, failure.clone());
        }
        tokio::time::advance(2 * MIN_DELAY).await;
        assert!(backoff.of("a", FINGERPRINT, |_| 3).0.is_backing_off("create"), "{failure:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_needs_no_other_try_and_what_is_gone_is_forgotten() {
    let backoff = AllBackoffs::default();
    backoff.failed("a", FINGERPRINT, CREATE, failure("Broken"));
    backoff.settled("a");
    assert_eq!(backoff.len(), 1, "it was not tried again");
    tokio::time::advance(Duration::from_secs(7)).await;
    backoff.settled("a");
    assert_eq!(backoff.len(), 0);
    backoff.failed("a", FINGERPRINT, CREATE, failure("Broken"));
    backoff.forget("a");
    assert_eq!((backoffs(&backoff).0, backoff.len()), (Backoffs::default(), 0));
}

#[tokio::test(start_paused = true)]
async fn an_item_that_may_be_tried_again_is_known_for_a_while_and_then_forgotten() {
    let backoff = AllBackoffs::default();
    backoff.failed("a", FINGERPRINT, CREATE, item("1"));
    tokio::time::advance(Duration::from_secs(7)).await;
    backoff.progressed("a", "create");
    backoff.settled("a");
    let (due, next) = backoffs(&backoff);
    assert!(due.last_failure("create", "1").is_some() && !due.is_item_backing_off("create", "1"));
    assert_eq!((due.backing_off_items("create").count(), backoff.len()), (0, 0));
    tokio::time::advance(next.unwrap()).await;
    backoff.settled("a");
    assert_eq!((backoffs(&backoff).0, backoff.objects.lock().by_uid.len()), (Backoffs::default(), 0));
    for name in ["1", "2"] {
        backoff.failed("a", FINGERPRINT, CREATE, item(name));
        tokio::time::advance(Duration::from_secs(7)).await;
        assert_eq!(backoff.len(), 1, "it waits for its turn");
    }
    backoff.failed("a", FINGERPRINT, CREATE, item("2"));
    backoff.settled("a");
    assert_eq!(backoff.len(), 1, "one of its items is held up");
}

#[tokio::test(start_paused = true)]
async fn an_object_begins_to_fail_anew_after_all_went_well_or_it_was_changed() {
    let backoff = AllBackoffs::default();
    let begins = async |failure| {
        tokio::time::advance(Duration::from_secs(1)).await;
        backoff.failed("a", FINGERPRINT, CREATE, failure);
        backoff.failing_since("a") == Some(Instant::now())
    };
    assert!(begins(failure("Broken")).await);
    assert!(!begins(failure("Broken")).await && !begins(item("1")).await);
    backoff.of("a", RetryFingerprint { generation: 2, ..FINGERPRINT }, |_| 0);
    assert!(begins(failure("Broken")).await, "the object was changed");
    backoff.progressed("a", "create");
    assert!(begins(item("1")).await, "it had worked");
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_that_fail_together_are_not_retried_every_minute() {
    let backoff = AllBackoffs::default();
    let run = StepRun { longest: Duration::from_secs(60), ..CREATE };
    for object in 0..10_000 {
        backoff.failed(&object.to_string(), FINGERPRINT, run, failure("QuotaExceeded"));
    }
    for _ in 0..10 {
        backoff.failed("a", FINGERPRINT, run, failure("QuotaExceeded"));
    }
    assert!(backoffs(&backoff).1.unwrap() >= MAX_DELAY);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_items_of_a_few_objects_are_not_retried_every_minute_until_they_are_forgotten() {
    let backoff = AllBackoffs::default();
    let run = StepRun { longest: Duration::from_secs(30), ..CREATE };
    let last = || {
        for _ in 0..10 {
            backoff.failed("a", FINGERPRINT, run, item("last"));
        }
        backoffs(&backoff).1.unwrap()
    };
    let others = ["b", "c", "d", "e", "f", "g", "h", "i", "j", "k"];
    for (uid, number) in others.iter().flat_map(|uid| (0..1_000).map(move |number| (uid, number))) {
        backoff.failed(uid, FINGERPRINT, run, item(&number.to_string()));
    }
    assert!(last() >= MAX_DELAY);
    backoff.forget("b");
    backoff.of("c", RetryFingerprint { generation: 2, ..FINGERPRINT }, |_| 0);
    tokio::time::advance(3 * MAX_DELAY).await;
    for other in others {
        backoff.settled(other);
    }
    assert!(last() <= Duration::from_secs(36));
}

#[tokio::test(start_paused = true)]
async fn a_late_retry_is_reported_with_its_time_which_stays_the_same_until_the_next_failure() {
    let backoff = AllBackoffs::default();
    let next_retry = || backoffs(&backoff).0.failure().unwrap().next_retry.unwrap();
    backoff.failed("a", FINGERPRINT, CREATE, failure("Broken"));
    assert_eq!(next_retry(), NextRetry::Soon);
    for _ in 0..5 {
        backoff.failed("a", FINGERPRINT, CREATE, failure("Broken"));
    }
    let told = next_retry();
    assert!(told.at().unwrap() > Timestamp::now() + Duration::from_secs(150));
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(next_retry(), told);
}

#[test]
fn no_answer_holds_up_an_object_for_longer_than_the_longest_delay() {
    let asked = |seconds| delay(1, Some(Duration::from_secs(seconds)), Duration::from_secs(60));
    assert!(asked(100) >= Duration::from_secs(100));
    assert!(asked(100_000) <= MAX_DELAY.mul_f64(1.2));
}
