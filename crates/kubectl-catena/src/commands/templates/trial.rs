//! The trial of one template: rendered with sample values, and created in a dry run.

use std::collections::BTreeMap;

use catena_cluster::{Cluster, Identity, Kind, is_missing_right};
use operator_kit::write::Writer;
use operator_watch::{ApiError, Cause};
use serde::Serialize;
use serde_json::Value;

use super::values::Source;

/// The result for a template.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trial {
    /// Its field in the values.
    pub template: String,
    /// The API version that it renders; empty if it renders nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// The kind that it renders; empty if it renders nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Whether the API server accepts it.
    pub outcome: Outcome,
    /// The problem and the remedy, or a limit of the check.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Whether the API server accepts what a template renders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It accepts it.
    Accepted,
    /// The template does not render, or the server refuses the object.
    Refused,
    /// The server could not be asked.
    Unknown,
}

/// Tries a template.
pub async fn of(cluster: &Cluster, source: &Source, parameters: &BTreeMap<String, String>) -> Trial {
    let (mut api_version, mut kind) = (String::new(), String::new());
    let (outcome, note) = match rendered(source, parameters) {
        Err(problem) => (Outcome::Refused, problem),
        Ok(samples) => {
            let text = |field: &str| {
                samples.first().and_then(|sample| sample[field].as_str()).unwrap_or_default().to_owned()
            };
            (api_version, kind) = (text("apiVersion"), text("kind"));
            accepts(cluster, &api_version, &kind, &samples).await
        }
    };
    Trial { template: source.field.clone(), api_version, kind, outcome, note }
}

/// The sample objects.
///
/// # Errors
/// With the mistakes in the template or the declarations of its parameters.
fn rendered(source: &Source, parameters: &BTreeMap<String, String>) -> Result<Vec<Value>, String> {
    if !source.mistakes.is_empty() {
        return Err(source.mistakes.join("; "));
    }
    let kinds: Vec<_> = source.kinds.iter().map(|(api_version, kind)| (&**api_version, &**kind)).collect();
    let samples = source.templates.samples(&source.name, parameters, source.variables, &kinds);
    samples.map_err(|error| error.to_string())
}

async fn accepts(cluster: &Cluster, api_version: &str, kind: &str, objects: &[Value]) -> (Outcome, String) {
    let wanted = Identity::new(api_version, kind, None, "");
    let served = cluster.kinds.of(&wanted).filter(|served| served.resource.api_version == api_version);
    let Some(Kind { resource, is_namespaced, .. }) = served else {
        let note = format!("the API server does not serve {kind} in {api_version}: install its definition");
        return (Outcome::Unknown, note);
    };
    let namespace = if *is_namespaced { &*cluster.namespace } else { "" };
    let mut result = (Outcome::Accepted, String::new());
    for object in objects {
        let tried = Writer::dry_run_create(&cluster.client, resource, namespace, object).await;
        let (outcome, note) = judge(tried);
        if outcome != Outcome::Accepted {
            return (outcome, note);
        }
        result.1 = note;
    }
    result
}

/// Admission comes after the check of the fields, so that its refusal proves that all fields are known.
fn judge(tried: Result<(), ApiError>) -> (Outcome, String) {
    let Err(error) = tried else { return (Outcome::Accepted, String::new()) };
    let said = error.to_string();
    match error.cause {
        Cause::AlreadyExists => (Outcome::Accepted, String::new()),
        Cause::UnknownField => (Outcome::Refused, said),
        Cause::Invalid => {
            let note =
                format!("{said}; if the value is that of a parameter, give a real one with --parameters");
            (Outcome::Refused, note)
        }
        Cause::Forbidden if !is_missing_right(&error.message) => in_this_namespace(&said),
        Cause::QuotaExceeded | Cause::QuotaRefused => in_this_namespace(&said),
        _ => (Outcome::Unknown, said),
    }
}

fn in_this_namespace(said: &str) -> (Outcome, String) {
    (Outcome::Accepted, format!("the fields are known, but in this namespace {said}"))
}

#[cfg(test)]
mod tests {
    use operator_watch::{Named, Verb};

    use super::*;

    fn judged(cause: Cause, message: &str) -> Outcome {
        judge(Err(ApiError::new(Verb::Write, Named::new("Pod", "web"), cause, message))).0
    }

    #[test]
    fn only_a_server_that_has_read_the_fields_has_accepted_them() {
        let unknown = "strict decoding error: unknown field \"spec.readinessProb\"";
        let policy = "pods \"web\" is forbidden: violates PodSecurity \"restricted:latest\"";
        let right = "pods is forbidden: User \"jane\" cannot create resource \"pods\" in API group \"\"";
        assert_eq!(judge(Ok(())).0, Outcome::Accepted);
        assert_eq!(judged(Cause::UnknownField, unknown), Outcome::Refused);
        assert_eq!(judged(Cause::Invalid, "spec.containers: Required value"), Outcome::Refused);
        assert_eq!(judged(Cause::Forbidden, policy), Outcome::Accepted);
        assert_eq!(judged(Cause::QuotaExceeded, "q"), Outcome::Accepted);
        assert_eq!(judged(Cause::Forbidden, right), Outcome::Unknown);
        assert_eq!(judged(Cause::NotFound, ""), Outcome::Unknown);
        assert_eq!(judged(Cause::Silent, ""), Outcome::Unknown);
    }
}
