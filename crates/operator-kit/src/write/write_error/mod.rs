//! Failed writes, in Kubernetes terms, and their remedies.

mod cause;
mod located;
mod refusal;
mod unknown_field;

use std::time::Duration;

use kube::core::response::Status;
use thiserror::Error;

use crate::{
    object::Named,
    report::{Category, Reported},
    watch::words,
};

pub use cause::WriteCause;
pub use unknown_field::unknown_fields;

/// The reason for which nothing can be created of a kind whose definition is being deleted.
const DEFINITION_TERMINATING: &str = "create not allowed while custom resource definition is terminating";
/// The reason for which a kind that is new cannot be named as an owner.
const OWNER_KIND_UNKNOWN: &str =
    "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for ";
/// The reason of a `ResourceQuota` that is exhausted.
const QUOTA_EXCEEDED: &str = "exceeded quota: ";
/// The reasons of a `ResourceQuota` that refuses although it is not exhausted: a value is missing on the object,
/// nothing covers its scope, or the quota is so new that its use has not been counted.
const QUOTA_WORDS: [&str; 3] =
    ["failed quota: ", "insufficient quota to match these scopes: ", "status unknown for quota: "];
/// The answer to a JSON patch with a failed test.
const FAILED_TEST: &str = "the server rejected our request due to an error in our request";

/// A write that failed, as far as is known.
#[derive(Debug, Error)]
#[error("{}", cause.told_of(object))]
pub struct WriteError {
    /// The object of the write.
    pub object: Named,
    /// The reason of the failure.
    pub cause: WriteCause,
}

impl WriteError {
    /// The error for an object that is gone.
    #[must_use]
    pub fn gone(kind: &str, name: &str) -> Self {
        Self { object: Named::new(kind, name), cause: WriteCause::Gone }
    }

    pub(crate) fn of(error: kube::Error, object: Named) -> Self {
        let cause = match error {
            kube::Error::Api(status) => cause_of(&status),
            error => WriteCause::Unknown { code: 0, message: words(&error) },
        };
        Self { object, cause }
    }

    /// Converts the error of a JSON patch with a failed test, which the server answers like an invalid object.
    pub(crate) fn of_failed_test(mut self) -> Self {
        if let WriteCause::Invalid { message, .. } = &mut self.cause
            // The API server does not name the failed test, but names the field of an invalid object.
            && message.starts_with(FAILED_TEST)
        {
            self.cause = WriteCause::Changed { message: std::mem::take(message) };
        }
        self
    }

    /// Converts the error of a write to a status.
    pub(crate) fn of_status(self) -> Self {
        let Self { object, cause } = self;
        let cause = match cause {
            WriteCause::Forbidden { message } => WriteCause::StatusRefused { message, is_invalid: false },
            WriteCause::Invalid { message, .. } => {
                // For most policies, the API server answers like for an invalid object.
                let is_invalid = !refusal::is_of_admission(&message);
                WriteCause::StatusRefused { message, is_invalid }
            }
            cause => cause,
        };
        Self { object, cause }
    }
}

impl Reported for WriteError {
    fn category(&self) -> Category {
        match self.cause {
            WriteCause::Invalid { .. } | WriteCause::StatusRefused { .. } => Category::WaitsForChange,
            _ => Category::Transient,
        }
    }

    fn reason(&self) -> &'static str {
        self.cause.reason()
    }

    fn is_expected(&self) -> bool {
        matches!(self.cause, WriteCause::Changed { .. } | WriteCause::Gone | WriteCause::NamespaceTerminating)
    }

    fn retry_after(&self) -> Option<Duration> {
        match self.cause {
            WriteCause::Busy { retry_after, .. } => Some(retry_after),
            // The observation is stale; the event with the current state is on its way.
            WriteCause::Changed { .. } | WriteCause::Gone => Some(Duration::from_secs(1)),
            WriteCause::OwnerKindUnknown => Some(Duration::from_secs(3)),
            _ => None,
        }
    }
}

/// The reason of a failure by the server's answer. Where only its message says it, a value that the message quotes counts for
/// nothing.
fn cause_of(status: &Status) -> WriteCause {
    let message = status.message.clone();
    let grounds = refusal::grounds(&status.message);
    match status.code {
        403 | 405 if grounds.starts_with(DEFINITION_TERMINATING) => WriteCause::DefinitionTerminating,
        409 if status.reason == "AlreadyExists" => WriteCause::AlreadyExists,
        409 => WriteCause::Changed { message },
        // The answer about a kind that is not served is a page, and has no reason.
        404 if status.reason != "NotFound" => WriteCause::KindNotServed,
        404 if is_about(status, "namespaces") => WriteCause::NamespaceMissing,
        404 => WriteCause::Gone,
        403 if has_cause(status, "NamespaceTerminating") => WriteCause::NamespaceTerminating,
        403 if grounds.starts_with(OWNER_KIND_UNKNOWN) => WriteCause::OwnerKindUnknown,
        403 if grounds.starts_with(QUOTA_EXCEEDED) => WriteCause::QuotaExceeded { message },
        403 if QUOTA_WORDS.iter().any(|words| grounds.starts_with(words)) => {
            WriteCause::QuotaRefused { message }
        }
        403 => WriteCause::Forbidden { message },
        // The server answers an apply with an unknown field or a value of a wrong type like a failure of its own.
        _ if unknown_field::is_refused(&message)
            || message.starts_with("failed to create typed patch object") =>
        {
            let message = unknown_field::without_object(message);
            WriteCause::Invalid { fields: unknown_fields(&message), message }
        }
        // A merge patch with the uid of a former object: the server takes it for a change of the uid.
        422 if fields(status).iter().any(|field| field == "metadata.uid") => WriteCause::Changed { message },
        400 | 422 => WriteCause::Invalid { message, fields: fields(status) },
        429 => WriteCause::Busy { message, retry_after: retry_after(status) },
        code => WriteCause::Unknown { code, message },
    }
}

fn is_about(status: &Status, plural: &str) -> bool {
    status.details.as_ref().is_some_and(|details| details.kind == plural)
}

fn has_cause(status: &Status, reason: &str) -> bool {
    status.details.iter().flat_map(|details| &details.causes).any(|cause| cause.reason == reason)
}

/// The fields that the server names; a field that it cannot decode is only in its message.
fn fields(status: &Status) -> Vec<String> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.map(|cause| cause.field.clone()).filter(|field| !field.is_empty()).collect()
}

fn retry_after(status: &Status) -> Duration {
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    Duration::from_secs(u64::from(seconds.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forbidden(message: &str) -> WriteError {
        let status = Status { code: 403, message: message.to_owned(), ..Status::default() };
        WriteError::of(kube::Error::Api(Box::new(status)), Named::new("Pod", "web-x"))
    }

    #[test]
    fn only_an_answer_about_the_object_says_that_it_is_gone() {
        let reason = |status: Status| {
            let error = WriteError::of(kube::Error::Api(Box::new(status)), Named::new("Gadget", "it"));
            (error.reason(), error.is_expected())
        };
        let about = |plural: &str| {
            let details = serde_json::json!({"kind": plural, "name": "it"});
            let status = serde_json::json!({"code": 404, "reason": "NotFound", "details": details});
            reason(serde_json::from_value(status).unwrap())
        };
        assert_eq!(about("gadgets"), ("NotFound", true));
        assert_eq!(about("namespaces"), ("NamespaceMissing", false));
        // As the client reads a page.
        let page = Status::failure("404 page not found\n", "Failed to parse error data").with_code(404);
        assert_eq!(reason(page), ("KindNotServed", false));
    }

    #[test]
    fn a_merge_into_an_object_that_was_created_again_is_a_conflict() {
        let status = serde_json::from_value(serde_json::json!({
            "status": "Failure", "code": 422, "reason": "Invalid",
            "message": "Pod \"web-x\" is invalid: metadata.uid: Invalid value: \"u\": field is immutable",
            "details": {"causes": [{"reason": "FieldValueInvalid", "field": "metadata.uid"}]},
        }));
        let error = WriteError::of(kube::Error::Api(Box::new(status.unwrap())), Named::new("Pod", "web-x"));
        assert_eq!((error.reason(), error.category()), ("Conflict", Category::Transient));
        assert!(error.is_expected());
    }

    #[test]
    fn a_field_that_would_be_dropped_is_bad_input_whatever_code_the_server_answers() {
        let decoded = "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field \"spec.readinessProb\"";
        let applied = "failed to create typed patch object (shop/web-x; v1, Kind=Pod): .spec.readinessProb: field not declared in schema";
        for (message, code) in [(decoded, 400), (decoded, 500), (applied, 500), (applied, 400)] {
            let status = Status::failure(message, "").with_code(code);
            let error = WriteError::of(kube::Error::Api(Box::new(status)), Named::new("Pod", "web-x"));
            assert_eq!((error.reason(), error.category()), ("Invalid", Category::WaitsForChange), "{code}");
            let said = error.to_string();
            assert!(said.contains("would drop spec.readinessProb,") && said.contains(message), "{said}");
        }
        let patched = "\"\" is invalid: patch: Invalid value: \"{\\\"password\\\":1}\": strict decoding error: unknown field \"spec.restartedAt\"";
        let status = Status::failure(patched, "Invalid").with_code(422);
        let said = WriteError::of(kube::Error::Api(Box::new(status)), Named::new("Set", "web")).to_string();
        assert!(said.contains("would drop spec.restartedAt,") && !said.contains("password"), "{said}");
    }

    #[test]
    fn a_quota_that_refuses_is_no_missing_permission() {
        let unsaid =
            forbidden("pods \"web-x\" is forbidden: failed quota: q: must specify limits.cpu for: main");
        assert_eq!(unsaid.reason(), "QuotaRefused");
        assert!(unsaid.to_string().contains("LimitRange") && !unsaid.to_string().contains("permission"));
        assert_eq!(
            forbidden("pods is forbidden: exceeded quota: q, requested: pods=1").reason(),
            "QuotaExceeded"
        );
        let unallowed = forbidden("pods is forbidden: User \"x\" cannot create resource");
        assert_eq!(unallowed.reason(), "Forbidden");
        assert!(unallowed.to_string().contains("ServiceAccount"));
        let limited = forbidden("pods \"web-x\" is forbidden: minimum memory usage per Container is 256Mi");
        assert!(!limited.to_string().contains("ServiceAccount"), "{limited}");
    }

    #[test]
    fn a_status_that_is_refused_is_told_with_who_refuses_and_without_a_word_of_templates() {
        let refused = |code, message: &str| {
            let status = Status { code, message: message.to_owned(), ..Status::default() };
            WriteError::of(kube::Error::Api(Box::new(status)), Named::new("Pod", "web-x")).of_status()
        };
        let by_policy = "pods \"web-x\" is forbidden: ValidatingAdmissionPolicy 'still' with binding 'b' denied request: no";
        let by_webhook = "admission webhook \"still.example.com\" denied the request: no";
        let by_rights = "pods \"web-x\" is forbidden: User \"x\" cannot patch resource \"pods/status\"";
        let by_schema = "Pod \"web-x\" is invalid: status.phase: Unsupported value";
        for (code, message, part, is_of_schema) in [
            (422, by_policy, "the ValidatingAdmissionPolicy 'still' refuses it", false),
            (403, by_policy, "allow the controller's ServiceAccount to write it", false),
            (400, by_webhook, "the admission webhook \"still.example.com\" refuses it", false),
            (403, by_rights, "grant it to the controller's ServiceAccount", false),
            (422, by_schema, "CustomResourceDefinition", true),
        ] {
            let error = refused(code, message);
            assert!(
                matches!(error.cause, WriteCause::StatusRefused { is_invalid, .. } if is_invalid == is_of_schema)
            );
            let said = error.to_string();
            assert!(said.starts_with("the status of Pod \"web-x\"") && said.contains(part), "{said}");
            assert!(!said.contains("template") && !said.contains("parameters"), "{said}");
        }
        let cause = WriteCause::Busy { message: String::new(), retry_after: Duration::ZERO };
        let busy = WriteError { object: Named::new("Pod", "web-x"), cause };
        assert_eq!(busy.of_status().reason(), "ServerBusy");
    }

    #[test]
    fn a_value_that_the_server_quotes_does_not_decide_the_class() {
        let error = |code, message: String| {
            let status = Status { code, message, ..Status::default() };
            WriteError::of(kube::Error::Api(Box::new(status)), Named::new("Pod", "web-x"))
        };
        for quoted in [
            DEFINITION_TERMINATING,
            OWNER_KIND_UNKNOWN,
            QUOTA_EXCEEDED,
            QUOTA_WORDS[0],
            FAILED_TEST,
            "strict decoding error: unknown field 'spec.a'",
            "failed to create typed patch object (a/b; v1, Kind=Pod): .spec.a: field not declared in schema",
            "ValidatingAdmissionPolicy 'p' denied request: no",
        ] {
            let denied = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request";
            let forbidden = error(403, format!("pods \"web-x\" is forbidden: {denied}: {quoted}"));
            assert_eq!(forbidden.of_failed_test().reason(), "Forbidden", "{quoted}");
            let invalid = format!("Pod \"web-x\" is invalid: spec.nodeName: Invalid value: \"{quoted}\": no");
            let invalid = error(422, invalid).of_failed_test();
            assert_eq!((invalid.reason(), invalid.cause.is_unknown_field()), ("Invalid", false), "{quoted}");
            assert!(matches!(invalid.of_status().cause, WriteCause::StatusRefused { is_invalid: true, .. }));
        }
        for quoted in ["failed calling webhook", "etcdserver: no leader"] {
            let failed = error(500, format!("Internal error occurred: cannot convert \"{quoted}\"")).cause;
            assert!(!failed.is_unanswered() && failed.refusal().is_none(), "{quoted}");
        }
        assert!(error(500, "etcdserver: request timed out".into()).cause.is_unanswered());
    }

    #[test]
    fn nobody_is_asked_for_a_permission_while_the_definition_is_being_deleted() {
        let message = "create not allowed while custom resource definition is terminating";
        for code in [403, 405] {
            let status = Status::failure(message, "Forbidden").with_code(code);
            let error = WriteError::of(kube::Error::Api(Box::new(status)), Named::new("Gadget", "it"));
            assert_eq!(error.reason(), "DefinitionTerminating");
            assert!(!error.to_string().contains("grant"), "{error}");
        }
    }
}
