//! Writes of statuses. A status that belongs to this controller has no other content afterwards, by any writer, except
//! for conditions of other types.

use json_patch::{
    AddOperation, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation, jsonptr::PointerBuf,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{
    Resource,
    api::{GetParams, Patch, PatchParams},
    core::object::HasStatus,
};
use operator_watch::{ApiError, Cause, Live, ObjectId, WriteTarget};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    ObjectWriter, Ownership, Writer,
    record::CATCH_UP_TIMEOUT,
    send::{Target, as_yaml},
};

/// The list of a status that several controllers may write.
const CONDITIONS: &str = "conditions";

impl Writer {
    /// Makes this the whole status of the reconciled object, except for conditions of other types than `types`, on exactly
    /// this object in its observed state: for a kind whose status no other controller writes. If the object has changed
    /// since, nothing is written, and the next decision waits until the cache shows the change.
    ///
    /// # Errors
    /// [`Cause::Conflict`] when the object was replaced, or when the watch has passed the change and the cache does not show
    /// it, because it cannot be decoded; a refusal says that it is about the status.
    pub async fn write_status<K, S>(&self, object: &K, status: &S, types: &[&str]) -> Result<(), ApiError>
    where
        K: Resource<DynamicType = ()> + HasStatus<Status: Serialize>,
        S: Serialize + Sync,
    {
        let kind = WriteTarget::of::<K>(&self.primary);
        let id = ObjectId::of(object);
        let (own, target, desired) = (self.for_object(id), Target::new(&kind, id), json!(status));
        let version = object.meta().resource_version.as_deref().unwrap_or_default();
        let changes = replacement(&json!(object.status()), &desired, types);
        let mut written = own.patch_in(&target, version, changes.clone()).await;
        if let Err(ApiError { cause: Cause::Conflict | Cause::Invalid, .. }) = &written
            && let Ok(found) = own.read_in(&target).await
            && found["metadata"]["uid"] == id.uid
        {
            let present = version_of(&found);
            if present == version {
                // A condition that cannot be decoded is not in the observed state.
                let exact = replacement(&found["status"], &desired, types);
                if exact != changes {
                    written = own.patch_in(&target, version, exact).await;
                }
            } else if self.shared.awaits(id.uid, &self.primary, Some(present), CATCH_UP_TIMEOUT) {
                return Ok(());
            }
        }
        written.map_err(ApiError::of_status)?;
        let mut records = self.shared.records.lock();
        records.entry(id.uid.to_owned()).or_default().status = Some((true, Instant::now()));
        Ok(())
    }
}

impl ObjectWriter<'_> {
    /// Makes this the whole status of an object in the state with this resourceVersion, except for conditions of other types
    /// than `types`: for a kind whose conditions other controllers write too.
    ///
    /// # Errors
    /// [`Cause::Conflict`] when the object was changed or replaced; a refusal says that it is about the status.
    pub async fn apply_status<S: Serialize + Sync>(
        &self,
        kind: &WriteTarget,
        object: ObjectId<'_>,
        version: &str,
        status: &S,
        types: &[&str],
    ) -> Result<(), ApiError> {
        let (target, desired) = (Target::new(kind, object), json!(status));
        let written = async {
            let applied = self.apply_in(&target, version, &desired).await;
            // The rest of a condition that has fields of another manager would be invalid.
            let is_invalid = |error: &ApiError| matches!(error.cause, Cause::Invalid | Cause::UnknownField);
            let is_refused = applied.as_ref().is_err_and(is_invalid);
            let found = if is_refused { self.read_in(&target).await? } else { applied? };
            let version = if is_refused { version } else { version_of(&found) };
            // An apply removes only the fields without another manager.
            let (mut replaced, changes) = (found.clone(), replacement(&found["status"], &desired, types));
            if json_patch::patch(&mut replaced, &changes).is_ok() && replaced == found {
                return Ok(());
            }
            self.patch_in(&target, version, changes).await
        };
        written.await.map_err(ApiError::of_status)
    }

    /// Applies conditions to an object whose status is somebody else's.
    ///
    /// # Errors
    /// [`Cause::Conflict`] when the object was replaced; a refusal says that it is about the status.
    pub async fn apply_conditions(
        &self,
        kind: &WriteTarget,
        object: ObjectId<'_>,
        conditions: &[Condition],
    ) -> Result<(), ApiError> {
        let conditions = json!({"conditions": conditions});
        let applied = self.apply_in(&Target::new(kind, object), "", &conditions).await;
        applied.map(drop).map_err(ApiError::of_status)
    }

    /// In any state of the target if `version` is empty.
    async fn apply_in(&self, target: &Target<'_>, version: &str, status: &Value) -> Result<Value, ApiError> {
        let mut patch = json!({
            "apiVersion": target.kind.resource.api_version,
            "kind": target.kind.resource.kind,
            "metadata": {"name": target.name, "uid": target.uid},
            "status": status,
        });
        if !version.is_empty() {
            patch["metadata"]["resourceVersion"] = version.into();
        }
        let params = PatchParams::apply(self.writer.manager).force();
        let build = || {
            let request = target.request();
            request.patch_subresource("status", &target.name, &params, &Patch::Apply(&patch)).map(as_yaml)
        };
        self.send("apply_status", || Ok((target.clone(), build()))).await
    }

    async fn read_in(&self, target: &Target<'_>) -> Result<Value, ApiError> {
        let read = target.request().get(&target.name, &GetParams::default());
        let read = read.map_err(|error| target.error(&kube::Error::BuildRequest(error)))?;
        Live::in_time(self.writer.client.request(read)).await.map_err(|error| target.error(&error))
    }

    /// Changes exactly the target in the state with this resourceVersion.
    async fn patch_in(
        &self,
        target: &Target<'_>,
        version: &str,
        changes: Vec<PatchOperation>,
    ) -> Result<(), ApiError> {
        let patch = Ownership::exactly(&target.uid, version).into_iter().chain(changes).collect();
        let (params, patch) = (self.patch_params(), Patch::<()>::Json(json_patch::Patch(patch)));
        let build = || target.request().patch_subresource("status", &target.name, &params, &patch);
        self.write("amend_status", target, build).await.map_err(ApiError::of_failed_test)
    }
}

/// The changes that make `desired` the whole status where another one was found.
fn replacement(found: &Value, desired: &Value, types: &[&str]) -> Vec<PatchOperation> {
    let (Value::Object(before), Value::Object(fields)) = (found, desired) else {
        // To the API server, null is also what is missing.
        return vec![test(["status"], found), add(["status"], desired)];
    };
    let gone = before.keys().filter(|name| *name != CONDITIONS && !fields.contains_key(*name));
    let fields =
        fields.iter().filter(|(name, value)| *name != CONDITIONS && before.get(*name) != Some(*value));
    let mut changes: Vec<_> = gone.map(|name| remove(["status", name])).collect();
    changes.extend(fields.map(|(name, value)| add(["status", name], value)));
    changes.extend(replaced_conditions(&found[CONDITIONS], &desired[CONDITIONS], types));
    changes
}

/// The changes of the conditions. They contain no condition of another type, nor a test of its text, which may be written
/// in several ways. One that cannot be decoded is not found, and shifts the others, so that their types are tested.
fn replaced_conditions(found: &Value, desired: &Value, types: &[&str]) -> Vec<PatchOperation> {
    let mut left = desired.as_array().cloned().unwrap_or_default();
    let Some(conditions) = found.as_array().filter(|found| !found.is_empty()) else {
        let all = [test(["status", CONDITIONS], found), add(["status", CONDITIONS], desired)];
        return if left.is_empty() { Vec::new() } else { all.into() };
    };
    let mut changes = Vec::new();
    // From the end, because the removal of a condition moves those after it.
    for (index, condition) in conditions.iter().enumerate().rev() {
        let (index, r#type) = (index.to_string(), &condition["type"]);
        let place = ["status", CONDITIONS, &index];
        let change = match left.iter().position(|desired| desired["type"] == *r#type) {
            Some(at) => {
                let (path, value) = (PointerBuf::from_tokens(place), left.remove(at));
                PatchOperation::Replace(ReplaceOperation { path, value })
            }
            None if types.iter().any(|own| r#type == own) => remove(place),
            None => continue,
        };
        changes.extend([test(["status", CONDITIONS, &index, "type"], r#type), change]);
    }
    changes.extend(left.iter().map(|condition| add(["status", CONDITIONS, "-"], condition)));
    changes
}

fn test<const N: usize>(path: [&str; N], value: &Value) -> PatchOperation {
    PatchOperation::Test(TestOperation { path: PointerBuf::from_tokens(path), value: value.clone() })
}

fn add<const N: usize>(path: [&str; N], value: &Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path: PointerBuf::from_tokens(path), value: value.clone() })
}

fn remove<const N: usize>(path: [&str; N]) -> PatchOperation {
    PatchOperation::Remove(RemoveOperation { path: PointerBuf::from_tokens(path) })
}

fn version_of(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::Pod;
    use kube::api::ObjectMeta;
    use operator_watch::SeenVersion;
    use parking_lot::Mutex;

    use super::*;
    use crate::testing::{Answer, Log, Sent, answering};

    const TYPES: [&str; 2] = ["Ready", "Stalled"];
    const STATUS: &str = "/api/v1/namespaces/shop/pods/web/status";
    /// The answer to a patch with a failed test.
    const FAILED_TEST: &str = "the server rejected our request due to an error in our request";

    /// An object whose status is any JSON.
    #[derive(Resource, Serialize)]
    #[resource(inherit = "Pod")]
    struct Web {
        metadata: ObjectMeta,
        status: Option<Value>,
    }

    impl HasStatus for Web {
        type Status = Value;

        fn status(&self) -> Option<&Value> {
            self.status.as_ref()
        }

        fn status_mut(&mut self) -> &mut Option<Value> {
            &mut self.status
        }
    }

    fn web(status: Option<Value>) -> Web {
        let metadata = ObjectMeta {
            name: Some("web".into()),
            namespace: Some("shop".into()),
            uid: Some("u".into()),
            resource_version: Some("7".into()),
            ..ObjectMeta::default()
        };
        Web { metadata, status }
    }

    fn desired() -> Value {
        json!({"active": 2, "conditions": [{"type": "Ready", "status": "True"}]})
    }

    /// An own condition that is desired, one of others, and an own one that is not desired.
    fn found() -> Value {
        json!({"active": 1, "blockedBy": {"name": "web-x"}, "conditions": [
            {"type": "Stalled", "status": "True"},
            theirs(),
            {"type": "Ready", "status": "False", "observedGeneration": 3},
        ]})
    }

    /// It has a time in another notation than ours, and characters that the API server escapes.
    fn theirs() -> Value {
        json!({"type": "Theirs", "message": "a < b && b > c", "lastTransitionTime": "2026-01-01T00:00:00.000Z"})
    }

    /// It cannot be decoded.
    fn odd(r#type: &str) -> Value {
        json!({"type": r#type, "lastTransitionTime": "9999-12-31T23:59:59Z"})
    }

    fn replaced() -> Value {
        json!({"active": 2, "conditions": [theirs(), {"type": "Ready", "status": "True"}]})
    }

    fn with_conditions<const N: usize>(conditions: [Value; N]) -> Value {
        json!({"active": 1, "conditions": Vec::from(conditions)})
    }

    /// The object after a patch, as the API server applies it; `None` if a test fails. It compares texts, in some of which
    /// Go escapes characters, and to it, null is what is missing.
    fn patched(object: &Value, patch: &Sent) -> Option<Value> {
        assert_eq!((patch.verb.as_str(), patch.uri.split('?').next()), ("AMEND", Some(STATUS)));
        let escaped = |value: &Value| {
            let text = value.to_string();
            text.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
        };
        let operations = patch.body.as_array().unwrap();
        let (tests, changes): (Vec<_>, Vec<_>) =
            operations.iter().cloned().partition(|one| one["op"] == "test");
        let holds = |test: &Value| {
            let stored = object.pointer(test["path"].as_str().unwrap()).unwrap_or(&Value::Null);
            let expected = test["value"].to_string();
            escaped(stored) == expected
        };
        if !tests.iter().all(holds) {
            return None;
        }
        let mut object = object.clone();
        let changes: json_patch::Patch = serde_json::from_value(changes.into()).unwrap();
        json_patch::patch(&mut object, &changes).ok().map(|()| object)
    }

    /// A server with one object.
    fn storing(object: Value) -> (Writer, Log, Arc<Mutex<Value>>) {
        let stored = Arc::new(Mutex::new(object));
        let object = stored.clone();
        let refused =
            |message| json!({"kind": "Status", "status": "Failure", "code": 422, "message": message});
        let (client, log) = answering(move |sent| {
            let mut object = object.lock();
            if sent.verb == "GET" {
                return Answer::Object(object.clone());
            }
            let Some(patched) = patched(&object, sent) else {
                return Answer::Json(422, refused(FAILED_TEST));
            };
            let conditions = patched["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let mut types: Vec<_> =
                conditions.iter().map(|condition| condition["type"].to_string()).collect();
            types.sort();
            types.dedup();
            if types.len() < conditions.len() {
                return Answer::Json(422, refused("status.conditions[1]: Duplicate value"));
            }
            object.clone_from(&patched);
            Answer::Object(patched)
        });
        (Writer::over(client, "test"), log, stored)
    }

    /// Writes the status of an object that was observed with one status and is stored with another. Returns the verbs of the
    /// requests, and the status that is stored afterwards.
    async fn written(observed: Option<Value>, stored: Option<Value>) -> (Vec<String>, Value) {
        let mut object = json!(web(stored));
        if object["status"].is_null() {
            object.as_object_mut().unwrap().remove("status");
        }
        let (writer, log, stored) = storing(object);
        writer.write_status(&web(observed), &desired(), &TYPES).await.unwrap();
        let verbs = log.take().into_iter().map(|sent| sent.verb).collect();
        let status = stored.lock()["status"].clone();
        (verbs, status)
    }

    #[tokio::test(start_paused = true)]
    async fn a_status_is_replaced_by_one_request_and_only_conditions_of_others_stay_as_they_are() {
        let once = vec!["AMEND".to_owned()];
        assert_eq!(written(Some(found()), Some(found())).await, (once.clone(), replaced()));
        for empty in [None, Some(json!({})), Some(json!({"active": 1, "conditions": []}))] {
            assert_eq!(written(empty.clone(), empty.clone()).await, (once.clone(), desired()), "{empty:?}");
        }
        let (own, theirs) = (desired()["conditions"][0].clone(), theirs());
        let alone = Some(with_conditions([theirs.clone()]));
        let both = json!({"active": 2, "conditions": [theirs, own]});
        assert_eq!(written(alone.clone(), alone).await, (once.clone(), both), "it is the first one");
        let (observed, later) = (json!({"conditions": [own]}), json!({"conditions": [own, odd("Odd")]}));
        let both = json!({"active": 2, "conditions": [own, odd("Odd")]});
        assert_eq!(
            written(Some(observed), Some(later)).await,
            (once, both),
            "one after it cannot be decoded"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_status_without_conditions_says_nothing_of_them() {
        for conditions in [json!([]), json!([theirs()])] {
            let status = |active: u8| json!({"active": active, "conditions": conditions});
            let (writer, _log, stored) = storing(json!(web(Some(status(1)))));
            writer.write_status(&web(Some(status(1))), &json!({"active": 0}), &TYPES).await.unwrap();
            assert_eq!(stored.lock()["status"], status(0));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn conditions_that_the_cache_does_not_show_stay_and_own_ones_that_are_made_up_go() {
        let own = desired()["conditions"][0].clone();
        let also = |condition| json!({"active": 2, "conditions": [condition, own]});
        for (observed, stored, expected) in [
            (Some(with_conditions([])), with_conditions([odd("Odd")]), also(odd("Odd"))),
            (
                Some(with_conditions([own.clone()])),
                with_conditions([odd("Odd"), own.clone()]),
                also(odd("Odd")),
            ),
            // The status as a whole cannot be decoded.
            (None, json!({"active": "many", "conditions": [theirs()]}), also(theirs())),
            (
                Some(with_conditions([theirs()])),
                with_conditions([theirs(), odd("Ready"), odd("Stalled")]),
                also(theirs()),
            ),
        ] {
            let (verbs, status) = written(observed, Some(stored.clone())).await;
            assert_eq!(
                (&verbs[..], status),
                (&["AMEND", "GET", "AMEND"].map(str::to_owned)[..], expected),
                "{stored}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_status_of_a_former_state_is_not_written_and_the_next_decision_waits_for_the_present_one() {
        let object = changed();
        let (writer, log, stored) = storing(object.clone());
        writer.write_status(&web(Some(found())), &desired(), &TYPES).await.unwrap();
        assert_eq!((log.take().len(), &*stored.lock()), (2, &object));
        assert!(!writer.catches_up("u").await);
        writer.primary().observe(Some("8"));
        assert!(writer.catches_up("u").await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_status_of_a_former_state_that_the_cache_will_not_leave_is_told_as_a_failure() {
        let object = changed();
        let (writer, _log, stored) = storing(object.clone());
        writer.primary().observe(Some("8"));
        let error = writer.write_status(&web(Some(found())), &desired(), &TYPES).await.unwrap_err();
        assert!(error.cause == Cause::Conflict && *stored.lock() == object, "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_status_of_a_former_object_is_not_written() {
        let mut object = json!(web(Some(found())));
        object["metadata"]["uid"] = "another".into();
        let (writer, _log, stored) = storing(object.clone());
        let error = writer.write_status(&web(Some(found())), &desired(), &TYPES).await.unwrap_err();
        assert!(error.cause == Cause::Conflict && *stored.lock() == object, "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_status_that_is_refused_is_not_sent_again() {
        let object = json!(web(Some(found())));
        let (client, log) = answering(move |sent| match sent.verb.as_str() {
            "GET" => Answer::Object(object.clone()),
            _ => Answer::Refusal(422, "Invalid"),
        });
        let writer = Writer::over(client, "test");
        let error = writer.write_status(&web(Some(found())), &desired(), &TYPES).await.unwrap_err();
        assert_eq!((error.cause, log.take().len()), (Cause::Invalid, 2));
    }

    /// An object that was changed since it was observed.
    fn changed() -> Value {
        let mut object = json!(web(Some(found())));
        object["metadata"]["resourceVersion"] = "8".into();
        object
    }

    /// The requests of an apply to which the server answers with this status.
    async fn applied(answer: Answer) -> Vec<Sent> {
        let (client, log) = answering(move |sent| match sent.verb.as_str() {
            "APPLY" => answer.clone(),
            "GET" => Answer::Object(changed()),
            _ => Answer::Done,
        });
        let (writer, kind) =
            (Writer::over(client, "test"), WriteTarget::of::<Pod>(&SeenVersion::unwatched()));
        let web = web(None);
        let own = writer.for_object(ObjectId::of(&web));
        own.apply_status(&kind, ObjectId::of(&web), "7", &desired(), &TYPES).await.unwrap();
        log.take()
    }

    #[tokio::test(start_paused = true)]
    async fn what_an_apply_leaves_of_a_status_goes() {
        let left = json!(web(Some(found())));
        let sent = applied(Answer::Object(left.clone())).await;
        let [apply, patch] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!((apply.verb.as_str(), &apply.body["status"]), ("APPLY", &desired()));
        assert_eq!(apply.body["metadata"]["resourceVersion"], "7");
        assert_eq!(patched(&left, patch).unwrap()["status"], replaced());

        assert_eq!(applied(Answer::Object(json!(web(Some(replaced()))))).await.len(), 1, "nothing is left");
    }

    #[tokio::test(start_paused = true)]
    async fn a_condition_of_which_an_apply_would_leave_an_invalid_part_goes_as_a_whole() {
        let sent = applied(Answer::Refusal(422, "Invalid")).await;
        let [_, _, patch] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!(patched(&json!(web(Some(found()))), patch).unwrap()["status"], replaced());
        assert_eq!(patched(&changed(), patch), None, "it might overwrite what was written since");
    }
}
