//! Tries an object in a scratch definition: the API server itself says whether it would take it, and what it would drop.

use std::time::Duration;

use catena_cluster::{Change, How, LostField, lost};
use kube::core::Status;
use operator_watch::ApiError;
use serde::Serialize;
use serde_json::{Value, json};

use super::Scratch;

/// Milliseconds before a request is repeated that fails for a reason that may pass.
const PAUSES: [u64; 4] = [200, 400, 800, 1600];
/// The server's words for an object with fields that it does not know.
const UNKNOWN_FIELDS: &str = "strict decoding error";

/// The answer of the server about an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// The reasons for which it would be refused.
    pub refused: Vec<Cause>,
    /// The fields that would be dropped.
    pub lost: Vec<LostField>,
}

impl Verdict {
    /// Adds what another form of the object says.
    pub fn add(&mut self, mut other: Self) {
        other.refused.retain(|cause| !self.refused.contains(cause));
        self.refused.append(&mut other.refused);
        other.lost.retain(|field| !self.lost.contains(field));
        self.lost.append(&mut other.lost);
    }
}

/// A reason for a refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// The field.
    pub field: String,
    /// The message of the server.
    pub message: String,
}

impl Scratch<'_> {
    /// Tries an object without any effect in a version of the definition. Only its name is kept of its metadata, because neither
    /// labels nor owners depend on a schema, of which `present` is the one that the object has.
    pub async fn verdict(&self, version: &str, present: &Value, object: &Value) -> kube::Result<Verdict> {
        let mut tried = object.clone();
        let (kind, name) =
            (self.definition.kind(version), object["metadata"]["name"].as_str().unwrap_or_default());
        tried["apiVersion"] = kind.resource.api_version.as_str().into();
        tried["metadata"] = json!({"name": name});
        let send = async |unknown_fields: &str| -> kube::Result<Value> {
            let how = How { dry_run: true, unknown_fields, ..How::default() };
            retried(async || self.cluster.at(&kind, None, name).write(Change::Create(&tried), how).await)
                .await
        };
        let strict = match send("Strict").await {
            Ok(_) => return Ok(Verdict::default()),
            Err(kube::Error::Api(status)) if status.message.contains(UNKNOWN_FIELDS) => status,
            Err(kube::Error::Api(status)) if status.code == 422 => {
                return Ok(Verdict { refused: causes(&status), ..Verdict::default() });
            }
            Err(error) => return Err(error),
        };
        // Unknown fields are found before anything else is validated.
        match send("Ignore").await {
            Ok(kept) => Ok(Verdict { lost: lost(&tried, &kept, present), ..Verdict::default() }),
            Err(kube::Error::Api(status)) if status.code == 422 => {
                let unknown = ApiError::unknown_fields(&strict.message).into_iter();
                let lost = unknown.map(|path| LostField::named(&path, &tried, present)).collect();
                Ok(Verdict { refused: causes(&status), lost })
            }
            Err(error) => Err(error),
        }
    }
}

/// Repeats a request without effect while the server is busy, or has just learned of the kind.
pub async fn retried<T>(request: impl AsyncFn() -> kube::Result<T>) -> kube::Result<T> {
    for pause in PAUSES {
        match request().await {
            Err(kube::Error::Api(status)) if !matches!(status.code, 404 | 429 | 500..) => {
                return Err(kube::Error::Api(status));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(pause)).await,
            done => return done,
        }
    }
    request().await
}

/// The reasons of a refusal.
pub fn causes(status: &Status) -> Vec<Cause> {
    let listed = status.details.iter().flat_map(|details| &details.causes);
    let listed = listed.filter(|cause| cause.field != "<nil>");
    let cause = |field: &str, message: &str| Cause { field: field.to_owned(), message: message.to_owned() };
    let causes: Vec<_> = listed.map(|found| cause(&found.field, &found.message)).collect();
    if causes.is_empty() { vec![cause("", &status.message)] } else { causes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_forms_of_an_object_say_is_told_once() {
        let cause = |field: &str| Cause { field: field.into(), message: "no".into() };
        let mut verdict = Verdict { refused: vec![cause("spec.a")], ..Verdict::default() };
        verdict.add(Verdict { refused: vec![cause("spec.a"), cause("spec.b")], ..Verdict::default() });
        assert_eq!(verdict.refused, [cause("spec.a"), cause("spec.b")]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_server_is_asked_again_and_a_refusal_is_final() {
        let asked = std::cell::Cell::new(0);
        let answer = async |code: u16| {
            retried(async || -> kube::Result<()> {
                asked.set(asked.get() + 1);
                Err(kube::Error::Api(Status { code, ..Status::default() }.boxed()))
            })
            .await
            .unwrap_err()
        };
        answer(422).await;
        assert_eq!(asked.replace(0), 1);
        answer(429).await;
        assert_eq!(asked.get(), 1 + PAUSES.len());
    }
}
