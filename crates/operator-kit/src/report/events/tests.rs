use kube::Config;
use regex::Regex;
use serde_json::{Value, json};

use super::*;
use crate::testing::{Answer, Log, answering};

const MINUTE: Duration = Duration::from_secs(60);

/// Events over a server that takes all of them.
fn events() -> (Events, Log) {
    let (client, log) = answering(|_| Answer::Done);
    (Events::over(client, "binder"), log)
}

fn about(name: &str) -> ObjectReference {
    ObjectReference {
        kind: Some("Role".into()),
        name: Some(name.into()),
        namespace: Some("shop".into()),
        uid: Some(format!("uid-of-{name}")),
        ..ObjectReference::default()
    }
}

fn refused(note: &str) -> Event {
    Events::warning("Refused", note)
}

/// The notes of the Events that were published since the last call.
async fn notes(log: &Log) -> Vec<Value> {
    sleep(Duration::from_secs(1)).await;
    log.take().into_iter().map(|sent| sent.body["note"].clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn what_happens_again_is_told_again_and_each_time_in_its_own_words() {
    let (events, log) = events();
    for note in ["one", "two", "two"] {
        events.publish(&about("web"), Events::normal("Scaled", note));
        events.publish(&about("web"), Events::warning("Scaled", note));
    }
    assert_eq!(notes(&log).await, ["one", "one", "two", "two", "two", "two"]);
}

#[tokio::test(start_paused = true)]
async fn a_warning_is_told_once_and_again_before_its_event_expires_and_anything_else_after_that() {
    for (type_, expected) in [(EventType::Warning, 30..50), (EventType::Normal, 60..61)] {
        let (events, log) = events();
        let began = Instant::now();
        let state = || event(type_, "Refused", "as it says");
        let tell = || events.publish_lasting(&about("web"), "", "refused", state());
        let first = tell();
        assert!(first.is_queued && expected.contains(&(first.due_in.as_secs() / 60)), "{first:?}");
        while began.elapsed() < first.due_in {
            let Repeat { is_queued, due_in } = tell();
            assert!(!is_queued && due_in + began.elapsed() == first.due_in, "{due_in:?}");
            sleep(due_in.min(MINUTE)).await;
        }
        assert_eq!((tell(), tell().is_queued), (first, false), "it is due again");
        assert_eq!(notes(&log).await.len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn another_state_is_told_at_once_also_one_that_was_told_before_and_other_words_are_none() {
    let (events, log) = events();
    for (state, note) in [("missing", "one"), ("missing", "two"), ("replaced", "three"), ("missing", "four")]
    {
        events.publish_lasting(&about("web"), "", state, refused(note));
    }
    assert_eq!(notes(&log).await, ["one", "three", "four"]);
}

#[tokio::test(start_paused = true)]
async fn a_state_that_comes_back_after_it_was_resolved_is_told_at_once() {
    let (events, log) = events();
    let tell =
        |object, topic| events.publish_lasting(&about(object), topic, "", refused("it lasts")).is_queued;
    assert!(tell("web", "create") && !tell("web", "create"));
    events.resolved(&about("web"), "delete");
    events.resolved(&about("other"), "create");
    assert!(!tell("web", "create"), "something else is over");
    events.resolved(&about("web"), "create");
    assert!(tell("web", "create"));
    assert_eq!(notes(&log).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn each_object_and_each_of_its_topics_is_told_by_itself() {
    let (events, log) = events();
    let namesake = ObjectReference { uid: Some("another".into()), ..about("web") };
    for _ in 0..2 {
        for (object, topic) in [
            (about("web"), "create"),
            (about("web"), "delete"),
            (about("other"), "create"),
            (namesake.clone(), "create"),
        ] {
            events.publish_lasting(&object, topic, "", refused("it lasts"));
        }
    }
    assert_eq!(notes(&log).await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn nothing_counts_as_told_while_too_many_events_are_queued() {
    let (client, log) = answering(|_| Answer::Done);
    let metrics = Arc::<Metrics>::default();
    let events = Events::new(client, "binder", "binder-0", metrics.clone());
    while events.has_capacity() {
        events.publish(&about("other"), Events::normal("Other", ""));
    }
    let tell = || events.publish_lasting(&about("web"), "", "refused", refused("it lasts"));
    assert_eq!(tell(), Repeat { is_queued: false, due_in: QUEUE_RETRY });
    sleep(QUEUE_RETRY).await;
    assert!(tell().is_queued);
    assert_eq!(notes(&log).await.len(), MAX_QUEUED + 1);
    assert!(!metrics.encode().unwrap().contains("dropped"), "it was only late");
}

#[tokio::test(start_paused = true)]
async fn the_memory_of_what_was_told_is_bounded_by_the_lifetime_of_an_event() {
    let (events, _) = events();
    for number in 0..5_000 {
        assert!(events.publish_lasting(&about("web"), number, "", refused("it lasts")).is_queued);
        sleep(Duration::from_secs(2)).await;
    }
    let remembered = events.lasting.lock().len();
    assert!((1_800..4_000).contains(&remembered), "{remembered}");
    let recent = (5_000 - 900..5_000)
        .find(|number| events.publish_lasting(&about("web"), number, "", refused("it lasts")).is_queued);
    assert_eq!(recent, None, "it is told hot");
}

#[tokio::test(start_paused = true)]
async fn flushing_publishes_what_is_queued_and_waits_no_longer_than_its_limit() {
    for (answer, is_published) in [(Answer::Done, true), (Answer::Silence, false)] {
        let (client, log) = answering(move |_| answer.clone());
        let events = Events::over(client, "binder");
        // Nothing else runs before the first await.
        for _ in 0..MAX_QUEUED {
            events.publish(&ObjectReference::default(), Events::warning("TargetNotFound", ""));
        }
        // A pause after each of them would take 20 s.
        let (limit, begun) = (Duration::from_secs(4), Instant::now());
        assert_eq!(events.flush(limit).await, is_published);
        assert_eq!(log.take().len(), if is_published { MAX_QUEUED } else { 0 });
        assert!(begun.elapsed() <= limit, "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn what_is_told_while_nothing_can_be_published_is_bounded() {
    let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
    let metrics = Arc::<Metrics>::default();
    let events = Events::new(client, "binder", "binder-0", metrics.clone());
    let about = ObjectReference::default();
    // Nothing else runs before the first await.
    for _ in 0..MAX_QUEUED {
        assert!(events.has_capacity());
        events.publish(&about, Events::warning("TargetNotFound", ""));
    }
    assert!(!events.has_capacity());
    (0..500).for_each(|_| events.publish(&about, Events::warning("TargetNotFound", "")));
    let page = metrics.encode().unwrap();
    assert!(page.contains("operator_events_total{result=\"dropped\"} 500"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn an_event_about_an_object_of_any_name_has_a_name_that_the_server_takes() {
    let subdomain = Regex::new(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$").unwrap();
    let too_long = "a".repeat(253);
    for name in ["web-1.shop", &too_long, "system:node", "A_b", "a..b", "a-"] {
        for (namespace, path) in [(Some("shop"), "shop"), (None, "default")] {
            let (events, log) = events();
            let about = ObjectReference { namespace: namespace.map(Into::into), ..about(name) };
            events.publish(&about, Events::warning("Refused", "as it says"));
            sleep(Duration::from_secs(1)).await;
            let sent = log.take();
            assert_eq!(sent.len(), 1, "{sent:?}");
            let (verb, uri, event) = (&sent[0].verb, &sent[0].uri, &sent[0].body);
            assert_eq!(verb, "POST");
            assert_eq!(*uri, format!("/apis/events.k8s.io/v1/namespaces/{path}/events?"));
            let given = event["metadata"]["name"].as_str().unwrap();
            assert!(given.len() <= 253 && subdomain.is_match(given), "{given}");
            assert_eq!(event["regarding"], json!(about));
            let fields = ["type", "reason", "action", "note", "reportingController", "reportingInstance"];
            let told = ["Warning", "Refused", "Reconcile", "as it says", "binder", "binder"];
            assert_eq!(fields.map(|field| &event[field]), told.map(Value::from).each_ref());
            assert!(event["eventTime"].is_string(), "{event}");
        }
    }
}

fn unreadable(name: &str) -> ObjectReference {
    ObjectReference { name: Some(name.to_owned()), uid: Some(name.to_owned()), ..ObjectReference::default() }
}

fn failure(mistake: &str) -> Failure {
    Failure::transient("Unreadable", mistake)
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_is_told_once_until_something_else_is_wrong_with_it() {
    let (events, log) = events();
    let told = async |mistake: &str| {
        events.is_unreadable(&unreadable("a"), mistake, &failure(mistake));
        events.is_unreadable(&unreadable("a"), mistake, &failure(mistake));
        sleep(MINUTE).await;
        log.take().len()
    };
    assert_eq!((told("no text").await, told("no text").await, told("no number").await), (1, 0, 1));
    events.is_mended(&unreadable("a"), "no text");
    assert_eq!((told("no number").await, told("no text").await), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_stays_unreadable_is_told_again_before_the_event_expires() {
    let (events, log) = events();
    for _ in 0..55 {
        events.is_unreadable(&unreadable("a"), "no text", &failure("no text"));
        sleep(MINUTE).await;
    }
    assert_eq!(log.take().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn more_unreadable_objects_than_events_have_room_for_are_all_told_in_minutes() {
    let (events, log) = events();
    for _ in 0..5 {
        for number in 0..1100 {
            events.is_unreadable(&unreadable(&format!("bad-{number}")), "no text", &failure("no text"));
        }
        sleep(MINUTE).await;
    }
    assert_eq!(log.take().len(), 1100);
}

#[tokio::test]
async fn failures_and_unreadable_objects_are_counted_by_kind() {
    let (events, _log) = events();
    events.failed("Pod");
    events.unreadable("Pod", 2);
    let page = events.metrics.encode().unwrap();
    for line in ["operator_watch_errors_total{kind=\"Pod\"} 1", "operator_unreadable_objects{kind=\"Pod\"} 2"]
    {
        assert!(page.contains(line), "{page}");
    }
}
