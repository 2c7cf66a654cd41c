//! The release of the Lease, and the memory that goes with it.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_given_up_is_taken_within_seconds() {
    let server = Server::default();
    let leading = server.candidate("a").0.leads().await;
    let (b, _) = server.candidate("b");
    let ((), (_, took)) = tokio::join!(leading.release(), time(b.leads()));
    assert_eq!(server.holder(), "b");
    assert!(took <= 2 * RETRY_INTERVAL, "{took:?}");
}

/// The write takes the memory of the former leader from the Lease.

#[tokio::test(start_paused = true)]
async fn who_is_to_stop_awaits_the_answer_that_may_make_it_the_leader() {
    let server = Server::default();
    server.write("other", "2026-01-01T00:00:00.000000Z");
    let stopped = server.candidate("a").0.lead(pin!(ready(()))).await;
    assert!(matches!(stopped, ControlFlow::Break(None)));

    server.write("", "2026-01-01T00:00:00.000000Z");
    let (a, line) = server.candidate("a");
    line.is(Line::IsSlow);
    let taken = a.lead(pin!(ready(()))).await;
    assert!(matches!(taken, ControlFlow::Continue(_)) && server.holder() == "a");

    server.write("", "2026-01-01T00:00:01.000000Z");
    let (b, line) = server.candidate("b");
    line.is(Line::Swallows);
    let works_again = async {
        sleep(REQUEST_TIMEOUT * 2).await;
        line.is(Line::Works);
    };
    let stop = pin!(sleep(REQUEST_TIMEOUT));
    let (taken, ()) = tokio::join!(b.lead(stop), works_again);
    assert!(matches!(taken, ControlFlow::Break(Some(_))) && server.holder() == "b", "nobody releases it");
}

#[tokio::test(start_paused = true)]
async fn a_release_is_tried_again_until_the_server_answers() {
    for line in [Line::Fails, Line::Hangs] {
        let server = Server::default();
        let (a, to_a) = server.candidate("a");
        let leading = a.leads().await;
        to_a.is(line);
        let outage = async {
            sleep(2 * REQUEST_TIMEOUT).await;
            to_a.is(Line::Works);
        };
        tokio::join!(leading.release(), outage);
        assert_eq!(server.holder(), "", "{line:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_without_an_answer_ends_in_time_for_what_follows_it() {
    for line in [Line::Fails, Line::Hangs, Line::IsSlow] {
        let server = Server::default();
        let (a, to_a) = server.candidate("a");
        let leading = a.leads().await;
        to_a.is(line);
        let ((), took) = time(leading.release()).await;
        assert!(took <= RELEASE_TIMEOUT, "{line:?}: {took:?}");
    }
}

/// A memory of words.
#[derive(Default)]
struct Words(Mutex<Vec<String>>);

impl Handover for Words {
    fn key(&self) -> &'static str {
        "example.com/words"
    }

    fn pass_on(&self) -> Option<String> {
        let words = self.0.lock().join(" ");
        (!words.is_empty()).then_some(words)
    }

    fn receive(&self, memory: &str) {
        self.0.lock().extend(memory.split(' ').map(str::to_owned));
    }
}

fn with_words(candidate: Candidate, words: &[&str]) -> (Candidate, Arc<Words>) {
    let words = Arc::new(Words(Mutex::new(words.iter().map(|word| (*word).to_owned()).collect())));
    (candidate.passing_on(Passed::new(words.clone())), words)
}

#[tokio::test(start_paused = true)]
async fn the_next_leader_knows_what_the_one_before_gave_it_with_the_lease_and_only_that_one_keeps_it() {
    let server = Server::default();
    let annotations = || server.0.lock().lease.as_ref().unwrap()["metadata"]["annotations"].clone();
    let (a, _) = with_words(server.candidate("a").0, &["first", "second"]);
    a.leads().await.release().await;
    assert_eq!(annotations(), json!({"example.com/words": "first second"}));

    let version = server.0.lock().version;
    let (b, words) = with_words(server.candidate("b").0, &["own"]);
    let leading = b.leads().await;
    assert_eq!(*words.0.lock(), ["own", "first", "second"]);
    assert_eq!(server.0.lock().version, version + 1, "it cost a request");
    assert!(annotations().as_object().is_none_or(serde_json::Map::is_empty), "each renewal would carry it");

    // This one is lost, and its memory with it: the next leader is not told what was true long ago.
    drop(leading);
    let (c, words) = with_words(server.candidate("c").0, &[]);
    c.leads().await;
    assert_eq!((server.holder().as_str(), words.0.lock().len()), ("c", 0));
}
