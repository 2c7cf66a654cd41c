//! The row of a command.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use catena_api::keys;
use command_kinds::{Object, expiry::Expiry};
use jiff::{SignedDuration, Timestamp};
use operator_templates::{Expression, ExpressionError};
use operator_watch::{ObjectId, PrunedObject};
use serde_json::Value;

/// Longest time by which a command that ran can seem to have ended before its creation: the API server and its controller
/// write these times by different clocks. A command that is wrongly taken for a restored one may run without end, and one
/// that was restored so soon is merely kept, so this is generous.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(5);

/// The row of a command, besides its metadata.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandRow {
    /// The time of its deletion, or why that cannot be read; `None` in its present state: it has not finished, or has no TTL.
    pub expires_at: Result<Option<Timestamp>, Box<ExpressionError>>,
    /// The label or annotation that marks it as declared elsewhere.
    pub declared_by: Option<Box<str>>,
    /// Whether its annotation says that this very command is kept: it was created again after a deletion. One that was
    /// restored after its end is not, because it does not run: it may have been marked before its outcome was restored.
    pub is_kept: bool,
    /// Whether it ended clearly before its creation, so that it was restored from a backup and does not run again.
    pub is_restored: bool,
    /// A digest of its spec, to recognise it when it is re-created.
    pub spec: u64,
}

impl CommandRow {
    /// Reads an object of a kind. One that its filter leaves out, or that lacks a field that it reads, is no command, and never expires.
    #[must_use]
    pub fn of(object: PrunedObject, filter: Option<&Expression>, expiry: &Expiry) -> Self {
        let declared_by = expiry.declared_by.on(&object.metadata);
        let kept_uid =
            object.metadata.annotations.as_ref().and_then(|annotations| annotations.get(keys::KEPT));
        let is_marked = kept_uid.is_some() && kept_uid == object.metadata.uid.as_ref();
        let created = object.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let spec = digest(&object);
        let object = object.into_json();
        let is_command =
            filter.map_or(Ok(Some(true)), |filter| known(Object(&object).holds(filter).map(Some)));
        let ended = is_command.and_then(|is| if is == Some(true) { end(&object, expiry) } else { Ok(None) });
        // The TTL of a command that comes from a backup begins with its creation.
        let begin = |finished: Timestamp| created.map_or(finished, |created| created.max(finished));
        let is_restored = matches!(&ended, Ok(Some((finished, _)))
            if begin(*finished).duration_since(*finished) > MAX_CLOCK_SKEW);
        let expires_at = ended
            .map(|ended| ended.and_then(|(finished, ttl)| begin(finished).checked_add(ttl).ok()))
            .map_err(Box::new);
        Self { expires_at, declared_by, is_kept: is_marked && !is_restored, is_restored, spec }
    }
}

/// The time of its end and its TTL, if it has both. The fields of a status are absent until they are known, so an
/// expression that reads an absent one counts as null.
fn end(object: &Value, expiry: &Expiry) -> Result<Option<(Timestamp, SignedDuration)>, ExpressionError> {
    let variables = [("object", object)];
    let Some(seconds) = known(expiry.ttl_seconds.optional_int(&variables))? else { return Ok(None) };
    let Some(finished) = known(expiry.finished_at.optional_timestamp(&variables))? else { return Ok(None) };
    // A negative number means no TTL.
    Ok((seconds >= 0).then(|| (finished, SignedDuration::from_secs(seconds))))
}

fn known<T>(value: Result<Option<T>, ExpressionError>) -> Result<Option<T>, ExpressionError> {
    match value {
        Err(error) if error.missing().is_some() => Ok(None),
        value => value,
    }
}

/// A digest of everything except metadata and status, and the kind, which the items of a list of a built-in kind lack.
fn digest(object: &PrunedObject) -> u64 {
    let mut content = object.data.clone();
    if let Some(fields) = content.as_object_mut() {
        fields.retain(|key, _| !matches!(key.as_str(), "apiVersion" | "kind" | "status"));
    }
    blank(&mut content, ObjectId::of(object).uid);
    BuildHasherDefault::<DefaultHasher>::default().hash_one(content)
}

/// Removes the object's own uid, which the API server writes into the selector and the labels of a Job.
fn blank(value: &mut Value, uid: &str) {
    match value {
        Value::String(text) if text == uid => text.clear(),
        Value::Array(items) => items.iter_mut().for_each(|item| blank(item, uid)),
        Value::Object(fields) => fields.values_mut().for_each(|value| blank(value, uid)),
        _ => {}
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use operator_kit::run::Validate;
    use serde_json::json;

    use super::*;
    use crate::Settings;

    /// The default settings of the chart.
    pub fn shipped() -> Settings {
        let values: Value =
            serde_saphyr::from_str(include_str!("../../../charts/command-reaper/values.yaml")).unwrap();
        serde_json::from_value(json!({"kinds": values["kinds"], "declaredBy": values["declaredBy"]})).unwrap()
    }

    #[test]
    fn the_shipped_settings_are_valid() {
        let shipped = shipped();
        assert_eq!(shipped.validate(), Ok(()));
        assert!(!shipped.are_none());
        assert_eq!(shipped.listed.len(), 2);
    }

    fn settings(finished_at: &str, ttl_seconds: &str) -> Settings {
        filtered(None, finished_at, ttl_seconds)
    }

    fn filtered(filter: Option<&str>, finished_at: &str, ttl_seconds: &str) -> Settings {
        serde_json::from_value(json!({
            "declaredBy": {"annotations": ["tool/tracks"]},
            "kinds": [{
                "id": "tasks", "group": "example.com", "version": "v1", "resource": "tasks", "kind": "Task",
                "filter": filter,
                "expire": {
                    "finishedAt": finished_at, "ttlSeconds": ttl_seconds,
                    "declaredBy": {"labels": ["tool/instance"]},
                },
            }],
        }))
        .unwrap()
    }

    fn expiries(settings: &Settings) -> Vec<Expiry> {
        settings.listed.iter().filter_map(|kind| settings.expiry(kind)).collect()
    }

    fn read(settings: &Settings, object: Value) -> CommandRow {
        let filter = settings.listed[0].filter.as_ref();
        CommandRow::of(serde_json::from_value(object).unwrap(), filter, &expiries(settings)[0])
    }

    fn at(time: &str) -> Timestamp {
        time.parse().unwrap()
    }

    #[test]
    fn the_shipped_kinds_read_our_commands_as_jobs_are_read() {
        let command = |ttl: Value, completed: Value| {
            json!({
                "metadata": {"name": "restart", "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"targetRef": {"name": "web"}, "ttlSecondsAfterFinished": ttl},
                "status": {
                    "completionTime": completed, "conditions": [{"type": "Succeeded", "status": "False"}],
                },
            })
        };
        let finished = json!("2026-01-01T00:01:00Z");
        // A time from a restored or invented status.
        let mut unproven = command(json!(0), finished.clone());
        unproven["status"]["conditions"][0]["status"] = "Unknown".into();
        let mut only_timed = unproven.clone();
        only_timed["status"] = json!({ "completionTime": finished });
        let cases = [
            (command(json!(60), finished.clone()), Ok(Some(at("2026-01-01T00:02:00Z")))),
            (command(json!(0), finished.clone()), Ok(Some(at("2026-01-01T00:01:00Z")))),
            (command(Value::Null, finished.clone()), Ok(None)),
            (command(json!(60), Value::Null), Ok(None)),
            (unproven, Ok(None)),
            (only_timed, Ok(None)),
            (command(json!(-1), finished.clone()), Ok(None)),
            (command(json!(i64::MAX), finished), Ok(None)),
            (json!({"metadata": {"name": "new"}, "spec": {"ttlSecondsAfterFinished": 0}}), Ok(None)),
            (json!({"metadata": {"name": "new"}, "spec": {}}), Ok(None)),
        ];
        let settings = shipped();
        for reading in expiries(&settings) {
            for (object, expected) in &cases {
                let read = CommandRow::of(serde_json::from_value(object.clone()).unwrap(), None, &reading);
                assert_eq!(read.expires_at, *expected, "{:?}: {object}", reading.finished_at);
            }
        }
    }

    #[test]
    fn what_the_filter_of_its_kind_leaves_out_never_expires() {
        let of = |filter: Option<&str>, object: &Value| {
            read(&filtered(filter, "object.status.finished", "object.spec.ttl"), object.clone()).expires_at
        };
        let object = |spec: Value| json!({"metadata": {"name": "a"}, "spec": spec, "status": {"finished": "2026-01-01T00:00:00Z"}});
        let (restarts, due) = (Some("object.spec.type == 'Restart'"), Ok(Some(at("2026-01-01T00:01:00Z"))));
        let backup = object(json!({"ttl": 60, "type": "Backup"}));
        assert_eq!(of(None, &backup), due);
        assert_eq!(of(restarts, &backup), Ok(None));
        assert_eq!(of(restarts, &object(json!({"ttl": 60}))), Ok(None), "its type is not set");
        assert!(of(Some("object.spec.ttl"), &backup).is_err(), "the filter is wrong");
        assert_eq!(of(restarts, &object(json!({"ttl": 60, "type": "Restart"}))), due);
    }

    #[test]
    fn a_quoted_field_is_read_and_a_time_after_all_times_is_far() {
        let settings = settings("object.status.`finished-at`", "object.spec.`ttl-seconds`");
        let with = |finished: &str| {
            let spec = json!({"ttl-seconds": 60});
            let status = json!({"finished-at": finished});
            read(&settings, json!({"metadata": {"name": "a"}, "spec": spec, "status": status})).expires_at
        };
        assert_eq!(with("2026-01-01T00:00:00Z"), Ok(Some(at("2026-01-01T00:01:00Z"))));
        for far in ["9999-12-30T00:00:00Z", "9999-12-31T23:59:59Z"] {
            assert!(with(far).is_ok(), "{far}: {:?}", with(far));
        }
        assert!(with("someday").is_err());
    }

    #[test]
    fn a_command_that_a_tool_declares_is_told_from_one_that_a_person_made() {
        let settings = settings("null", "null");
        let with = |metadata: Value| read(&settings, json!({ "metadata": metadata })).declared_by;
        assert_eq!(with(json!({"name": "a", "labels": {"other": ""}})), None);
        assert_eq!(
            with(json!({"name": "a", "annotations": {"tool/tracks": ""}})),
            Some("tool/tracks".into())
        );
        assert_eq!(
            with(json!({"name": "a", "labels": {"tool/instance": "x"}})),
            Some("tool/instance".into())
        );
    }

    #[test]
    fn what_a_tool_makes_anew_each_time_is_not_declared_and_a_label_of_everything_is_no_mark() {
        let shipped = shipped();
        let declared_by = |metadata: Value| {
            let object = serde_json::from_value(json!({ "metadata": metadata })).unwrap();
            CommandRow::of(object, None, &expiries(&shipped)[0]).declared_by
        };
        let tracked = "argocd.argoproj.io/tracking-id";
        assert_eq!(declared_by(json!({"name": "a", "annotations": {tracked: "x"}})), Some(tracked.into()));
        for hook in ["argocd.argoproj.io/hook", "helm.sh/hook"] {
            let annotations = json!({tracked: "x", hook: "PostSync"});
            assert_eq!(declared_by(json!({"name": "a", "annotations": annotations})), None, "{hook}");
        }
        let generated = json!({"name": "a-x7", "generateName": "a-", "annotations": {tracked: "x"}});
        assert_eq!(declared_by(generated), None);
        let common = json!({"name": "a", "labels": {"app.kubernetes.io/instance": "shop"}});
        assert_eq!(declared_by(common), None);
    }

    #[test]
    fn only_the_very_command_that_was_marked_is_kept_and_no_copy_of_it() {
        let settings = settings("null", "null");
        let with = |uid: &str, kept: &str| {
            let annotations = json!({"catena.dev/kept": kept});
            read(&settings, json!({"metadata": {"name": "a", "uid": uid, "annotations": annotations}}))
                .is_kept
        };
        assert!(with("u1", "u1"));
        assert!(!with("u2", "u1"));
        assert!(!read(&settings, json!({"metadata": {"name": "a", "uid": "u1"}})).is_kept);
        assert!(!read(&settings, json!({"metadata": {"name": "a", "annotations": {}}})).is_kept);
    }

    #[test]
    fn a_command_that_ended_clearly_before_its_creation_was_restored_and_is_not_kept() {
        let settings = settings("object.status.completionTime", "60");
        let with = |ended: Option<&str>| {
            let metadata = json!({
                "name": "a", "uid": "u", "creationTimestamp": "2026-01-01T12:00:00Z",
                "annotations": {"catena.dev/kept": "u"},
            });
            read(&settings, json!({"metadata": metadata, "status": {"completionTime": ended}}))
        };
        for ended in ["2025-12-31T12:00:00Z", "2026-01-01T11:50:00Z", "2026-01-01T11:54:59Z"] {
            let CommandRow { is_restored, is_kept, .. } = with(Some(ended));
            assert!(is_restored && !is_kept, "{ended}");
        }
        for ended in
            [Some("2026-01-01T11:55:00Z"), Some("2026-01-01T12:00:00Z"), Some("2026-01-01T12:01:00Z"), None]
        {
            let CommandRow { is_restored, is_kept, .. } = with(ended);
            assert!(!is_restored && is_kept, "{ended:?}");
        }
    }

    #[test]
    fn jobs_are_read_by_their_conditions() {
        let settings = settings(
            "object.status.conditions.filter(c, c.type in ['Complete', 'Failed'] && c.status == 'True')\
             .map(c, c.lastTransitionTime)[?0].orValue(null)",
            "object.status.?succeeded.orValue(0) > 0 ? 600 : 86400",
        );
        let job = |conditions: Value, succeeded: u32| {
            let status = json!({"conditions": conditions, "succeeded": succeeded});
            read(&settings, json!({"metadata": {"name": "job"}, "status": status})).expires_at
        };
        let condition = |type_: &str| json!({"type": type_, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        assert_eq!(
            job(json!([condition("Suspended"), condition("Complete")]), 1),
            Ok(Some(at("2026-01-01T00:10:00Z")))
        );
        assert_eq!(job(json!([condition("Failed")]), 0), Ok(Some(at("2026-01-02T00:00:00Z"))));
        assert_eq!(job(json!([condition("Suspended")]), 0), Ok(None));
        assert_eq!(job(json!([]), 0), Ok(None));
    }

    #[test]
    fn a_job_is_known_again_though_the_api_server_wrote_its_uid_into_it() {
        let settings = settings("null", "null");
        let job = |uid: &str, image: &str| {
            let labels = json!({"batch.kubernetes.io/controller-uid": uid, "job-name": "dump"});
            json!({
                "metadata": {"name": "dump", "uid": uid},
                "spec": {
                    "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}},
                    "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"image": image}]}},
                },
            })
        };
        let first = read(&settings, job("u1", "a")).spec;
        let mut again = job("u2", "a");
        again["apiVersion"] = json!("batch/v1");
        again["kind"] = json!("Job");
        again["status"] = json!({"succeeded": 1});
        assert_eq!(read(&settings, again).spec, first);
        assert_ne!(read(&settings, job("u2", "b")).spec, first);
    }

    #[test]
    fn a_command_restored_from_a_backup_is_not_gone_before_anybody_saw_it() {
        let settings = settings("object.status.completionTime", "60");
        let restored = json!({
            "metadata": {"name": "old", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "status": {"completionTime": "2020-01-01T00:00:00Z"},
        });
        assert_eq!(read(&settings, restored).expires_at, Ok(Some(at("2026-01-01T00:01:00Z"))));
    }

    #[test]
    fn a_value_of_another_type_is_never_taken_for_a_time() {
        for (finished_at, ttl_seconds) in
            [("'soon'", "60"), ("true", "60"), ("'2026-01-01T00:00:00Z'", "'x'"), ("null", "1.5")]
        {
            let read = read(&settings(finished_at, ttl_seconds), json!({"metadata": {"name": "odd"}}));
            assert!(read.expires_at.is_err(), "{finished_at}, {ttl_seconds}: {read:?}");
        }
    }
}
