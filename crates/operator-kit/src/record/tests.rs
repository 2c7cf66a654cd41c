use super::*;
use crate::{object::Named, report::Failure, watch::Watermark};

const VERSION: Version = Version { generation: 1, settings: 1, retry_key: 0 };
const CREATE: Tried = Tried { step: "create", retry_key: 0, longest: MAX_DELAY, has_progressed: false };

fn records() -> (Records, Arc<Metrics>) {
    let metrics = Arc::<Metrics>::default();
    (Records::new(metrics.clone()), metrics)
}

fn fail(records: &Records, uid: &str, item: &str) {
    let failure = Failure { item: Some(item.into()), ..Failure::transient("Broken", "it broke") };
    records.of(uid, |record| record.backoff.failed(VERSION, CREATE, failure, 0));
}

fn numbers(records: &Records) -> (usize, usize, u32) {
    let Totals { backing_off, failed_parts, unreported } = records.totals();
    (backing_off, failed_parts, unreported)
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_an_object_that_is_gone() {
    let (records, metrics) = records();
    for uid in ["a", "b"] {
        fail(&records, uid, "1");
        fail(&records, uid, "2");
        records.status_age(uid, true);
        records.of(uid, |record| {
            record.pending.wrote(&Watermark::default(), Some("5"));
            let object = Named::new("Pod", "web-1");
            record.repeated = Some(Repeated { verb: "apply", object, undoes: None });
        });
    }
    assert_eq!((numbers(&records), metrics.backing_off.get()), ((2, 4, 2), 2));
    records.forget("a");
    assert_eq!((numbers(&records), metrics.backing_off.get()), ((1, 2, 1), 1));
    assert!(records.of("a", |record| record.is_empty()) && !records.of("b", |record| record.is_empty()));
    records.forget("a");
    records.forget("b");
    assert_eq!((numbers(&records), metrics.backing_off.get()), ((0, 0, 0), 0));
    assert!(records.objects.lock().by_uid.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_object_at_rest_takes_no_memory() {
    let (records, _) = records();
    let pods = Watermark::default();
    fail(&records, "a", "1");
    records.of("a", |record| record.pending.wrote(&pods, Some("5")));
    pods.observe(Some("5"));
    assert!(records.of("a", |record| record.pending.is_current()));
    assert_eq!(records.objects.lock().by_uid.len(), 1);
    let other = Version { generation: 2, ..VERSION };
    records.of("a", |record| record.backoff.attempt(other, |_| 0));
    assert!(records.objects.lock().by_uid.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_decision_waits_for_the_writes_of_no_other_object() {
    let (records, _) = records();
    records.of("a", |record| record.pending.wrote(&Watermark::default(), Some("5")));
    assert!(!records.of("a", |record| record.pending.is_current()));
    assert!(records.of("b", |record| record.pending.is_current()));
}
