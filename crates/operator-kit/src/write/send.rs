//! The one way to the server: each write is counted, remembered until its watch shows it, and retried while the server
//! is overloaded.

use std::time::Duration;

use axum::http::{self, HeaderValue, header::ACCEPT};
use kube::{
    Client, Resource,
    api::{DynamicObject, PostParams},
    core::Request,
    discovery::ApiResource,
};
use operator_watch::{ApiError, Cause, Live, ObjectId, Pruned, Verb, WriteTarget};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::{
    ObjectWriter, Writer,
    record::{CATCH_UP_TIMEOUT, InFlight},
    repeated_writes::{Repeated, Repetition},
};

/// Requests only the metadata of an object. A server that does not know this type answers with the whole object.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// Longest wait of a write before it is sent: its decision may be out of date then.
const TURN_TIMEOUT: Duration = Duration::from_secs(60);

/// The reason why a write was not sent in that time.
const NO_TURN: &str =
    "it was not sent, because this process did not hold its Lease, or had too much to write, for a minute";

/// Number of retries of a write after the server answered that it is overloaded (and did nothing).
const BUSY_TRIES: u32 = 4;
/// Longest delay that is waited for within a pass, which takes the place of another one; the backoff of its object waits for
/// longer ones.
const MAX_BUSY_DELAY: Duration = Duration::from_secs(5);

/// A request, or the error of building it.
pub(super) type Built = Result<http::Request<Vec<u8>>, kube::core::request::Error>;

/// An answer with the version of the written object.
pub(super) trait Versioned: DeserializeOwned {
    fn resource_version(&self) -> Option<&str>;
}

impl Versioned for Pruned {
    fn resource_version(&self) -> Option<&str> {
        self.metadata.resource_version.as_deref()
    }
}

impl Versioned for Value {
    fn resource_version(&self) -> Option<&str> {
        self["metadata"]["resourceVersion"].as_str()
    }
}

impl ObjectWriter<'_> {
    /// Sends a write whose answer is of no use beyond its version.
    pub(super) async fn write(
        &self,
        verb: &'static str,
        target: &Target<'_>,
        build: impl Fn() -> Built,
    ) -> Result<(), ApiError> {
        self.send::<Pruned, _>(verb, || Ok((target.clone(), build()))).await.map(drop)
    }

    /// Sends a write that is built when its turn comes, so that none waits in memory, and again while the server is
    /// overloaded, which has not performed it.
    pub(super) async fn send<'k, T: Versioned, E: From<ApiError>>(
        &self,
        verb: &'static str,
        build: impl Fn() -> Result<(Target<'k>, Built), E>,
    ) -> Result<T, E> {
        for _ in 0..BUSY_TRIES {
            match Box::pin(self.send_once(verb, &build)).await? {
                Err(error) if error.cause == Cause::Busy && error.retry_after() <= Some(MAX_BUSY_DELAY) => {
                    // With a jitter, so that writes that were refused together do not return together.
                    let delay = error.retry_after().unwrap_or_default();
                    sleep(delay.mul_f64(0.5 + rand::random::<f64>())).await;
                }
                ended => return Ok(ended?),
            }
        }
        Ok(Box::pin(self.send_once(verb, &build)).await??)
    }

    async fn send_once<'k, T: Versioned, E>(
        &self,
        verb: &'static str,
        build: &impl Fn() -> Result<(Target<'k>, Built), E>,
    ) -> Result<Result<T, ApiError>, E> {
        let (writer, shared) = (self.writer, &self.writer.shared);
        let undoes = if let Some(field) = self.undoes
            && let (target, Ok(request)) = build()?
            && shared.repeated.is_too_often(Repetition::of(self.whose, &request, true))
        {
            // The write takes the field over, so that nothing would show its other writer afterwards.
            Some((field.to_owned(), self.last_writer(&target, field).await))
        } else {
            None
        };
        let turn = async {
            let permit = shared.permits.acquire().await;
            shared.gate.opens().await;
            permit
        };
        let turn = timeout(TURN_TIMEOUT, turn).await;
        let (target, request) = build()?;
        let (permit, mut request) = match (turn, request) {
            (Ok(permit), Ok(request)) => (permit, request),
            (_, Err(error)) => return Ok(Err(target.error(&kube::Error::BuildRequest(error)))),
            (Err(_), _) => {
                return Ok(Err(ApiError::new(Verb::Write, target.title(), Cause::NotSent, NO_TURN)));
            }
        };
        if request.method() != http::Method::DELETE {
            strictly(&mut request);
        }
        let repetition = Repetition::of(self.whose, &request, self.undoes.is_some());
        let in_flight = InFlight::new(shared, self.whose, verb, &target);
        let result =
            Live::in_time(writer.client.request::<T>(request)).await.map_err(|error| target.error(&error));
        in_flight.ended(&result);
        drop(permit);
        let WriteTarget { resource, seen_version } = target.kind;
        // Refused writes have their backoff, and an existing object is often no failure. A rival may always be faster.
        let counts = match result.as_ref().map_err(|error| error.cause) {
            Ok(_) | Err(Cause::AlreadyExists) => true,
            Err(cause) => self.undoes.is_some() && cause == Cause::Conflict,
        };
        if counts && shared.repeated.record(repetition) {
            let (kind, name) = (resource.kind.clone(), target.name.clone());
            let repeated = Repeated { verb, kind, name, undoes };
            let mut records = shared.records.lock();
            records.entry(self.whose.to_owned()).or_default().repeated = Some(Box::new(repeated));
        }
        let code = result.as_ref().map_or_else(|error| error.code, |_| 200).to_string();
        shared.metrics.writes.get_or_create(&[("verb", verb.into()), ("code", code.into())]).inc();
        if let Ok(answer) = &result {
            tracing::debug!(verb, kind = resource.kind, name = target.name, "wrote");
            shared.awaits(self.whose, seen_version, answer.resource_version(), CATCH_UP_TIMEOUT);
        }
        Ok(result)
    }
}

/// Has the server refuse a field that it does not know, instead of dropping it in silence.
pub(super) fn strictly(request: &mut http::Request<Vec<u8>>) {
    let uri = request.uri();
    let mark = if uri.query().is_some() { '&' } else { '?' };
    if let Ok(uri) = format!("{uri}{mark}fieldValidation=Strict").parse() {
        *request.uri_mut() = uri;
    }
}

/// Requests only the metadata of the object in the answer, because the rest is known.
pub(super) fn answered_by_metadata(mut request: http::Request<Vec<u8>>) -> http::Request<Vec<u8>> {
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static(METADATA));
    request
}

/// The API server reads the body of an apply as YAML.
pub(super) fn as_yaml(request: http::Request<Vec<u8>>) -> http::Request<Vec<u8>> {
    request.map(|body| match String::from_utf8(body) {
        Ok(json) => escape_json(&json).into_bytes(),
        Err(error) => error.into_bytes(),
    })
}

/// The destination of a write.
#[derive(Clone)]
pub(super) struct Target<'k> {
    pub kind: &'k WriteTarget,
    /// Empty for a cluster-scoped object.
    pub namespace: String,
    pub name: String,
    /// Empty where it does not matter.
    pub uid: String,
}

impl<'k> Target<'k> {
    pub fn new(kind: &'k WriteTarget, id: ObjectId<'_>) -> Self {
        let [namespace, name, uid] = [id.namespace, id.name, id.uid].map(str::to_owned);
        Self { kind, namespace, name, uid }
    }

    /// The destination of an object or a patch.
    pub fn of(kind: &'k WriteTarget, object: &Value) -> Self {
        let text = |field| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        Self { kind, namespace: text("namespace"), name: text("name"), uid: text("uid") }
    }

    pub fn request(&self) -> Request {
        let namespace = Some(&*self.namespace).filter(|namespace| !namespace.is_empty());
        Request::new(DynamicObject::url_path(&self.kind.resource, namespace))
    }

    pub fn error(&self, error: &kube::Error) -> ApiError {
        ApiError::of(Verb::Write, error, self.title())
    }

    fn title(&self) -> (&str, &str) {
        (&self.kind.resource.kind, &self.name)
    }
}

/// Time within which the server has to answer a trial, for which somebody waits.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(10);

impl Writer {
    /// Has the server check the creation of an object, in this namespace if it is not empty. Nothing is stored.
    ///
    /// # Errors
    /// Like the creation: [`Cause::UnknownField`](operator_watch::Cause::UnknownField) tells a field that the server does not
    /// know. A server that does not answer within ten seconds leaves it unknown.
    pub async fn dry_run_create(
        client: &Client,
        resource: &ApiResource,
        namespace: &str,
        object: &Value,
    ) -> Result<(), ApiError> {
        let mut object = object.clone();
        object["metadata"]["namespace"] = Some(namespace).filter(|namespace| !namespace.is_empty()).into();
        let kind = WriteTarget::unwatched(resource.clone());
        let target = Target::of(&kind, &object);
        let params = PostParams { dry_run: true, field_manager: None };
        let tried = async {
            let body = serde_json::to_vec(&object).unwrap_or_default();
            let mut request = target.request().create(&params, body).map_err(kube::Error::BuildRequest)?;
            strictly(&mut request);
            Live::within(TRIAL_TIMEOUT, client.request::<Pruned>(request)).await
        };
        tried.await.map(drop).map_err(|error| target.error(&error))
    }
}

/// Escapes the characters that are plain in JSON but not in YAML: line breaks and unprintable characters. In a quoted
/// text, for example, a parser folds U+0085 into a space. The API server reads the body of an apply as YAML.
pub(crate) fn escape_json(json: &str) -> String {
    // Nearly all are plain, and none of these characters is.
    if json.bytes().all(|byte| byte < 0x7f) {
        return json.to_owned();
    }
    json.chars().fold(String::with_capacity(json.len()), |mut text, character| {
        match character {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                text.extend(format!("\\u{:04x}", u32::from(character)).chars());
            }
            plain => text.push(plain),
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{api::DeleteParams, discovery::ApiResource};
    use serde_json::json;
    use tokio::time::Instant;

    use operator_watch::{ObjectId, Verb, WriteTarget};

    use super::*;
    use crate::{
        testing::{Answer, Log, answering},
        write::{MAX_CONCURRENT_WRITES, Writer},
    };

    const OWN: ObjectId<'_> = ObjectId { namespace: "shop", name: "settings", uid: "a" };

    /// A writer to a server that is busy, and asks for this delay in seconds.
    fn writer(retry_after: u32) -> (Writer, Log) {
        let busy = json!({
            "kind": "Status", "status": "Failure", "code": 429, "reason": "TooManyRequests",
            "details": {"retryAfterSeconds": retry_after},
        });
        let (client, log) = answering(move |_| Answer::Json(429, busy.clone()));
        (Writer::over(client, "test"), log)
    }

    async fn write(writer: &Writer) -> Cause {
        let kind = WriteTarget::unwatched(ApiResource::erase::<ConfigMap>(&()));
        writer.for_object(OWN).delete(&kind, OWN, DeleteParams::default()).await.unwrap_err().cause
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_busy_for_a_moment_is_asked_again_and_one_that_is_busy_for_long_is_not() {
        for (retry_after, requests) in [(1, 5), (5, 5), (6, 1), (600, 1)] {
            let (writer, log) = writer(retry_after);
            let began = Instant::now();
            assert_eq!(write(&writer).await, Cause::Busy);
            assert_eq!(log.take().len(), requests, "{retry_after} s");
            assert!(began.elapsed() <= Duration::from_secs(30), "{:?}", began.elapsed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn every_write_but_a_deletion_asks_for_strict_validation() {
        let (client, log) = answering(|_| Answer::Done);
        let writer = Writer::over(client, "test");
        let kind = WriteTarget::unwatched(ApiResource::erase::<ConfigMap>(&()));
        let map = json!({"metadata": {"name": "web", "namespace": "shop", "uid": "u"}});
        let id = ObjectId { namespace: "shop", name: "web", uid: "u" };
        let own = writer.for_object(id);
        own.create(&kind, &map).await.unwrap();
        own.apply(&kind, &map).await.unwrap();
        own.merge_patch(&kind, &map).await.unwrap();
        own.json_patch(&kind, id, &[]).await.unwrap();
        own.apply_status(&kind, id, "7", &json!({"active": 1}), &[]).await.unwrap();
        own.delete(&kind, id, DeleteParams::default()).await.unwrap();
        let sent = log.take();
        let is_strict = |uri: &str| uri.ends_with("&fieldValidation=Strict");
        let strict: Vec<_> =
            sent.iter().filter(|sent| is_strict(&sent.uri)).map(|sent| &*sent.verb).collect();
        assert_eq!(strict, ["POST", "APPLY", "MERGE", "AMEND", "APPLY"]);
        assert!(sent.iter().any(|sent| sent.verb == "DELETE" && !is_strict(&sent.uri)), "{sent:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_objects_are_built_than_are_sent_at_once() {
        let (client, _log) = answering(|_| Answer::Silence);
        let writer = Writer::over(client, "test");
        let kind = WriteTarget::unwatched(ApiResource::erase::<ConfigMap>(&()));
        let built = Cell::new(0);
        let own = writer.for_object(OWN);
        let create = |number: usize| {
            let count = &built;
            own.create_with(&kind, move || {
                count.set(count.get() + 1);
                Ok::<_, ApiError>(json!({"metadata": {"name": number.to_string()}}))
            })
        };
        let all = futures::future::join_all((0..100).map(create));
        timeout(Duration::from_secs(1), all).await.unwrap_err();
        assert_eq!(built.get(), MAX_CONCURRENT_WRITES);
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_built_is_not_sent_and_takes_no_turn() {
        let (client, log) = answering(|_| Answer::Done);
        let writer = Writer::over(client, "test");
        let kind = WriteTarget::unwatched(ApiResource::erase::<ConfigMap>(&()));
        for _ in 0..=MAX_CONCURRENT_WRITES {
            let refused = ApiError::new(Verb::Write, ("ConfigMap", "a"), Cause::Invalid, "no template");
            let created = writer.for_object(OWN).create_with(&kind, || Err(refused.clone())).await;
            assert_eq!(created.unwrap_err().message, "no template");
        }
        assert!(log.take().is_empty());
    }
}
