use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    convert::Infallible,
    future::pending,
    io::{self, ErrorKind},
    time::Duration,
};

use parking_lot::Mutex;

use axum::{
    body::Body as Answered,
    http::{Request, Response},
};
use futures::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference};
use kube::{Client, api::GroupVersionKind, client::Body, discovery::ApiResource};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::*;
use crate::{ApiError, Cause, Failure, PrunedObject, Verb, decode::Lenient, object::ObjectId};

/// An answer of the API server.
#[derive(Clone)]
enum Answer {
    List(&'static str, Vec<Value>),
    /// A page of a list, after which another one follows.
    Page(Vec<Value>),
    Refused(u16),
    Silence,
    /// These events, and then silence forever.
    Events(Vec<Value>),
    /// These events, and then the end.
    Ended(Vec<Value>),
    /// A bookmark, and the end after so many seconds.
    EndedAfter(u64),
    /// A bookmark, and a broken connection after so many seconds.
    CutAfter(u64),
}

/// An API server that gives the answers of a script in turn, and is then silent; it records the requests.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    answers: VecDeque<Answer>,
    asked: Vec<Asked>,
}

/// The time and the path of a request.
type Asked = (Instant, String);

impl Server {
    fn that_answers(answers: impl IntoIterator<Item = Answer>) -> Self {
        let server = Self::default();
        server.0.lock().answers.extend(answers);
        server
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let answer = move |request: Request<Body>| {
            let (server, path) = (server.clone(), request.uri().to_string());
            async move { Ok::<_, Infallible>(server.answer(path).await) }
        };
        Client::new(tower::service_fn(answer), "default")
    }

    async fn answer(&self, path: String) -> Response<Answered> {
        let next = {
            let mut script = self.0.lock();
            script.asked.push((Instant::now(), path));
            script.answers.pop_front()
        };
        match next.unwrap_or(Answer::Silence) {
            Answer::List(version, items) => {
                let list = json!({
                    "kind": "ConfigMapList", "apiVersion": "v1",
                    "metadata": {"resourceVersion": version}, "items": items,
                });
                Response::new(Answered::from(list.to_string()))
            }
            Answer::Page(items) => {
                let list = json!({"metadata": {"resourceVersion": "1", "continue": "more"}, "items": items});
                Response::new(Answered::from(list.to_string()))
            }
            Answer::Refused(code) => {
                let status = json!({"kind": "Status", "status": "Failure", "message": "no", "code": code});
                let mut response = Response::new(Answered::from(status.to_string()));
                *response.status_mut() = code.try_into().unwrap();
                response
            }
            Answer::Events(events) => {
                let lines = events.into_iter().map(|event| Ok::<_, Infallible>(format!("{event}\n")));
                Response::new(Answered::from_stream(stream::iter(lines).chain(stream::pending())))
            }
            Answer::Ended(events) => {
                let lines = events.into_iter().map(|event| format!("{event}\n"));
                Response::new(Answered::from(lines.collect::<String>()))
            }
            Answer::EndedAfter(seconds) => Response::new(bookmark_and_end(seconds, Ok(String::new()))),
            Answer::CutAfter(seconds) => {
                Response::new(bookmark_and_end(seconds, Err(ErrorKind::ConnectionReset.into())))
            }
            Answer::Silence => pending().await,
        }
    }

    fn asked(&self) -> Vec<Asked> {
        self.0.lock().asked.clone()
    }

    fn caches(&self, watches: &Watches) -> Arc<Cache<Map>> {
        let watch = Watch::<Lenient<ConfigMap>>::all(&self.client(), &());
        watches.cache(watch, |Lenient(map)| Map::of(map), |_| {})
    }
}

/// The row of a `ConfigMap`.
#[derive(Debug, PartialEq)]
struct Map {
    uid: String,
    value: String,
}

impl Map {
    fn of(map: ConfigMap) -> Self {
        let value = map.data.and_then(|mut data| data.remove("k")).unwrap_or_default();
        Self { uid: map.metadata.uid.unwrap_or_default(), value }
    }
}

impl Row for Map {
    fn id(&self) -> ObjectId<'_> {
        ObjectId { namespace: "", name: &self.uid, uid: &self.uid }
    }
    fn index_key(&self) -> Option<&str> {
        None
    }
}

fn map(uid: &str, version: u32, data: &Value) -> Value {
    let odd = json!([{"manager": "other", "time": "9999-12-31T23:59:59Z"}]);
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": uid, "uid": uid, "resourceVersion": version.to_string(), "managedFields": odd},
    })
}

fn good(uid: &str, version: u32, value: &str) -> Value {
    map(uid, version, &json!({"k": value}))
}

fn bad(uid: &str, version: u32) -> Value {
    map(uid, version, &json!(7))
}

fn changed(type_: &str, object: &Value) -> Value {
    json!({"type": type_, "object": object})
}

fn bookmark(version: &str) -> Value {
    let metadata = json!({"resourceVersion": version});
    changed("BOOKMARK", &json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}))
}

fn kept(cache: &Cache<Map>) -> Vec<(String, String)> {
    let mut rows: Vec<_> =
        cache.filter(|_| true).iter().map(|map| (map.uid.clone(), map.value.clone())).collect();
    rows.sort();
    rows
}

/// Waits until a cache holds these.
async fn until_kept(cache: &Cache<Map>, wanted: &[(&str, &str)]) {
    let wanted: Vec<_> = wanted.iter().map(|(uid, value)| ((*uid).to_owned(), (*value).to_owned())).collect();
    let look = async {
        while kept(cache) != wanted {
            sleep(Duration::from_millis(10)).await;
        }
    };
    let limit = Duration::from_secs(600);
    assert!(timeout(limit, look).await.is_ok(), "{:?} instead of {wanted:?}", kept(cache));
}

/// What watches report, and how often each object is reported with a mistake.
#[derive(Clone, Default)]
struct Reported(Arc<Mutex<Reports>>);

#[derive(Default)]
struct Reports {
    unreadable: usize,
    told: BTreeMap<(String, String), usize>,
    /// The API versions and kinds of those that are reported.
    kinds: BTreeSet<(Option<String>, Option<String>)>,
    mended: Vec<String>,
}

impl Report for Reported {
    fn failed(&self, _: &str) {}

    fn unreadable(&self, _: &str, count: usize) {
        self.0.lock().unreadable = count;
    }

    fn is_unreadable(&self, object: &ObjectReference, mistake: &str, failure: &Failure) {
        assert!(failure.message.contains(mistake), "{failure}");
        let name = object.name.clone().unwrap_or_default();
        self.0.lock().kinds.insert((object.api_version.clone(), object.kind.clone()));
        *self.0.lock().told.entry((name, mistake.to_owned())).or_default() += 1;
    }

    fn is_mended(&self, object: &ObjectReference, _: &str) {
        self.0.lock().mended.extend(object.name.clone());
    }
}

fn reporting() -> (Watches, Reported) {
    let reported = Reported::default();
    (Watches::new(Arc::new(reported.clone())), reported)
}

fn unreadable(reported: &Reported) -> usize {
    reported.0.lock().unreadable
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_is_counted_and_keeps_no_other_from_being_read() {
    let server = Server::that_answers([
        Answer::List("3", vec![good("a", 1, "x"), bad("b", 2), good("c", 3, "z")]),
        Answer::Events(vec![
            changed("MODIFIED", &bad("c", 4)),
            changed("MODIFIED", &good("a", 5, "new")),
            changed("ADDED", &bad("d", 6)),
            changed("MODIFIED", &good("b", 7, "mended")),
        ]),
    ]);
    let (watches, reported) = reporting();
    let cache = server.caches(&watches);
    // An object that was readable before keeps its last state.
    until_kept(&cache, &[("a", "new"), ("b", "mended"), ("c", "z")]).await;
    assert_eq!(unreadable(&reported), 2);
    assert_eq!(cache.watch().problem(), None);
}

/// The items of a list of a built-in kind do not say theirs.
#[tokio::test(start_paused = true)]
async fn an_item_of_a_list_that_cannot_be_read_is_reported_with_the_version_and_the_kind_that_are_watched() {
    let mut item = bad("a", 1);
    for field in ["apiVersion", "kind"] {
        item.as_object_mut().unwrap().remove(field);
    }
    let server = Server::that_answers([
        Answer::List("1", vec![item]),
        Answer::Events(vec![changed("MODIFIED", &bad("a", 2)), changed("ADDED", &good("b", 3, "x"))]),
    ]);
    let (watches, reported) = reporting();
    let watch = Watch::<Lenient<ConfigMap>>::all(&server.client(), &()).called("ConfigMap of the shop");
    let cache = watches.cache(watch, |Lenient(map)| Map::of(map), |_| {});
    until_kept(&cache, &[("b", "x")]).await;
    let [version, kind] = ["v1", "ConfigMap"].map(|text| Some(text.to_owned()));
    assert_eq!(reported.0.lock().kinds, BTreeSet::from([(version, kind)]));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_any_more_does_not_look_deleted_in_a_new_list_and_goes_when_it_is() {
    let expired = json!({"type": "ERROR", "object": {"status": "Failure", "code": 410}});
    let server = Server::that_answers([
        Answer::List("2", vec![good("a", 1, "x"), good("b", 2, "y")]),
        Answer::Events(vec![expired]),
        Answer::List("4", vec![bad("a", 3), good("b", 4, "new")]),
        Answer::Events(vec![]),
    ]);
    let (watches, reported) = reporting();
    let cache = server.caches(&watches);
    until_kept(&cache, &[("a", "x"), ("b", "new")]).await;
    assert_eq!(unreadable(&reported), 1);
    drop(cache);

    let server = Server::that_answers([
        Answer::List("2", vec![good("a", 1, "x"), good("b", 2, "y")]),
        Answer::Events(vec![changed("MODIFIED", &bad("a", 3)), changed("DELETED", &bad("a", 4))]),
    ]);
    let cache = server.caches(&watches);
    until_kept(&cache, &[("b", "y")]).await;
    assert_eq!(unreadable(&reported), 0);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_is_told_again_and_again_until_something_else_is_wrong_with_it() {
    let expired = changed("ERROR", &json!({"status": "Failure", "code": 410}));
    let otherwise = map("a", 5, &json!({"k": 7}));
    let server = Server::that_answers([
        Answer::List("1", vec![bad("a", 1)]),
        Answer::Events(vec![changed("MODIFIED", &bad("a", 2)), expired.clone()]),
        Answer::List("3", vec![bad("a", 3)]),
        Answer::Events(vec![changed("MODIFIED", &otherwise), expired]),
        Answer::List("6", vec![good("b", 6, "x")]),
        Answer::Events(vec![]),
    ]);
    let (watches, reported) = reporting();
    let cache = server.caches(&watches);
    until_kept(&cache, &[("b", "x")]).await;
    assert_eq!(unreadable(&reported), 0, "it is gone");
    let Reports { told, mended, .. } = &*reported.0.lock();
    assert_eq!((told.len(), &**mended), (2, &["a".to_owned(), "a".to_owned()][..]), "{told:?}");
    assert!(told.values().all(|times| *times > 1), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_page_whose_text_is_too_long_is_asked_for_again_with_fewer_objects() {
    let large = "x".repeat(3_000_000);
    let server = Server::that_answers([
        Answer::List("1", ["a", "b", "c"].map(|uid| good(uid, 1, &large)).into()),
        Answer::List("1", vec![good("a", 1, "x")]),
        Answer::Events(vec![]),
    ]);
    let cache = server.caches(&Watches::default());
    until_kept(&cache, &[("a", "x")]).await;
    let asked = server.asked();
    assert!(asked[0].1.contains("limit=50") && asked[1].1.contains("limit=25"), "{asked:?}");
    assert_eq!(cache.watch().problem(), None);
}

#[tokio::test(start_paused = true)]
async fn the_pages_after_one_whose_text_is_too_long_have_fewer_objects_until_one_is_short() {
    let (large, medium) = ("x".repeat(3_000_000), "x".repeat(500_000));
    let server = Server::that_answers([
        Answer::Page(["a", "b", "c"].map(|uid| good(uid, 1, &large)).into()),
        Answer::Page(vec![good("a", 1, &medium)]),
        Answer::Page(vec![good("b", 1, "y")]),
        Answer::Page(vec![good("c", 1, "z")]),
        Answer::List("1", vec![good("d", 1, "w")]),
        Answer::Events(vec![]),
    ]);
    let cache = server.caches(&Watches::default());
    until_kept(&cache, &[("a", &medium), ("b", "y"), ("c", "z"), ("d", "w")]).await;
    for (page, limit) in [(2, 25), (3, 50), (4, 50)] {
        let next = &server.asked()[page].1;
        assert!(next.contains(&format!("limit={limit}&")) && next.contains("continue=more"), "{next}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_is_read_however_long_its_text_is() {
    let large = "x".repeat(9_000_000);
    let list = || Answer::List("1", vec![good("a", 1, &large)]);
    let server =
        Server::that_answers([list(), list(), list(), list(), list(), list(), Answer::Events(vec![])]);
    let cache = server.caches(&Watches::default());
    until_kept(&cache, &[("a", &large)]).await;
    let limit = |number: u32| server.asked()[5].1.contains(&format!("limit={number}"));
    assert!(limit(1) && !limit(12), "{:?}", server.asked());
}

#[tokio::test(start_paused = true)]
async fn a_page_that_does_not_come_is_given_up_and_asked_for_again() {
    let server = Server::that_answers([
        Answer::Silence,
        Answer::List("1", vec![good("a", 1, "x")]),
        Answer::Events(vec![]),
    ]);
    let watches = Watches::default();
    let cache = server.caches(&watches);
    sleep(Duration::from_secs(59)).await;
    assert!(cache.watch().problem().unwrap().contains("waiting for the first list"));
    until_kept(&cache, &[("a", "x")]).await;
    assert_eq!((server.asked().len() >= 2, cache.watch().problem()), (true, None));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_alive_before_it_is_answered_and_a_watch_that_never_starts_makes_the_process_unready() {
    let server = Server::that_answers([Answer::List("1", vec![]), Answer::Refused(500)]);
    let watches = Watches::default();
    let cache = server.caches(&watches);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(watches.unready(), [""; 0], "the list is complete");
    for _ in 0..10 {
        sleep(Duration::from_secs(60)).await;
        assert_eq!(watches.unready().len(), 1);
        assert!(cache.watch().problem().unwrap().contains("did not answer within 30 s"));
    }
    assert_eq!(*watches.requeue_epoch.borrow(), 1, "only the first list is news");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_nobody_answers_ends_the_process_after_minutes() {
    let watches = Watches::default();
    let _cache = Server::default().caches(&watches);
    let beat = async || {
        for _ in 0..20 {
            sleep(Duration::from_secs(10)).await;
        }
    };
    beat().await;
    assert_eq!(watches.stalled(), None);
    beat().await;
    assert!(watches.stalled().unwrap().starts_with("ConfigMap: the list request has not been answered"));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_served_again_is_listed_anew_within_seconds_and_never_resumed() {
    let mut answers = vec![Answer::List("5", vec![good("old", 5, "x")]), Answer::Refused(404)];
    answers.extend((0..30).map(|_| Answer::Refused(404)));
    answers.extend([Answer::List("90", vec![good("new", 90, "y")]), Answer::Events(vec![])]);
    let server = Server::that_answers(answers);
    let cache = server.caches(&Watches::default());
    until_kept(&cache, &[("new", "y")]).await;
    let asked = server.asked();
    let resumed = asked.iter().filter(|(_, path)| path.contains("resourceVersion=5")).count();
    assert_eq!(resumed, 1, "{asked:?}");
    let pauses = asked.windows(2).map(|two| two[1].0.duration_since(two[0].0));
    assert!(pauses.max().unwrap() < Duration::from_secs(3), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_always_ends_at_once_is_not_begun_hot() {
    let end = || Answer::Events(vec![json!({"type": "ERROR", "object": {"status": "Failure", "code": 410}})]);
    let server = Server::that_answers((0..1_000).flat_map(|_| [Answer::List("1", vec![]), end()]));
    let _cache = server.caches(&Watches::default());
    sleep(Duration::from_secs(60)).await;
    assert!(server.asked().len() < 40, "{}", server.asked().len());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_starts_and_breaks_at_once_each_time_does_not_work_until_one_lasts() {
    let failure = json!({"status": "Failure", "code": 500, "message": "etcdserver: no leader"});
    let version = Answer::List("5", vec![]);
    let broken = [Answer::Ended(vec![]), Answer::Ended(vec![changed("ERROR", &failure)]), version.clone()];
    let mut answers = vec![version];
    answers.extend(broken.into_iter().cycle().take(18));
    answers.push(Answer::Events(vec![]));
    let server = Server::that_answers(answers);
    let watches = Watches::default();
    let cache = server.caches(&watches);
    sleep(Duration::from_secs(60)).await;
    assert!(cache.watch().problem().unwrap().contains("ConfigMap cannot be watched"));
    assert_eq!(watches.unready().len(), 1);
    sleep(Duration::from_secs(45)).await;
    assert_eq!((cache.watch().problem(), watches.unready().len()), (None, 0));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_at_once_but_shows_its_changes_works() {
    let mut answers = vec![Answer::List("5", vec![])];
    answers.extend((6..60).map(|version| Answer::Ended(vec![changed("ADDED", &good("a", version, "x"))])));
    let server = Server::that_answers(answers);
    let watches = Watches::default();
    let cache = server.caches(&watches);
    sleep(Duration::from_secs(60)).await;
    assert_eq!((cache.watch().problem(), kept(&cache).len()), (None, 1));
    assert!(server.asked().len() < 40, "{}", server.asked().len());
}

fn bookmark_and_end(seconds: u64, end: io::Result<String>) -> Answered {
    let bookmark = json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "6"}}});
    let end = sleep(Duration::from_secs(seconds)).map(|()| end);
    Answered::from_stream(stream::iter([Ok(format!("{bookmark}\n"))]).chain(stream::once(end)))
}

/// Whether each of the requests that get these answers is a list.
async fn lists(
    watch: impl FnOnce(Watch<PrunedObject>) -> Watch<PrunedObject>,
    group: &str,
    answers: &[Answer],
) -> Vec<bool> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", "Shop"));
    let server = Server::that_answers(answers.iter().cloned());
    let watch = watch(Watch::all(&server.client(), &kind));
    let _watch = Watches::default().watch_changes(watch, |_| {});
    sleep(Duration::from_secs(200)).await;
    server.asked().iter().take(answers.len()).map(|(_, path)| !path.contains("watch=")).collect()
}

/// An API server ends the watches of a kind when it has taken over a new definition.
#[tokio::test(start_paused = true)]
async fn what_may_have_a_new_definition_is_listed_again_after_a_watch_that_ends_early() {
    let list = || Answer::List("5", vec![]);
    let early = [list(), Answer::EndedAfter(50), list()];
    assert_eq!(lists(|watch| watch, "shops.example", &early).await, [true, false, true]);
    let others = [list(), Answer::EndedAfter(50), Answer::Events(vec![])];
    assert_eq!(lists(|watch| watch, "apps", &others).await, [true, false, false], "it has no definition");
    let metadata = lists(Watch::metadata_only, "shops.example", &others).await;
    assert_eq!(metadata, [true, false, false], "they do not depend on it");
    for other_end in [Answer::EndedAfter(60), Answer::CutAfter(50)] {
        let resumed = [list(), other_end, Answer::Events(vec![])];
        assert_eq!(lists(|watch| watch, "shops.example", &resumed).await, [true, false, false]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_former_definition_refused_is_tried_again_after_the_list_by_the_new_one() {
    for (end, epochs) in [(Answer::EndedAfter(50), 2), (Answer::EndedAfter(60), 1)] {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("shops.example", "v1", "Shop"));
        let list = || Answer::List("5", vec![]);
        let server = Server::that_answers([list(), end, list(), Answer::Events(vec![])]);
        let watches = Watches::default();
        let watch: Watch<PrunedObject> = Watch::all(&server.client(), &kind);
        let _watch = watches.watch_changes(watch, |_| {});
        sleep(Duration::from_secs(100)).await;
        assert_eq!(*watches.requeue_epoch.borrow(), epochs);
    }
}

#[tokio::test(start_paused = true)]
async fn data_that_were_restored_from_a_backup_are_listed_after_a_minute_of_silence() {
    let server = Server::that_answers([
        Answer::List("1000", vec![good("a", 1000, "x"), good("gone", 900, "x")]),
        Answer::Events(vec![]),
        Answer::List("500", vec![]),
        Answer::List("500", vec![good("a", 400, "older")]),
        Answer::Events(vec![changed("ADDED", &good("b", 501, "y"))]),
    ]);
    let watches = Watches::default();
    let cache = server.caches(&watches);
    until_kept(&cache, &[("a", "x"), ("gone", "x")]).await;
    sleep(Duration::from_secs(30)).await;
    assert!(cache.watch().seen_version().version() >= 1000);
    until_kept(&cache, &[("a", "older"), ("b", "y")]).await;
    assert!(server.asked()[4].1.contains("resourceVersion=500"), "{:?}", server.asked());
    assert!(cache.watch().seen_version().version() < 1000, "what was written before will never be shown");
    assert_eq!((cache.watch().problem(), *watches.requeue_epoch.borrow()), (None, 1));
}

/// The server would soon reach the version, and show nothing of what was created before.
#[tokio::test(start_paused = true)]
async fn data_that_were_restored_while_the_server_did_not_answer_are_listed_at_once() {
    let server = Server::that_answers([
        Answer::List("1000", vec![good("gone", 900, "x")]),
        Answer::Ended(vec![]),
        // By a balancer.
        Answer::Refused(503),
        Answer::Refused(504),
        Answer::Refused(504),
        Answer::List("990", vec![]),
        Answer::List("990", vec![good("a", 980, "y")]),
    ]);
    let cache = server.caches(&Watches::default());
    until_kept(&cache, &[("a", "y")]).await;
    let asked = server.asked();
    assert!(asked[6].0 - asked[0].0 < Duration::from_secs(10), "{asked:?}");
}

/// Not every storage reports its progress.
#[tokio::test(start_paused = true)]
async fn a_kind_at_rest_is_not_listed_again() {
    let server = Server::that_answers([
        Answer::List("5", vec![good("a", 5, "x")]),
        Answer::Events(vec![]),
        Answer::List("7", vec![]),
        Answer::Events(vec![]),
    ]);
    let cache = server.caches(&Watches::default());
    sleep(Duration::from_secs(100)).await;
    until_kept(&cache, &[("a", "x")]).await;
    let asked = server.asked();
    assert!(asked[2].1.contains("limit=1&") || asked[2].1.ends_with("limit=1"), "{asked:?}");
    assert!(asked[3].1.contains("resourceVersion=5") && asked.len() == 4, "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_shows_its_progress_is_resumed_without_a_list() {
    let mut answers = vec![Answer::List("5", vec![])];
    answers.extend(["6", "7", "8"].map(|version| Answer::Events(vec![bookmark(version)])));
    let server = Server::that_answers(answers);
    let _cache = server.caches(&Watches::default());
    sleep(Duration::from_secs(150)).await;
    let asked = server.asked();
    let is_watch = |(_, path): &Asked| path.contains("watch=true");
    assert!(asked.len() == 4 && asked[1..].iter().all(is_watch), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_reader_waits_for_its_write_until_a_list_or_a_bookmark_is_as_new() {
    let server = Server::that_answers([Answer::List("5", vec![]), Answer::Events(vec![bookmark("9")])]);
    let cache = server.caches(&Watches::default());
    assert_eq!(cache.watch().seen_version().version(), 0);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(cache.watch().seen_version().version(), 9);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_what_a_watch_that_ended_would_have_shown() {
    let watches = Watches::default();
    let cache = Server::default().caches(&watches);
    let seen = cache.watch().seen_version().clone();
    assert!(seen.is_watched());
    drop(cache);
    assert!(!seen.is_watched());
}

#[tokio::test(start_paused = true)]
async fn a_first_list_is_waited_for_until_it_comes_or_fails_or_takes_too_long() {
    let watches = Watches::default();
    let handle = |status: &WatchStatus| WatchHandle {
        state: status.subscribe(),
        seen: SeenVersion::default(),
        _task: AbortOnDropHandle::new(tokio::spawn(pending())),
    };
    let waited = async |watch: &WatchHandle| {
        let since = Instant::now();
        watch.first_list(Duration::from_secs(2)).await;
        since.elapsed()
    };
    let [slow, mut pods, mut sets] =
        ["Slow", "Pod", "Set"].map(|kind| watches.status(kind, ReadinessRule::Always));
    let handles = [&slow, &pods, &sets].map(handle);
    assert_eq!(waited(&handles[0]).await, Duration::from_secs(2));
    let soon = async {
        sleep(Duration::from_millis(300)).await;
        pods.synced();
        sets.failed(ApiError::new(Verb::Watch, ("Set", ""), Cause::KindNotServed, ""));
    };
    let (of_pods, of_sets, ()) = tokio::join!(waited(&handles[1]), waited(&handles[2]), soon);
    assert_eq!([of_pods, of_sets], [Duration::from_millis(300); 2]);
    assert_eq!(waited(&handles[1]).await, Duration::ZERO);
}
