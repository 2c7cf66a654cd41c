use std::sync::Mutex;

use axum::Router;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Client, Config,
    api::{DeleteParams, ObjectMeta},
    discovery::ApiResource,
    runtime::watcher::Event::{self, Apply, Delete},
};
use operator_watch::{ApiError, ObjectId, SeenVersion, Watches, WriteTarget};
use serde_json::json;

use super::*;
use crate::testing::{Answer, answering};

/// Records the versions of the given objects, and the objects that it is to forget.
#[derive(Default)]
struct Versions(Mutex<Vec<String>>, Mutex<Vec<String>>);

impl Controller for Versions {
    type Kind = ConfigMap;
    type Observed = String;
    type Action = String;
    type Error = ApiError;

    async fn observe(&self, object: Arc<ConfigMap>, _: Backoffs) -> Result<String, ApiError> {
        Ok(object.metadata.resource_version.clone().unwrap())
    }

    fn decide(&self, version: &String) -> String {
        version.clone()
    }

    async fn act(&self, _: String, version: String) -> Result<Requeue, ApiError> {
        self.0.lock().unwrap().push(version);
        Ok(Requeue::OnChange)
    }

    fn forget(&self, uid: &str) {
        self.1.lock().unwrap().push(uid.to_owned());
    }
}

fn object(uid: &str, version: &str) -> ConfigMap {
    let metadata = ObjectMeta {
        name: Some("settings".into()),
        namespace: Some("shop".into()),
        uid: Some(uid.into()),
        resource_version: Some(version.into()),
        ..ObjectMeta::default()
    };
    ConfigMap { metadata, ..ConfigMap::default() }
}

fn object_named(name: &str) -> ConfigMap {
    let mut object = object(name, "1");
    object.metadata.name = Some(name.into());
    object
}

/// Nothing here talks to a server.
fn passes(objects: Arc<Cache<ConfigMap>>) -> Reconciler<Versions> {
    let writer = writer("http://127.0.0.1:1");
    passes_of(Versions::default(), objects, writer)
}

fn writer(server: &str) -> Writer {
    let client = Client::try_from(Config::new(server.parse().unwrap())).unwrap();
    Writer::new(client, "versions", Arc::default())
}

fn passes_of<C: Controller<Kind = ConfigMap>>(
    controller: C,
    objects: Arc<Cache<ConfigMap>>,
    writer: Writer,
) -> Reconciler<C> {
    let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
    Reconciler {
        memory: Arc::new(Memory {
            controller: Arc::new(controller),
            backoff: Arc::default(),
            writer,
            events: Events::new(client, "versions", "versions-0", Arc::default()),
        }),
        dynamic_type: (),
        objects,
        queue: Queue::default(),
        concurrency: 32,
        health: Arc::new(Health::new(Watches::default())),
    }
}

#[tokio::test]
async fn a_pass_sees_what_came_after_it_was_queued() {
    let shown = Cache::unwatched();
    let passes = passes(shown.clone());
    shown.apply(Apply(object("a", "2")));
    passes.pass(Arc::new(object("a", "1"))).await;
    assert_eq!(*passes.memory.controller.0.lock().unwrap(), ["2"]);
}

#[tokio::test]
async fn there_is_no_pass_over_what_is_gone_or_another_one_by_now() {
    let shown = Cache::unwatched();
    let passes = passes(shown.clone());
    shown.apply(Apply(object("b", "2")));
    passes.pass(Arc::new(object("a", "1"))).await;
    shown.apply(Delete(object("b", "3")));
    passes.pass(Arc::new(object("b", "2"))).await;
    assert!(passes.memory.controller.0.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_object_that_is_gone_or_no_longer_watched_is_forgotten() {
    let shown = Cache::unwatched();
    let passes = passes(shown.clone());
    shown.apply(Apply(object("a", "1")));
    passes.forget_of_all(|memory, uid| memory.controller.forget(uid));
    passes.memory.forget("b");
    assert_eq!(*passes.memory.controller.1.lock().unwrap(), ["a", "b"]);
}

/// Never ends a step, and records the objects that it is to forget.
#[derive(Default)]
struct Hangs(Mutex<Vec<String>>);

impl Controller for Hangs {
    type Kind = ConfigMap;
    type Observed = ();
    type Action = ();
    type Error = ApiError;

    async fn observe(&self, _: Arc<ConfigMap>, _: Backoffs) -> Result<(), ApiError> {
        Ok(())
    }

    fn decide(&self, (): &()) {}

    async fn act(&self, (): (), (): ()) -> Result<Requeue, ApiError> {
        std::future::pending().await
    }

    fn forget(&self, uid: &str) {
        self.0.lock().unwrap().push(uid.to_owned());
    }
}

#[tokio::test]
async fn what_is_gone_is_forgotten_also_if_its_pass_is_cut_off() {
    let shown = Cache::unwatched();
    let passes = passes_of(Hangs::default(), shown.clone(), writer("http://127.0.0.1:1"));
    for gone in [false, true] {
        shown.apply(Apply(object("a", "1")));
        let mut pass = Box::pin(passes.pass(Arc::new(object("a", "1"))));
        assert!(futures::poll!(&mut pass).is_pending());
        if gone {
            shown.apply(Delete(object("a", "2")));
        }
        drop(pass);
        assert_eq!(passes.memory.controller.0.lock().unwrap().len(), usize::from(gone));
    }
}

/// Always fails in one step, and always finds work in the other.
struct TwoSteps(Mutex<Vec<&'static str>>);

impl Controller for TwoSteps {
    type Kind = ConfigMap;
    type Observed = Backoffs;
    type Action = &'static str;
    type Error = Failure;

    async fn observe(&self, _: Arc<ConfigMap>, backoffs: Backoffs) -> Result<Backoffs, Failure> {
        Ok(backoffs)
    }

    fn decide(&self, backoffs: &Backoffs) -> &'static str {
        if backoffs.is_backing_off("create") { "delete" } else { "create" }
    }

    fn step(&self, action: &&'static str) -> &'static str {
        action
    }

    async fn act(&self, _: Backoffs, action: &'static str) -> Result<Requeue, Failure> {
        self.0.lock().unwrap().push(action);
        let refused = Failure::transient("Refused", "it is refused");
        if action == "create" { Err(refused) } else { Ok(Requeue::Written) }
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_fails_backs_off_while_another_one_goes_on_and_its_progress_does_not_hasten_it() {
    let shown = Cache::unwatched();
    let passes = passes_of(TwoSteps(Mutex::default()), shown.clone(), writer("http://127.0.0.1:1"));
    shown.apply(Apply(object("a", "1")));
    for _ in 0..10 {
        passes.pass(Arc::new(object("a", "1"))).await;
    }
    let took = std::mem::take(&mut *passes.memory.controller.0.lock().unwrap());
    assert_eq!(took, [&["create"][..], &["delete"; 9]].concat());
    tokio::time::advance(Duration::from_secs(6)).await;
    for _ in 0..2 {
        passes.pass(Arc::new(object("a", "1"))).await;
    }
    assert_eq!(*passes.memory.controller.0.lock().unwrap(), ["create", "delete"]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_told_once_while_it_lasts_and_again_before_its_event_expires_or_at_once_after_a_change()
{
    let shown = Cache::unwatched();
    let (client, log) = answering(|_| Answer::Done);
    let mut passes = passes_of(TwoSteps(Mutex::default()), shown.clone(), writer("http://127.0.0.1:1"));
    Arc::get_mut(&mut passes.memory).unwrap().events = Events::over(client, "versions");
    let mut object = object("a", "1");
    shown.apply(Apply(object.clone()));
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(55 * 60) {
        passes.pass(Arc::new(object.clone())).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    assert_eq!(log.take().len(), 2);
    object.metadata.generation = Some(2);
    shown.apply(Apply(object.clone()));
    passes.pass(Arc::new(object)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let told: Vec<_> = log.take().into_iter().map(|sent| sent.body["note"].clone()).collect();
    assert_eq!(told, ["it is refused"]);
}

/// Creates the same object in every pass, and calls that a success.
struct InVain {
    writer: Writer,
    maps: WriteTarget,
}

impl InVain {
    fn new(writer: Writer, seen: &SeenVersion) -> Self {
        Self { writer, maps: WriteTarget::new(ApiResource::erase::<ConfigMap>(&()), seen) }
    }
}

impl Controller for InVain {
    type Kind = ConfigMap;
    type Observed = Backoffs;
    type Action = Option<&'static str>;
    type Error = ApiError;

    async fn observe(&self, _: Arc<ConfigMap>, backoffs: Backoffs) -> Result<Backoffs, ApiError> {
        Ok(backoffs)
    }

    fn decide(&self, backoffs: &Backoffs) -> Option<&'static str> {
        backoffs.failure().is_none().then_some("create")
    }

    async fn act(&self, _: Backoffs, action: Option<&'static str>) -> Result<Requeue, ApiError> {
        let Some(name) = action else { return Ok(Requeue::OnChange) };
        let object = json!({"metadata": {"namespace": "shop", "name": name}});
        let own = ObjectId { uid: "a", ..ObjectId::default() };
        self.writer.for_object(own).create(&self.maps, &object).await?;
        Ok(Requeue::Written)
    }
}

#[tokio::test]
async fn passes_that_succeed_with_the_very_same_write_for_ever_are_slowed_down() {
    let asked = Arc::new(Mutex::new(0));
    let count = asked.clone();
    let answer = move || {
        *count.lock().unwrap() += 1;
        async { r#"{"metadata": {"name": "create", "resourceVersion": "1"}}"# }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });

    let shown = Cache::unwatched();
    let writer = writer(&server);
    let in_vain = InVain::new(writer.clone(), &SeenVersion::unwatched());
    let passes = passes_of(in_vain, shown.clone(), writer);
    shown.apply(Apply(object("a", "1")));
    for _ in 0..100 {
        passes.pass(Arc::new(object("a", "1"))).await;
    }
    assert!((20..=40).contains(&*asked.lock().unwrap()), "{} writes", asked.lock().unwrap());
    let page = passes.memory.events.metrics.encode().unwrap();
    assert!(page.contains("operator_repeated_writes_total{kind=\"ConfigMap\"} 1"), "{page}");
    let fingerprint = RetryFingerprint { generation: 0, epoch: 0 };
    let (backoffs, _) = passes.memory.backoff.of("a", fingerprint, |_| 0);
    let failure = backoffs.failure().unwrap();
    assert!(failure.reason == "RepeatedWrites" && failure.message.contains("create"), "{failure}");
}

/// Undoes a change of its object by somebody else.
struct Heals {
    writer: Writer,
    is_changed: Mutex<bool>,
    writes: Mutex<Vec<Instant>>,
}

impl Controller for Heals {
    type Kind = ConfigMap;
    type Observed = Backoffs;
    type Action = &'static str;
    type Error = ApiError;

    async fn observe(&self, _: Arc<ConfigMap>, backoffs: Backoffs) -> Result<Backoffs, ApiError> {
        Ok(backoffs)
    }

    fn decide(&self, backoffs: &Backoffs) -> &'static str {
        if *self.is_changed.lock().unwrap() && !backoffs.is_backing_off("heal") { "heal" } else { EVERYTHING }
    }

    fn step(&self, action: &&'static str) -> &'static str {
        action
    }

    async fn act(&self, _: Backoffs, action: &'static str) -> Result<Requeue, ApiError> {
        if action == EVERYTHING {
            return Ok(Requeue::OnChange);
        }
        let maps = WriteTarget::unwatched(ApiResource::erase::<ConfigMap>(&()));
        let patch = json!({"metadata": {"namespace": "shop", "name": "settings"}, "data": {"a": "ours"}});
        let own = ObjectId { uid: "a", ..ObjectId::default() };
        self.writer.for_object(own).undoing(Some("data.a")).merge_patch(&maps, &patch).await?;
        *self.is_changed.lock().unwrap() = false;
        self.writes.lock().unwrap().push(Instant::now());
        Ok(Requeue::Written)
    }
}

/// A fight with somebody who makes the same change at an interval for an hour.
struct Fight {
    began: Instant,
    /// The number of requests to undo it.
    requests: usize,
    /// The successful ones.
    writes: Vec<Instant>,
    /// The failures at its end, and three minutes after it.
    told: [Option<Failure>; 2],
}

async fn fight(interval: Duration, answer: Answer) -> Fight {
    let fields = json!({"f:data": {"f:a": {}}});
    let rival = json!({"manager": "rival", "time": "2026-01-01T00:00:00Z", "fieldsV1": fields});
    let (client, log) = answering(move |sent| match sent.verb.as_str() {
        "GET" => Answer::Object(json!({"metadata": {"managedFields": [rival.clone()]}})),
        _ => answer.clone(),
    });
    let writer = Writer::over(client, "versions");
    let heals = Heals { writer: writer.clone(), is_changed: Mutex::default(), writes: Mutex::default() };
    let shown = Cache::unwatched();
    let passes = passes_of(heals, shown.clone(), writer);
    shown.apply(Apply(object("a", "1")));
    let began = Instant::now();
    let (hour, minutes) = (Duration::from_secs(3_600), Duration::from_secs(180));
    let (mut change, mut told) = (began, Vec::new());
    for end in [began + hour, began + hour + minutes] {
        while Instant::now() < end {
            if change <= Instant::now() && told.is_empty() {
                *passes.memory.controller.is_changed.lock().unwrap() = true;
                change += interval;
            }
            let next = passes.pass(Arc::new(object("a", "1"))).await.map(|delay| Instant::now() + delay);
            let change = if told.is_empty() { change } else { end };
            tokio::time::sleep_until(next.into_iter().chain([change, end]).min().unwrap()).await;
        }
        let fingerprint = RetryFingerprint { generation: 0, epoch: 0 };
        told.push(passes.memory.backoff.of("a", fingerprint, |_| 0).0.failure().cloned());
    }
    Fight {
        began,
        requests: log.take().iter().filter(|sent| sent.verb == "MERGE").count(),
        writes: std::mem::take(&mut *passes.memory.controller.writes.lock().unwrap()),
        told: told.try_into().unwrap(),
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_undoes_what_is_undone_is_named_and_answered_once_a_minute_until_it_stops() {
    for (milliseconds, burst) in [(100, 6), (5_000, 6), (20_000, 6), (60_000, 10)] {
        let interval = Duration::from_millis(milliseconds);
        let Fight { writes, told: [told, later], .. } = fight(interval, Answer::Done).await;
        assert!((50..=burst + 60).contains(&writes.len()), "{milliseconds} ms: {} writes", writes.len());
        let slow = writes[burst - 1..].windows(2).all(|two| two[1] - two[0] >= Duration::from_secs(60));
        assert!(slow, "{milliseconds} ms: {writes:?}");
        let told = told.unwrap();
        assert_eq!((told.reason, told.is_stalled), ("RepeatedWrites", false));
        let says = "the field manager \"rival\" keeps changing data.a of ConfigMap \"settings\", which is changed back once a minute";
        assert!(told.message.starts_with(says), "{told}");
        assert_eq!(later, None, "it has stopped");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_is_always_faster_is_answered_as_seldom() {
    let conflict = Answer::Refusal(409, "Conflict");
    let Fight { requests, told, .. } = fight(Duration::from_millis(100), conflict).await;
    assert!((50..=70).contains(&requests), "{requests}");
    assert_eq!(told.map(|told| told.unwrap().reason), ["RepeatedWrites"; 2], "it is not undone");
}

#[tokio::test(start_paused = true)]
async fn what_somebody_changes_now_and_then_is_undone_at_once() {
    let Fight { began, writes, told, .. } = fight(Duration::from_secs(300), Answer::Done).await;
    let seconds: Vec<_> = writes.iter().map(|write| (*write - began).as_secs()).collect();
    assert_eq!(seconds, (0..12).map(|change| change * 300).collect::<Vec<_>>());
    assert_eq!(told, [None, None]);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_no_watch_ever_shows_is_followed_by_another_pass() {
    let written = json!({"metadata": {"name": "create", "resourceVersion": "5"}});
    let (client, log) = answering(move |_| Answer::Object(written.clone()));
    let writer = Writer::over(client, "versions");
    let shown = Cache::unwatched();
    let passes = passes_of(InVain::new(writer.clone(), &SeenVersion::default()), shown.clone(), writer);
    shown.apply(Apply(object("a", "1")));
    let began = Instant::now();
    for _ in 0..2 {
        while log.take().is_empty() {
            let next = passes.pass(Arc::new(object("a", "1"))).await;
            tokio::time::sleep(next.expect("another pass")).await;
        }
    }
    assert!(began.elapsed() < Duration::from_secs(70), "{:?}", began.elapsed());
}

/// Makes five writes, one every 40 s, and may hang then.
struct Slow {
    writer: Writer,
    hangs: bool,
}

impl Controller for Slow {
    type Kind = ConfigMap;
    type Observed = ();
    type Action = ();
    type Error = ApiError;

    async fn observe(&self, _: Arc<ConfigMap>, _: Backoffs) -> Result<(), ApiError> {
        Ok(())
    }

    fn decide(&self, (): &()) {}

    async fn act(&self, (): (), (): ()) -> Result<Requeue, ApiError> {
        let written = object_named("settings");
        let kind = WriteTarget::unwatched(ApiResource::erase::<ConfigMap>(&()));
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_secs(40)).await;
            let id = ObjectId::of(&written);
            self.writer.for_object(id).delete(&kind, id, DeleteParams::default()).await?;
        }
        if self.hangs {
            std::future::pending::<()>().await;
        }
        Ok(Requeue::OnChange)
    }
}

#[tokio::test(start_paused = true)]
async fn a_pass_whose_requests_are_answered_may_take_long_and_one_that_hangs_is_ended() {
    let shown = Cache::unwatched();
    for hangs in [false, true] {
        let (client, _) = answering(|_| Answer::Done);
        let writer = Writer::over(client, "versions");
        let slow = Slow { writer: writer.clone(), hangs };
        let passes = passes_of(slow, shown.clone(), writer);
        shown.apply(Apply(object("settings", "1")));
        let began = Instant::now();
        passes.pass(Arc::new(object("settings", "1"))).await;
        let took = if hangs { PASS_TIMEOUT } else { Duration::from_secs(5 * 40) };
        assert_eq!(began.elapsed().as_secs(), took.as_secs());
        let page = passes.memory.events.metrics.encode().unwrap();
        assert_eq!(page.contains(r#"result="timeout"} 1"#), hangs, "{page}");
    }
}

/// Fails, and then says that nothing was tried.
struct WaitsForItsTurn(Mutex<bool>);

impl Controller for WaitsForItsTurn {
    type Kind = ConfigMap;
    type Observed = ();
    type Action = ();
    type Error = Failure;

    async fn observe(&self, _: Arc<ConfigMap>, _: Backoffs) -> Result<(), Failure> {
        Ok(())
    }

    fn decide(&self, (): &()) {}

    async fn act(&self, (): (), (): ()) -> Result<Requeue, Failure> {
        let has_failed = std::mem::replace(&mut *self.0.lock().unwrap(), true);
        let refused = Failure::transient("Refused", "it is refused");
        if has_failed { Ok(Requeue::Untried(Duration::from_millis(500))) } else { Err(refused) }
    }
}

#[tokio::test(start_paused = true)]
async fn a_pass_in_which_nothing_was_tried_leaves_the_backoff_as_it_is() {
    let shown = Cache::unwatched();
    let passes = passes_of(WaitsForItsTurn(Mutex::default()), shown.clone(), writer("http://127.0.0.1:1"));
    let object = Arc::new(object("a", "1"));
    shown.apply(Apply(ConfigMap::clone(&object)));
    passes.pass(object.clone()).await;
    assert_eq!(passes.memory.backoff.len(), 1);
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(passes.pass(object).await, Some(Duration::from_millis(500)));
    assert_eq!(passes.memory.backoff.len(), 1, "its next failure counts as the first");
}

/// Takes a moment for each pass, and records their order.
#[derive(Default)]
struct InOrder(Mutex<Vec<String>>);

impl Controller for InOrder {
    type Kind = ConfigMap;
    type Observed = String;
    type Action = String;
    type Error = Failure;

    async fn observe(&self, object: Arc<ConfigMap>, _: Backoffs) -> Result<String, Failure> {
        Ok(object.metadata.name.clone().unwrap_or_default())
    }

    fn decide(&self, name: &String) -> String {
        name.clone()
    }

    async fn act(&self, _: String, name: String) -> Result<Requeue, Failure> {
        tokio::time::sleep(Duration::from_millis(10)).await;
        self.0.lock().unwrap().push(name);
        Ok(Requeue::OnChange)
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_is_asked_for_first_is_looked_at_first_however_many_come_after() {
    let filled = Cache::unwatched();
    let names: Vec<_> = (0..100).map(|number| format!("object-{number}")).collect();
    filled.apply(Event::Init);
    for name in &names {
        filled.apply(Event::InitApply(object_named(name)));
    }
    filled.apply(Event::InitDone);
    let passes = passes_of(InOrder::default(), filled.clone(), writer("http://127.0.0.1:1"));
    let reconciler = Reconciler { concurrency: 1, ..passes };
    reconciler.queue.open();
    for name in &names {
        reconciler.queue.notify("shop", name);
    }
    let (_phase, leading) = flag::channel(Phase::Leading);
    let work = reconciler.work(leading);
    assert!(timeout(Duration::from_secs(60), work).await.is_err(), "it ended");
    let order = reconciler.memory.controller.0.lock().unwrap();
    assert_eq!(order[..100], names[..]);
}
