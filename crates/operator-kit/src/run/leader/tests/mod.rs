//! The election against a server with one Lease, on a clock that advances only while all tasks wait.

use std::{
    future::{pending, ready},
    pin::pin,
};

use axum::http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use operator_watch::Watches;
use parking_lot::Mutex;

use super::*;

mod release;

/// A server with one Lease.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    lease: Option<Value>,
    version: u64,
}

/// The state of the connection to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Line {
    #[default]
    Works,
    /// Requests get lost, and no answer comes.
    Hangs,
    /// Each request is answered by an error.
    Fails,
    /// Each request is answered late.
    IsSlow,
    /// Each request is carried out, and no answer comes to a write.
    Swallows,
}

/// A client's connection to the server.
#[derive(Clone, Default)]
struct Connection(Arc<Mutex<Line>>);

impl Connection {
    fn is(&self, line: Line) {
        *self.0.lock() = line;
    }
}

impl Server {
    /// A candidate with this name, and its connection to the server.
    fn candidate(&self, name: &str) -> (Candidate, Connection) {
        let (server, connection) = (self.clone(), Connection::default());
        let line = connection.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (server, line) = (server.clone(), *line.0.lock());
            async move {
                match line {
                    Line::Hangs => pending().await,
                    Line::Fails => Ok::<_, anyhow::Error>(failed(500)),
                    Line::IsSlow => {
                        sleep(REQUEST_TIMEOUT * 2 / 3).await;
                        server.answer(request).await
                    }
                    Line::Swallows => {
                        let is_read = request.method() == Method::GET;
                        let answer = server.answer(request).await;
                        if is_read { answer } else { pending().await }
                    }
                    Line::Works => server.answer(request).await,
                }
            }
        });
        let client = Client::new(service, "default");
        let (gate, health) = (Gate::default(), Arc::new(Health::new(Watches::default())));
        (Candidate::new(client, "catena-system", "reaper", name, gate, health), connection)
    }

    async fn answer(&self, request: Request<Body>) -> anyhow::Result<Response<Body>> {
        let method = request.method().clone();
        let body = request.into_body().collect_bytes().await?;
        let mut kept = self.0.lock();
        let current = kept.lease.as_ref().map(|lease| lease["metadata"]["resourceVersion"].clone());
        if method == Method::GET {
            return Ok(kept.lease.as_ref().map_or_else(|| failed(404), answered));
        }
        let mut lease: Value = serde_json::from_slice(&body)?;
        let is_expected = match (&current, method == Method::POST) {
            (None, true) => true,
            (Some(current), false) => lease["metadata"]["resourceVersion"] == *current,
            (None, false) => return Ok(failed(404)),
            (Some(_), true) => false,
        };
        if !is_expected {
            return Ok(failed(409));
        }
        kept.version += 1;
        lease["metadata"]["resourceVersion"] = kept.version.to_string().into();
        kept.lease = Some(lease.clone());
        Ok(answered(&lease))
    }

    /// Writes the Lease on behalf of somebody else.
    fn write(&self, holder: &str, renewed: &str) {
        let mut kept = self.0.lock();
        kept.version += 1;
        kept.lease = Some(json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "reaper", "resourceVersion": kept.version.to_string()},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": LEASE_DURATION.as_secs(), "renewTime": renewed},
        }));
    }

    fn holder(&self) -> String {
        let kept = self.0.lock();
        let holder = kept.lease.as_ref().map(|lease| lease["spec"]["holderIdentity"].clone());
        holder.and_then(|holder| holder.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

fn answered(lease: &Value) -> Response<Body> {
    Response::new(Body::from(lease.to_string().into_bytes()))
}

fn failed(code: u16) -> Response<Body> {
    let reason = match code {
        404 => "NotFound",
        409 => "Conflict",
        _ => "InternalError",
    };
    let status =
        json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "metadata": {}});
    let mut response = Response::new(Body::from(status.to_string().into_bytes()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or_default();
    response
}

impl Candidate {
    /// Waits until this process leads.
    async fn leads(self) -> Leadership {
        match self.lead(pin!(pending::<()>())).await {
            ControlFlow::Continue(leadership) => leadership,
            ControlFlow::Break(_) => unreachable!("nobody stops it"),
        }
    }
}

/// The result of a future, and the time that it took.
async fn time<T>(what: impl Future<Output = T>) -> (T, Duration) {
    let before = Instant::now();
    (what.await, before.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_nobody_holds_is_taken_at_once() {
    let server = Server::default();
    let (_, took) = time(server.candidate("a").0.leads()).await;
    assert_eq!((server.holder().as_str(), took), ("a", Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn anothers_lease_is_over_when_it_was_not_renewed_for_its_duration_of_our_own_clock() {
    // Clocks may jump or differ: neither a time long ago nor one far ahead means anything.
    for renewed in ["1999-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"] {
        let server = Server::default();
        server.write("other", renewed);
        let (_, took) = time(server.candidate("a").0.leads()).await;
        assert_eq!(server.holder(), "a");
        assert!(took >= LEASE_DURATION && took <= LEASE_DURATION + 2 * RETRY_INTERVAL, "{renewed}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_its_holder_renews_is_not_taken() {
    let server = Server::default();
    let renewing = async {
        for renewal in 0..30 {
            server.write("other", &format!("2026-01-01T00:00:{renewal:02}.000000Z"));
            sleep(RENEW_INTERVAL).await;
        }
    };
    let (candidate, _) = server.candidate("a");
    let ((), took) = tokio::join!(renewing, time(candidate.leads()));
    assert!(took.1 >= 29 * RENEW_INTERVAL + LEASE_DURATION, "{:?}", took.1);
}

/// Waits until the gate is closed, while the Lease is being renewed.
async fn closed(leading: &mut Leadership) -> Instant {
    let gate = leading.candidate.gate.clone();
    let closing = async {
        while gate.is_open() {
            sleep(Duration::from_millis(100)).await;
        }
        Instant::now()
    };
    tokio::select! {
        ended = leading.keep() => panic!("{ended:?}"),
        closed = closing => closed,
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_renewals_hang_or_fail_writes_nothing_before_another_may_begin() {
    for line in [Line::Hangs, Line::Fails] {
        let server = Server::default();
        let (a, to_a) = server.candidate("a");
        let mut leading = a.leads().await;
        timeout(RENEW_INTERVAL + RETRY_INTERVAL, leading.keep()).await.unwrap_err();
        to_a.is(line);
        let (b, _) = server.candidate("b");
        let (closed, next) = tokio::join!(closed(&mut leading), async {
            b.leads().await;
            Instant::now()
        });
        assert!(closed + Duration::from_secs(4) < next, "{line:?}: {:?} before the next", next - closed);

        to_a.is(Line::Works);
        let ended = leading.keep().await.unwrap_err();
        assert!(ended.to_string().contains("held by \"b\""), "{ended}");
        assert!(!leading.candidate.gate.is_open(), "{line:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_was_lost_is_replaced_within_twenty_seconds() {
    for since_renewal in 0..RENEW_INTERVAL.as_secs() {
        let server = Server::default();
        let (a, to_a) = server.candidate("a");
        let mut leading = a.leads().await;
        let (b, _) = server.candidate("b");
        let lost = async {
            let kept = Duration::from_secs(since_renewal) + 3 * RENEW_INTERVAL;
            timeout(kept, leading.keep()).await.unwrap_err();
            to_a.is(Line::Hangs);
            Instant::now()
        };
        let (lost, next) = tokio::join!(lost, async {
            b.leads().await;
            Instant::now()
        });
        assert!(next - lost < Duration::from_secs(18), "{:?}", next - lost);
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_any_length_ends_no_leader_whose_lease_nobody_took() {
    let server = Server::default();
    let (a, line) = server.candidate("a");
    let mut leading = a.leads().await;
    line.is(Line::Hangs);
    closed(&mut leading).await;
    timeout(100 * LEASE_DURATION, leading.keep()).await.unwrap_err();
    assert!(!leading.candidate.gate.is_open());
    line.is(Line::Works);
    timeout(REQUEST_TIMEOUT + 2 * RETRY_INTERVAL, leading.keep()).await.unwrap_err();
    assert!(leading.candidate.gate.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_gives_up_its_lease_writes_nothing_more() {
    let server = Server::default();
    let leading = server.candidate("a").0.leads().await;
    let gate = leading.candidate.gate.clone();
    assert!(gate.is_open());
    leading.release().await;
    assert!(!gate.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_works_again_in_time_is_as_good_as_any() {
    let server = Server::default();
    let (a, line) = server.candidate("a");
    let mut leading = a.leads().await;
    let outage = async {
        sleep(RENEW_INTERVAL / 2).await;
        line.is(Line::Hangs);
        sleep(RENEW_INTERVAL).await;
        line.is(Line::Works);
        sleep(10 * RENEW_INTERVAL).await;
    };
    tokio::select! {
        ended = leading.keep() => panic!("{ended:?}"),
        () = outage => assert_eq!(server.holder(), "a"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_another_has_stops_at_its_next_renewal() {
    let server = Server::default();
    let mut leading = server.candidate("a").0.leads().await;
    server.write("other", "2026-01-01T00:00:00.000000Z");
    let (ended, took) = time(leading.keep()).await;
    assert!(ended.unwrap_err().to_string().contains("held by \"other\""));
    assert!(took <= RENEW_INTERVAL + RETRY_INTERVAL, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_deleted_is_made_anew_by_its_holder() {
    let server = Server::default();
    server.write("", "2026-01-01T00:00:00.000000Z");
    let by_helm = json!({"app.kubernetes.io/managed-by": "Helm"});
    server.0.lock().lease.as_mut().unwrap()["metadata"]["labels"] = by_helm.clone();
    let mut leading = server.candidate("a").0.leads().await;
    server.0.lock().lease = None;
    let kept = timeout(5 * RENEW_INTERVAL, leading.keep()).await;
    assert!(kept.is_err(), "{kept:?}");
    assert_eq!(server.holder(), "a");
    let labels = server.0.lock().lease.as_ref().unwrap()["metadata"]["labels"].clone();
    assert_eq!(labels, by_helm, "it is still a part of its release");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_deleted_is_taken_only_after_its_holder_has_stopped_writing() {
    for (line, holder) in [(Line::Works, "a"), (Line::Hangs, "b")] {
        let server = Server::default();
        let (a, to_a) = server.candidate("a");
        let mut leading = a.leads().await;
        let gate = leading.candidate.gate.clone();
        let (b, _) = server.candidate("b");
        let deletion = async {
            sleep(RENEW_INTERVAL + 2 * RETRY_INTERVAL).await;
            to_a.is(line);
            server.0.lock().lease = None;
        };
        let next = async {
            b.leads().await;
            assert!(!gate.is_open(), "both write");
        };
        let all = Box::pin(async { tokio::join!(leading.keep(), deletion, next) });
        assert!(timeout(3 * LEASE_DURATION, all).await.is_err(), "{line:?}");
        assert_eq!(server.holder(), holder);
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_api_server_keeps_nobody_from_leading() {
    let server = Server::default();
    server.write("", "2026-01-01T00:00:00.000000Z");
    let (a, line) = server.candidate("a");
    line.is(Line::IsSlow);
    let (mut leading, took) = time(a.leads()).await;
    assert!(took < 2 * REQUEST_TIMEOUT, "{took:?}");
    timeout(10 * LEASE_DURATION, leading.keep()).await.unwrap_err();
    assert!(leading.candidate.gate.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_written_is_a_problem_of_the_process() {
    let server = Server::default();
    let (a, line) = server.candidate("a");
    let health = a.health.clone();
    let mut leading = a.leads().await;
    line.is(Line::Fails);
    timeout(4 * LEASE_DURATION, leading.keep()).await.unwrap_err();
    let problems = health.unready();
    assert!(problems.len() == 1 && problems[0].starts_with("the Lease reaper: "), "{problems:?}");
    line.is(Line::Works);
    timeout(RENEW_INTERVAL, leading.keep()).await.unwrap_err();
    assert!(health.unready().is_empty());
}

#[test]
fn a_lease_is_read_whatever_times_it_tells_and_keeps_what_others_say_of_it() {
    let last = "9999-12-31T23:59:59.000000Z";
    let metadata = json!({"name": "reaper", "resourceVersion": "7", "labels": {"team": "a"}});
    let mut told = json!({
        "metadata": metadata,
        "spec": {"holderIdentity": "reaper-0", "leaseDurationSeconds": 30, "renewTime": last, "acquireTime": last},
    });
    told["metadata"]["managedFields"] = json!([{"manager": "other", "time": "9999-12-31T23:59:59Z"}]);
    assert!(serde_json::from_value::<Lease>(told.clone()).is_err());
    let read: PrunedObject = serde_json::from_value(told).unwrap();
    assert_eq!((holder(&read), validity(&read)), ("reaper-0", Duration::from_secs(30)));
    let written = serde_json::to_value(&read).unwrap();
    assert_eq!((&written["metadata"], &written["spec"]["renewTime"]), (&metadata, &json!(last)));
}

#[test]
fn a_moment_is_written_as_the_api_server_takes_it() {
    let lease = json!({"metadata": {}, "spec": {"renewTime": now()}});
    assert!(serde_json::from_value::<Lease>(lease).is_ok());
}
