//! Writes of statuses. A status that belongs to this controller has no other content afterwards, by any writer, except
//! for conditions of other types.

use json_patch::{AddOperation, PatchOperation, TestOperation, jsonptr::PointerBuf};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{
    Resource,
    api::{GetParams, Patch, PatchParams},
    core::object::HasStatus,
    discovery::ApiResource,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{OnBehalf, Writer, Written, send::as_yaml, target::Target};
use crate::{
    object::ObjectId,
    watch::{Trimmed, WatchedResource, live::in_time},
    write::{WriteCause, WriteError},
};

impl Writer {
    /// Makes this the whole status of the reconciled object, except for conditions of other types than `types`, on exactly
    /// this object in its observed state: for a kind whose status no other controller writes.
    ///
    /// # Errors
    /// [`WriteCause::Changed`] when the object was changed or replaced, and [`WriteCause::StatusRefused`].
    pub async fn write_status<K, S>(&self, object: &K, status: &S, types: &[&str]) -> Written<()>
    where
        K: Resource<DynamicType = ()> + HasStatus<Status: Serialize>,
        S: Serialize + Sync,
    {
        let kind = WatchedResource::new(ApiResource::erase::<K>(&()), &self.primary);
        let id = ObjectId::of(object);
        let (own, target) = (self.on_behalf_of(id), Target::new(&kind, id));
        let version = json!({"resourceVersion": object.meta().resource_version});
        let observed = json!({"metadata": version, "status": object.status()});
        let said = json!(status);
        let mut patch = replacement(target, &observed, &said, types);
        patch.insert(0, test(["status", "conditions"], observed["status"]["conditions"].clone()));
        let mut written = own.patch_in(target, patch).await;
        if matches!(&written, Err(WriteError { cause: WriteCause::Changed { .. }, .. }))
            && let Ok(stored) = own.read_in(target).await
            && version_of(&stored) == version_of(&observed)
        {
            // A condition that cannot be decoded is not in the observed state, and must not go.
            written = own.patch_in(target, replacement(target, &stored, &said, types)).await;
        }
        written.map_err(WriteError::of_status)?;
        self.shared.statuses.lock().wrote(id.uid);
        Ok(())
    }
}

impl OnBehalf<'_> {
    /// Makes this the whole status of an object, except for conditions of other types than `types`: for a kind whose
    /// conditions other controllers write too.
    ///
    /// # Errors
    /// [`WriteCause::Changed`] when the object was replaced, and [`WriteCause::StatusRefused`].
    pub async fn apply_status<S: Serialize + Sync>(
        &self,
        kind: &WatchedResource,
        object: ObjectId<'_>,
        status: &S,
        types: &[&str],
    ) -> Written<()> {
        let (target, said) = (Target::new(kind, object), json!(status));
        let written = async {
            let found = match self.apply_in(target, &said).await {
                // The rest of a condition that has fields of another manager would be invalid.
                Err(WriteError { cause: WriteCause::Invalid { .. }, .. }) => self.read_in(target).await?,
                applied => applied?,
            };
            // An apply removes only the fields without another manager.
            if whole(&said, &found["status"], types) != found["status"] {
                self.patch_in(target, replacement(target, &found, &said, types)).await?;
            }
            Ok::<_, WriteError>(())
        };
        written.await.map_err(WriteError::of_status)
    }

    /// Applies conditions to an object whose status is somebody else's.
    ///
    /// # Errors
    /// [`WriteCause::Changed`] when the object was replaced, and [`WriteCause::StatusRefused`].
    pub async fn apply_conditions(
        &self,
        kind: &WatchedResource,
        object: ObjectId<'_>,
        conditions: &[Condition],
    ) -> Written<()> {
        let applied = self.apply_in(Target::new(kind, object), &json!({"conditions": conditions})).await;
        applied.map(drop).map_err(WriteError::of_status)
    }

    async fn apply_in(&self, target: Target<'_>, status: &Value) -> Written<Value> {
        let patch = json!({
            "apiVersion": target.kind.resource.api_version,
            "kind": target.kind.resource.kind,
            "metadata": {"name": target.name, "uid": target.uid},
            "status": status,
        });
        let params = PatchParams::apply(self.writer.manager).force();
        let build = || {
            let request = target.request();
            request.patch_subresource("status", target.name, &params, &Patch::Apply(&patch)).map(as_yaml)
        };
        self.send("apply_status", target, build).await
    }

    async fn read_in(&self, target: Target<'_>) -> Written<Value> {
        let read = target.request().get(target.name, &GetParams::default());
        let read = read.map_err(|error| target.error(kube::Error::BuildRequest(error)))?;
        in_time(self.writer.client.request(read)).await.map_err(|error| target.error(error))
    }

    async fn patch_in(&self, target: Target<'_>, patch: Vec<PatchOperation>) -> Written<()> {
        let (params, patch) = (self.patch_params(), Patch::<()>::Json(json_patch::Patch(patch)));
        let build = || target.request().patch_subresource("status", target.name, &params, &patch);
        let patched: Written<Trimmed> = self.send("amend_status", target, build).await;
        patched.map(drop).map_err(WriteError::of_failed_test)
    }
}

/// A patch that makes `said` the whole status of exactly the target, in the state in which it was found.
fn replacement(target: Target<'_>, found: &Value, said: &Value, types: &[&str]) -> Vec<PatchOperation> {
    let (path, value) = (PointerBuf::from_tokens(["status"]), whole(said, &found["status"], types));
    vec![
        test(["metadata", "uid"], target.uid.into()),
        test(["metadata", "resourceVersion"], version_of(found).clone()),
        PatchOperation::Add(AddOperation { path, value }),
    ]
}

fn test(path: [&str; 2], value: Value) -> PatchOperation {
    PatchOperation::Test(TestOperation { path: PointerBuf::from_tokens(path), value })
}

fn version_of(object: &Value) -> &Value {
    &object["metadata"]["resourceVersion"]
}

/// What is said, with the conditions of other types than `types` that are found, in the order in which they are found.
fn whole(said: &Value, found: &Value, types: &[&str]) -> Value {
    let list = |status: &Value| status["conditions"].as_array().cloned().unwrap_or_default();
    let is_own = |condition: &Value| condition["type"].as_str().is_some_and(|type_| types.contains(&type_));
    let (mut left, mut conditions) = (list(said), Vec::new());
    for condition in list(found) {
        match left.iter().position(|said| said["type"] == condition["type"]) {
            Some(index) => conditions.push(left.remove(index)),
            None if is_own(&condition) => {}
            None => conditions.push(condition),
        }
    }
    conditions.extend(left);
    let mut whole = said.clone();
    if !conditions.is_empty() {
        whole["conditions"] = conditions.into();
    }
    whole
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use kube::api::ObjectMeta;

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

    fn web(status: Value) -> Web {
        let metadata = ObjectMeta {
            name: Some("web".into()),
            namespace: Some("shop".into()),
            uid: Some("u".into()),
            resource_version: Some("7".into()),
            ..ObjectMeta::default()
        };
        Web { metadata, status: Some(status) }
    }

    fn said() -> Value {
        json!({"active": 2, "conditions": [{"type": "Ready", "status": "True"}]})
    }

    /// An own condition that is said, one of others, and an own one that is not said.
    fn found() -> Value {
        json!({"active": 1, "blockedBy": {"name": "web-x"}, "conditions": [
            {"type": "Stalled", "status": "True"},
            {"type": "Theirs", "status": "True"},
            {"type": "Ready", "status": "False", "observedGeneration": 3},
        ]})
    }

    fn replaced() -> Value {
        json!({"active": 2, "conditions": [
            {"type": "Theirs", "status": "True"}, {"type": "Ready", "status": "True"},
        ]})
    }

    fn changed(object: &Value, patch: &Sent) -> Option<Value> {
        assert_eq!((patch.verb.as_str(), patch.uri.split('?').next()), ("AMEND", Some(STATUS)));
        let mut object = object.clone();
        let patch: json_patch::Patch = serde_json::from_value(patch.body.clone()).unwrap();
        json_patch::patch(&mut object, &patch).ok().map(|()| object)
    }

    #[tokio::test(start_paused = true)]
    async fn a_status_is_replaced_in_its_observed_state_and_only_conditions_of_others_stay() {
        let (client, log) = answering(|_| Answer::Done);
        let writer = Writer::over(client, "test");
        writer.write_status(&web(found()), &said(), &TYPES).await.unwrap();
        let [patch] = &log.take()[..] else { panic!("one request") };
        let stored = json!(web(found()));
        assert_eq!(changed(&stored, patch).unwrap()["status"], replaced());
        for field in ["uid", "resourceVersion"] {
            let mut other = stored.clone();
            other["metadata"][field] = "another".into();
            assert_eq!(changed(&other, patch), None, "{field}");
        }
        let mut other = stored.clone();
        other["status"]["conditions"].as_array_mut().unwrap().push(json!({"type": "Odd"}));
        assert_eq!(changed(&other, patch), None, "it would go");
    }

    /// A server that stores this object, which is not in the observed state.
    fn storing(stored: Value) -> (Writer, Log) {
        let failed = json!({"kind": "Status", "status": "Failure", "code": 422, "message": FAILED_TEST});
        let mut is_first = true;
        let (client, log) = answering(move |sent| match sent.verb.as_str() {
            "GET" => Answer::Object(stored.clone()),
            _ if std::mem::take(&mut is_first) => Answer::Json(422, failed.clone()),
            _ => Answer::Done,
        });
        (Writer::over(client, "test"), log)
    }

    #[tokio::test(start_paused = true)]
    async fn a_condition_that_the_cache_does_not_show_stays() {
        let odd = json!({"type": "Odd", "lastTransitionTime": "9999-12-31T23:59:59Z"});
        let mut stored = json!(web(found()));
        stored["status"]["conditions"].as_array_mut().unwrap().push(odd.clone());
        let (writer, log) = storing(stored.clone());
        writer.write_status(&web(found()), &said(), &TYPES).await.unwrap();
        let [_, _, patch] = &log.take()[..] else { panic!("a patch, a read, and a patch") };
        let written = changed(&stored, patch).unwrap();
        assert_eq!(written["status"]["conditions"][2], odd);
        assert_eq!(written["status"]["active"], 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_status_that_was_observed_of_a_former_state_is_not_written() {
        let mut stored = json!(web(found()));
        stored["metadata"]["resourceVersion"] = "8".into();
        let (writer, log) = storing(stored);
        let error = writer.write_status(&web(found()), &said(), &TYPES).await.unwrap_err();
        assert!(matches!(error.cause, WriteCause::Changed { .. }), "{error}");
        assert_eq!(log.take().iter().filter(|sent| sent.verb == "AMEND").count(), 1);
    }

    /// The requests of an apply to which the server answers with this status.
    async fn applied(answer: Answer) -> Vec<Sent> {
        let (client, log) = answering(move |sent| match sent.verb.as_str() {
            "APPLY" => answer.clone(),
            "GET" => Answer::Object(json!(web(found()))),
            _ => Answer::Done,
        });
        let (writer, kind) =
            (Writer::over(client, "test"), WatchedResource::unwatched(ApiResource::erase::<Pod>(&())));
        let web = web(Value::Null);
        let own = writer.on_behalf_of(ObjectId::of(&web));
        own.apply_status(&kind, ObjectId::of(&web), &said(), &TYPES).await.unwrap();
        log.take()
    }

    #[tokio::test(start_paused = true)]
    async fn what_an_apply_leaves_of_a_status_goes() {
        let left = json!(web(found()));
        let sent = applied(Answer::Object(left.clone())).await;
        let [apply, patch] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!((apply.verb.as_str(), &apply.body["status"]), ("APPLY", &said()));
        assert_eq!(changed(&left, patch).unwrap()["status"], replaced());

        assert_eq!(applied(Answer::Object(json!(web(replaced())))).await.len(), 1, "nothing is left");
    }

    #[tokio::test(start_paused = true)]
    async fn a_condition_of_which_an_apply_would_leave_an_invalid_part_goes_as_a_whole() {
        let sent = applied(Answer::Refusal(422, "Invalid")).await;
        let [_, _, patch] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!(changed(&json!(web(found())), patch).unwrap()["status"], replaced());
    }

    #[test]
    fn a_status_without_conditions_says_nothing_of_them() {
        assert_eq!(whole(&json!({"active": 0}), &json!({"active": 1}), &TYPES), json!({"active": 0}));
        let theirs = json!({"conditions": [{"type": "Theirs"}]});
        assert_eq!(whole(&json!({}), &theirs, &TYPES), theirs);
        assert_eq!(whole(&said(), &Value::Null, &TYPES), said());
    }
}
