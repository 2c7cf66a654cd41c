//! The class of each answer, and the words for it.

use kube::core::request::Error as Unbuilt;
use serde_json::json;

use super::{
    cause::{DEFINITION_TERMINATING, OWNER_KIND_UNKNOWN, QUOTA_EXCEEDED, QUOTA_REFUSALS},
    *,
};

/// The answer to a request for an object of this kind and name.
fn answered(verb: Verb, status: Status, (kind, name): (&str, &str)) -> ApiError {
    ApiError::of(verb, &kube::Error::Api(status.boxed()), (kind, name))
}

fn refused(code: u16, message: &str) -> ApiError {
    answered(Verb::Write, Status::failure(message, "").with_code(code), ("Pod", "web-x"))
}

fn forbidden(message: &str) -> ApiError {
    refused(403, message)
}

/// The reason of a failure, and whether somebody has to change something.
fn reported(error: &ApiError) -> (&'static str, bool) {
    let Failure { reason, is_stalled, .. } = error.clone().into();
    (reason, is_stalled)
}

/// The answer that there is no object with this name.
fn none_named(name: &str, of_kind: &str) -> Status {
    let details = json!({"kind": of_kind, "name": name});
    serde_json::from_value(json!({"code": 404, "reason": "NotFound", "message": "none", "details": details}))
        .unwrap()
}

/// The answer about a path that the server does not know, as the client reads a page.
fn page() -> Status {
    Status::failure("404 page not found\n", "Failed to parse error data").with_code(404)
}

#[test]
fn only_an_answer_about_the_object_says_that_it_is_gone() {
    for (verb, status, cause) in [
        (Verb::Write, none_named("it", "gadgets"), Cause::NotFound),
        (Verb::Write, none_named("", ""), Cause::NotFound),
        (Verb::Write, none_named("shop", "namespaces"), Cause::NamespaceMissing),
        (Verb::Write, page(), Cause::KindNotServed),
        (Verb::Read, none_named("it", "gadgets"), Cause::NotFound),
        (Verb::Read, none_named("", ""), Cause::KindNotServed),
        (Verb::Read, page(), Cause::KindNotServed),
        (Verb::Watch, none_named("it", "gadgets"), Cause::KindNotServed),
        (Verb::Watch, page(), Cause::KindNotServed),
    ] {
        let error = answered(verb, status.clone(), ("Gadget", "it"));
        assert_eq!(error.cause, cause, "{verb:?} {status:?}");
        let is_expected = (verb, cause) == (Verb::Write, Cause::NotFound);
        assert_eq!(Failure::from(error).is_expected, is_expected, "{verb:?} {status:?}");
    }
    for verb in [Verb::Read, Verb::Write] {
        let error = answered(verb, none_named("shop", "namespaces"), ("Namespace", "shop"));
        assert_eq!(error.cause, Cause::NotFound, "it is the object itself");
    }
}

#[test]
fn what_cannot_be_read_is_told_in_the_servers_words_and_without_how_they_came() {
    let read = |status| answered(Verb::Read, status, ("Job", "cook"));
    let error = read(Status::failure("jobs is forbidden", "Forbidden").with_code(403));
    assert_eq!(
        error.to_string(),
        "Job \"cook\" cannot be read: jobs is forbidden; grant get, list and watch on its kind to the controller's ServiceAccount"
    );
    assert_eq!(reported(&error), ("Forbidden", true));
    let error = read(Status::failure("", "ServiceUnavailable").with_code(503));
    assert_eq!(
        error.to_string(),
        "cannot look up Job \"cook\": the API server answered 503 ServiceUnavailable; retrying"
    );
    assert_eq!(reported(&error), ("LookUpFailed", false));
    let busy = read(Status::failure("wait", "TooManyRequests").with_code(429));
    assert_eq!((reported(&busy), Failure::from(busy).retry_after), (("LookUpFailed", false), None));
    let deep = ApiError::new(Verb::Read, ("Job", "cook"), Cause::Unreadable, "too deep");
    assert_eq!(reported(&deep), ("Unreadable", true));
}

#[test]
fn a_kind_that_cannot_be_watched_is_told_with_what_to_do() {
    let watch = |status| answered(Verb::Watch, status, ("Gadget", "")).to_string();
    let forbidden = Status::failure("gadgets is forbidden: no", "Forbidden").with_code(403);
    for (status, start, end) in [
        (page(), "Gadget is not served by the cluster: install", "the watch then starts by itself"),
        (forbidden, "Gadget cannot be watched: gadgets is forbidden: no; grant get", "or correct its plural"),
        (Status::failure("no", "").with_code(500), "Gadget cannot be watched: no;", "; retrying"),
    ] {
        let said = watch(status);
        assert!(said.starts_with(start) && said.ends_with(end), "{said}");
    }
}

#[test]
fn a_merge_into_an_object_that_was_created_again_is_a_conflict() {
    let status = serde_json::from_value(json!({
        "status": "Failure", "code": 422, "reason": "Invalid",
        "message": "Pod \"web-x\" is invalid: metadata.uid: Invalid value: \"u\": field is immutable",
        "details": {"causes": [{"reason": "FieldValueInvalid", "field": "metadata.uid"}]},
    }));
    let error = answered(Verb::Write, status.unwrap(), ("Pod", "web-x"));
    assert_eq!(reported(&error), ("Conflict", false));
    assert!(Failure::from(error).is_expected);
}

#[test]
fn a_webhook_that_refuses_is_told_whatever_code_it_chooses() {
    for code in [403, 404, 409, 429] {
        let message = "admission webhook \"hold.example\" denied the request: no";
        let error = refused(code, message);
        assert_eq!(reported(&error), ("Forbidden", false), "{code}");
        assert!(!Failure::from(error).is_expected, "{code}");
    }
}

#[test]
fn a_field_that_would_be_dropped_is_bad_input_whatever_code_the_server_answers() {
    let decoded = "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field \"spec.readinessProb\"";
    let applied = "failed to create typed patch object (shop/web-x; v1, Kind=Pod): .spec.readinessProb: field not declared in schema";
    for (message, code) in [(decoded, 400), (decoded, 500), (applied, 500), (applied, 400)] {
        let error = refused(code, message);
        assert_eq!(reported(&error), ("Invalid", true), "{code}");
        let said = error.to_string();
        assert!(said.contains("would drop spec.readinessProb,") && said.contains(message), "{said}");
    }
    let patched = "\"\" is invalid: patch: Invalid value: \"{\\\"password\\\":1}\": strict decoding error: unknown field \"spec.restartedAt\"";
    let status = Status::failure(patched, "Invalid").with_code(422);
    let said = answered(Verb::Write, status, ("Set", "web")).to_string();
    assert!(said.contains("would drop spec.restartedAt,") && !said.contains("password"), "{said}");
}

#[test]
fn a_quota_that_refuses_is_no_missing_permission() {
    let unsaid = forbidden("pods \"web-x\" is forbidden: failed quota: q: must specify limits.cpu for: main");
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
    let by_policy =
        "pods \"web-x\" is forbidden: ValidatingAdmissionPolicy 'still' with binding 'b' denied request: no";
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
        let error = refused(code, message).of_status();
        assert_eq!(error.cause == Cause::Invalid, is_of_schema, "{message}");
        assert_eq!(reported(&error), ("StatusRefused", true));
        let said = error.to_string();
        assert!(said.starts_with("the status of Pod \"web-x\"") && said.contains(part), "{said}");
        assert!(!said.contains("template") && !said.contains("parameters"), "{said}");
    }
    assert_eq!(refused(429, "wait").of_status().reason(), "ServerBusy");
}

#[test]
fn a_value_that_the_server_quotes_does_not_decide_the_class() {
    for quoted in [
        DEFINITION_TERMINATING,
        OWNER_KIND_UNKNOWN,
        QUOTA_EXCEEDED,
        QUOTA_REFUSALS[0],
        FAILED_TEST,
        "strict decoding error: unknown field 'spec.a'",
        "failed to create typed patch object (a/b; v1, Kind=Pod): .spec.a: field not declared in schema",
        "ValidatingAdmissionPolicy 'p' denied request: no",
    ] {
        let denied = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request";
        let forbidden = refused(403, &format!("pods \"web-x\" is forbidden: {denied}: {quoted}"));
        assert_eq!(forbidden.of_failed_test().reason(), "Forbidden", "{quoted}");
        let invalid = format!("Pod \"web-x\" is invalid: spec.nodeName: Invalid value: \"{quoted}\": no");
        let invalid = refused(422, &invalid).of_failed_test();
        assert_eq!(invalid.cause, Cause::Invalid, "{quoted}");
        assert_eq!(invalid.of_status().cause, Cause::Invalid, "{quoted}");
    }
    for quoted in ["failed calling webhook", "etcdserver: no leader"] {
        let failed = refused(500, &format!("Internal error occurred: cannot convert \"{quoted}\""));
        assert_eq!(failed.cause, Cause::Failed, "{quoted}");
    }
    assert!(refused(500, "etcdserver: request timed out").is_unanswered());
}

#[test]
fn nobody_is_asked_for_a_permission_while_the_definition_is_being_deleted() {
    let message = "create not allowed while custom resource definition is terminating";
    for code in [403, 405] {
        let error = refused(code, message);
        assert_eq!(error.reason(), "DefinitionTerminating");
        assert!(!error.to_string().contains("grant"), "{error}");
    }
}

#[test]
fn a_write_may_have_taken_effect_unless_the_server_refused_it_or_asked_a_webhook_in_vain() {
    let lost = |error: kube::Error| ApiError::of(Verb::Write, &error, ("Pod", "web-x"));
    let silent = lost(kube::Error::Service(Silence(Duration::from_secs(3)).into()));
    assert_eq!(silent.to_string(), "writing Pod \"web-x\" failed: the API server did not answer within 3 s");
    assert_eq!((silent.cause, silent.reason()), (Cause::Silent, "WriteFailed"));
    let webhook = "Internal error occurred: failed calling webhook \"a.b\": context deadline exceeded";
    for (error, is_unanswered, may_have_worked, is_refusal, is_its_own) in [
        (silent, true, true, false, false),
        (lost(kube::Error::Service("reset".into())), true, true, false, false),
        (lost(kube::Error::BuildRequest(Unbuilt::Validation("no name".into()))), false, false, false, false),
        (refused(504, "timeout"), true, true, false, true),
        (refused(500, "no"), false, true, false, true),
        (refused(413, "too large"), false, false, false, true),
        (refused(500, webhook), false, false, true, true),
        (refused(403, "no"), false, false, true, true),
        (refused(422, "no"), false, false, true, true),
        (refused(409, "no"), false, false, false, true),
        (refused(429, "no"), false, false, false, false),
    ] {
        let told = (error.is_unanswered(), error.may_have_taken_effect(), error.is_refusal());
        assert_eq!(told, (is_unanswered, may_have_worked, is_refusal), "{error}");
        assert_eq!(error.concerns_one_object(), is_its_own, "{error}");
    }
}
