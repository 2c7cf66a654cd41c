//! Detects writes that are repeated again and again, because they have no effect or somebody undoes them. Each pass
//! with such a write succeeds, so no backoff would ever slow it down.
//!
//! A write that undoes somebody's change is repeated only while somebody changes the object again, so fewer are too many.

use std::{
    borrow::Cow,
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use axum::http::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::{api::GetParams, core::PartialObjectMeta};
use memchr::{memchr, memmem};
use operator_watch::{Failure, Live};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use tokio::time::Instant;

use super::{ObjectWriter, send::Target};
use crate::report::failures::REPEATED_WRITES;

/// How often a write may be repeated.
struct Limit {
    /// Number of times in quick succession.
    burst: u32,
    /// Time after which another repetition is allowed.
    interval: Duration,
    /// Time without the write after which another repetition is allowed again once there were too many.
    forget_after: Duration,
}

/// The limit of the very same write.
const SAME_WRITE: Limit =
    Limit { burst: 30, interval: Duration::from_secs(2), forget_after: Duration::from_secs(300) };
/// The limit of writes that undo somebody's changes of an object. Its interval is longer than their pace, so that a fight at
/// this pace is still one.
const UNDOING: Limit = Limit { burst: 5, interval: Duration::from_secs(120), forget_after: Duration::ZERO };
/// The pace of writes that have undone changes too often.
const UNDOING_PACE: Duration = Duration::from_secs(60);
/// Number of remembered writes above which old ones are removed.
const PRUNE_THRESHOLD: usize = 1_024;

/// The recent writes.
#[derive(Default)]
pub(crate) struct RepeatedWrites(Mutex<State>);

#[derive(Default)]
struct State {
    /// By a digest of the object on whose behalf the write was made, its place and its content.
    writes: HashMap<u64, Level>,
    /// The number of remembered writes above which some are forgotten.
    limit: usize,
}

/// The leaky bucket of a write.
struct Level {
    /// When it is empty, if no other write fills it.
    empty_at: Instant,
    /// Until when each write is one too many, if this one was.
    full_until: Option<Instant>,
}

/// The identity of a write among its repetitions.
#[derive(Clone, Copy)]
pub(crate) struct Repetition {
    digest: u64,
    limit: &'static Limit,
}

impl Repetition {
    /// A write on behalf of an object. All those that undo a change of the same object count together.
    pub fn of(whose: &str, request: &Request<Vec<u8>>, undoes: bool) -> Self {
        let mut hasher = DefaultHasher::new();
        whose.hash(&mut hasher);
        if undoes {
            request.uri().path().hash(&mut hasher);
        } else {
            write_digest(request).hash(&mut hasher);
        }
        Self { digest: hasher.finish(), limit: if undoes { &UNDOING } else { &SAME_WRITE } }
    }
}

/// A write that was made too often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repeated {
    /// Its verb.
    pub verb: &'static str,
    /// The kind and the name of the object that it writes.
    pub kind: String,
    pub name: String,
    /// The field whose change by somebody else it undoes, if it does, and the manager that has changed it, if it is known.
    pub undoes: Option<(String, Option<String>)>,
}

impl Repeated {
    /// The failure to report. What undoes a change is not retried earlier than the limit allows.
    pub fn failed(&self) -> Failure {
        let Self { verb, kind, name, undoes } = self;
        let object = format!("{kind} {name:?}");
        let message = match undoes {
            Some((field, by)) => {
                let (by, who) = match by {
                    Some(by) => (format!("the field manager {by:?}"), ""),
                    None => (
                        "somebody else".to_owned(),
                        " (find it with kubectl get --output yaml --show-managed-fields, or in the audit log of the API server)",
                    ),
                };
                format!(
                    "{by} keeps changing {field} of {object}, which is changed back once a minute; make the change in the spec or template that sets this field, or stop the other writer{who}"
                )
            }
            None => format!(
                "the same {verb} of {object} is repeated again and again: either it has no effect, or somebody undoes it; it is retried with exponential backoff, down to once a minute; find the other writer, for example with kubectl get --show-managed-fields"
            ),
        };
        let retry_after = undoes.as_ref().map(|_| UNDOING_PACE);
        Failure { retry_after, ..Failure::transient(REPEATED_WRITES, message) }
    }
}

impl RepeatedWrites {
    /// Records a write. True if it was repeated too often.
    pub fn record(&self, write: Repetition) -> bool {
        let (mut state, now) = (self.0.lock(), Instant::now());
        if state.writes.len() > state.limit {
            state.writes.retain(|_, level| !level.is_over(now));
            state.limit = PRUNE_THRESHOLD.max(2 * state.writes.len());
        }
        let next = state.next(write, now);
        let is_too_often = next.full_until.is_some();
        state.writes.insert(write.digest, next);
        is_too_often
    }

    /// Whether a write will have been repeated too often once it is made.
    pub fn is_too_often(&self, write: Repetition) -> bool {
        self.0.lock().next(write, Instant::now()).full_until.is_some()
    }
}

impl State {
    /// The level after a write.
    fn next(&self, write: Repetition, now: Instant) -> Level {
        let Limit { burst, interval, forget_after } = *write.limit;
        let last = self.writes.get(&write.digest);
        let empty_at = last.map_or(now, |last| last.empty_at.max(now)) + interval;
        let was_full = last.is_some_and(|last| last.full_until.is_some_and(|until| until >= now));
        let is_full = was_full || empty_at > now + interval * burst;
        let full_until = is_full.then(|| now + forget_after);
        Level { empty_at: empty_at.min(now + interval * (burst + 1)), full_until }
    }
}

impl Level {
    fn is_over(&self, now: Instant) -> bool {
        self.empty_at.max(self.full_until.unwrap_or(now)) <= now
    }
}

/// A digest of the place and content of a write. It ignores the tests of a JSON patch, and all fields of the names of the
/// transition times of conditions and of the version that a write relies on. The content may be large, so that it is not decoded.
fn write_digest(request: &Request<Vec<u8>>) -> u64 {
    #[derive(Deserialize)]
    struct Operation<'o> {
        op: Cow<'o, str>,
        path: Cow<'o, str>,
        #[serde(borrow)]
        value: Option<&'o RawValue>,
    }

    let mut hasher = DefaultHasher::new();
    (request.method(), request.uri()).hash(&mut hasher);
    if let Ok(operations) = serde_json::from_slice::<Vec<Operation<'_>>>(request.body()) {
        for Operation { op, path, value } in operations.iter().filter(|operation| operation.op != "test") {
            let value = value.map(|value| without(b"\"lastTransitionTime\":", value.get().as_bytes()));
            (op, path, value).hash(&mut hasher);
        }
    } else {
        for part in without(b"\"resourceVersion\":", request.body()) {
            without(b"\"lastTransitionTime\":", part).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// The parts of a JSON text between the values of a field that are texts without escapes.
fn without<'t>(field: &[u8], mut json: &'t [u8]) -> Vec<&'t [u8]> {
    let mut parts = Vec::new();
    while let Some(at) = memmem::find(json, field) {
        let (before, value) = json.split_at(at + field.len());
        parts.push(before);
        let text = value.trim_ascii_start().strip_prefix(b"\"");
        let end = text.and_then(|text| Some(&text[memchr(b'"', text)?..]));
        json = end.unwrap_or(value);
    }
    parts.push(json);
    parts
}

impl ObjectWriter<'_> {
    /// The manager that wrote a field of an object last, other than this one; `None` if that is not known.
    pub(super) async fn last_writer(&self, target: &Target<'_>, field: &str) -> Option<String> {
        let request = target.request().get_metadata(&target.name, &GetParams::default()).ok()?;
        let found: PartialObjectMeta = Live::in_time(self.writer.client.request(request)).await.ok()?;
        last_writer(field, found.metadata.managed_fields?, self.writer.manager)
    }
}

fn last_writer(field: &str, entries: Vec<ManagedFieldsEntry>, own: &str) -> Option<String> {
    let others = entries.into_iter().filter(|entry| entry.manager.as_deref() != Some(own));
    let writers = others.filter(|entry| entry.fields_v1.as_ref().is_some_and(|fields| has(&fields.0, field)));
    writers.max_by_key(|entry| entry.time.as_ref().map(|time| time.0))?.manager
}

/// Whether a set of fields has a field, or a whole of which it is a part. Names may themselves contain dots.
fn has(fields: &Value, field: &str) -> bool {
    fields.as_object().into_iter().flatten().any(|(name, below)| {
        let Some(rest) = name.strip_prefix("f:").and_then(|name| field.strip_prefix(name)) else {
            return false;
        };
        let is_whole = || below.as_object().is_some_and(Map::is_empty);
        rest.is_empty() || rest.strip_prefix('.').is_some_and(|rest| is_whole() || has(below, rest))
    })
}

#[cfg(test)]
mod tests {
    use axum::http::header::CONTENT_TYPE;
    use serde_json::json;

    use super::*;

    impl RepeatedWrites {
        /// Records a write of this content. True if it was repeated too often.
        fn add(&self, whose: &str, content: u64) -> bool {
            let request =
                Request::patch("/api/v1/pods/web-1").body(content.to_string().into_bytes()).unwrap();
            self.record(Repetition::of(whose, &request, false))
        }
    }

    fn patch(body: &str) -> u64 {
        let request = Request::patch("/api/v1/pods/web").header(CONTENT_TYPE, "application/json-patch+json");
        write_digest(&request.body(body.as_bytes().to_vec()).unwrap())
    }

    #[test]
    fn a_status_of_which_only_the_time_of_a_transition_is_new_says_the_same() {
        let status = |ready: &str, time: &str| {
            let request = Request::patch("/apis/catena.dev/v1alpha1/namespaces/a/basicdeployments/b/status");
            let body = format!(
                r#"{{"status": {{"conditions": [{{"type": "Ready", "status": "{ready}", "lastTransitionTime": "{time}"}}]}}}}"#
            );
            write_digest(&request.body(body.into_bytes()).unwrap())
        };
        assert_eq!(status("True", "then"), status("True", "now"));
        assert_ne!(status("True", "then"), status("False", "then"));
        let replaced = |ready: &str, time: &str| {
            let condition =
                format!(r#"{{"type": "Ready", "status": "{ready}", "lastTransitionTime": "{time}"}}"#);
            patch(&format!(r#"[{{"op": "replace", "path": "/status/conditions/0", "value": {condition}}}]"#))
        };
        assert_eq!(replaced("True", "then"), replaced("True", "now"));
        assert_ne!(replaced("True", "then"), replaced("False", "then"));
    }

    #[test]
    fn a_write_that_relies_on_another_version_says_the_same() {
        let apply = |version: &str, image: &str| {
            let body = format!(
                r#"{{"metadata": {{"uid": "u", "resourceVersion": "{version}"}}, "spec": {{"image": "{image}"}}}}"#
            );
            write_digest(&Request::patch("/apis/catena.dev/v1alpha1/a").body(body.into_bytes()).unwrap())
        };
        assert_eq!(apply("1", "nginx"), apply("2", "nginx"));
        assert_ne!(apply("1", "nginx"), apply("1", "httpd"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_very_same_write_again_and_again_is_too_often_until_it_is_quiet() {
        let writes = RepeatedWrites::default();
        for _ in 0..30 {
            assert!(!writes.add("a", 1));
        }
        assert!(writes.add("a", 1));
        let forgotten = SAME_WRITE.forget_after;
        tokio::time::advance(forgotten).await;
        assert!(writes.add("a", 1), "it goes on, only more slowly");
        tokio::time::advance(forgotten + SAME_WRITE.interval).await;
        assert!(!writes.add("a", 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_rollout_of_a_thousand_pods_and_five_hundred_commands_write_often_and_are_not_slowed_down() {
        let writes = RepeatedWrites::default();
        for work in 0..5_000 {
            assert!(!writes.add("a", work));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_healed_now_and_then_is_not_slowed_down() {
        let writes = RepeatedWrites::default();
        for _ in 0..1_000 {
            assert!(!writes.add("a", 1));
            tokio::time::advance(SAME_WRITE.interval).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_some_minutes_after_many_is_undone_at_once() {
        let writes = RepeatedWrites::default();
        let is_too_often = || {
            let request = Request::patch("/api/v1/pods/web-1").body(Vec::new()).unwrap();
            writes.record(Repetition::of("a", &request, true))
        };
        assert_eq!([(); 8].map(|()| is_too_often()), [false, false, false, false, false, true, true, true]);
        for _ in 0..10 {
            tokio::time::advance(Duration::from_secs(240)).await;
            assert!(!is_too_often());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_write_for_another_object_is_another_one() {
        let writes = RepeatedWrites::default();
        for object in 0..100 {
            let object = object.to_string();
            assert!(!writes.add(&object, 1));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_long_ago_takes_no_memory() {
        let writes = RepeatedWrites::default();
        for work in 0..100_000 {
            writes.add("a", work);
            tokio::time::advance(Duration::from_millis(10)).await;
        }
        assert!(writes.0.lock().writes.len() <= 2 * PRUNE_THRESHOLD, "{}", writes.0.lock().writes.len());
    }

    #[test]
    fn what_a_patch_only_tests_does_not_make_it_another_one() {
        let with = |version: &str, value: &str| {
            patch(&format!(
                r#"[{{"op":"test","path":"/v","value":"{version}"}},{{"op":"add","path":"/f","value":"{value}"}}]"#
            ))
        };
        assert_eq!(with("1", "x"), with("2", "x"));
        assert_ne!(with("1", "x"), with("1", "y"));
    }

    fn entry(manager: &str, time: &str, fields: &Value) -> ManagedFieldsEntry {
        serde_json::from_value(json!({"manager": manager, "time": time, "fieldsV1": fields})).unwrap()
    }

    #[test]
    fn the_last_other_manager_of_the_very_field_is_named() {
        let replicas = json!({"f:spec": {"f:replicas": {}}});
        let others = json!({"f:spec": {"f:parameters": {".": {}, "f:env.A": {}}, "f:replicasets": {}}});
        let entries = || {
            vec![
                entry("own", "2026-01-01T00:00:09Z", &replicas),
                entry("edit", "2026-01-01T00:00:01Z", &replicas),
                entry("hpa", "2026-01-01T00:00:02Z", &replicas),
                entry("other", "2026-01-01T00:00:03Z", &others),
                entry("status", "2026-01-01T00:00:04Z", &json!({"f:status": {"f:replicas": {}}})),
            ]
        };
        let of = |field| last_writer(field, entries(), "own");
        assert_eq!(of("spec.replicas").as_deref(), Some("hpa"));
        assert_eq!(of("spec.parameters.env.A").as_deref(), Some("other"));
        assert_eq!(of("spec.parameters.env.B"), None, "nobody has it: it was removed");
    }

    #[test]
    fn the_manager_of_a_whole_is_that_of_its_parts() {
        let whole = vec![entry("apply", "2026-01-01T00:00:01Z", &json!({"f:spec": {"f:parameters": {}}}))];
        assert_eq!(last_writer("spec.parameters.image", whole, "own").as_deref(), Some("apply"));
        let list = json!({"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {"f:image": {}}}}});
        let list = vec![entry("apply", "2026-01-01T00:00:01Z", &list)];
        assert_eq!(last_writer("spec.containers", list, "own").as_deref(), Some("apply"));
    }
}
