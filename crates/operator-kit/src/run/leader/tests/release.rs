//! The release of the Lease.

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
