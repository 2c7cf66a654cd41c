//! What only the message of the API server says: the gatekeeper that refuses a write, because admission has no separate field for
//! it, and the fields that the server would drop.

use super::ApiError;

/// The text before the name of a policy in a message of admission.
const POLICY: &str = "ValidatingAdmissionPolicy '";
/// The text before the name of a webhook that refuses.
const WEBHOOK: &str = "admission webhook \"";
/// The text before the name of a webhook that does not answer.
const UNANSWERED_WEBHOOK: &str = "failed calling webhook";

/// The reason in a refusal: what follows the refused object, whose name contains no `: `.
pub(super) fn grounds(message: &str) -> &str {
    let refused = message.split_once(" is forbidden: ").filter(|(object, _)| !object.contains(": "));
    refused.map_or(message, |(_, grounds)| grounds)
}

/// The server's own words at the begin of a message: what it quotes comes after them.
pub(super) fn own_text(message: &str) -> &str {
    message.split_once('"').map_or(message, |(words, _)| words)
}

/// Whether a webhook does not answer, which holds up the request like a refusal.
pub(super) fn is_unanswered_webhook(message: &str) -> bool {
    own_text(message).contains(UNANSWERED_WEBHOOK)
}

/// The policy or webhook that refuses; `None` if the API server itself does.
pub(super) fn gatekeeper(message: &str) -> Option<&str> {
    let grounds = grounds(message);
    [(POLICY, '\''), (WEBHOOK, '"')].into_iter().find_map(|(before, quote)| {
        let name = grounds.strip_prefix(before)?;
        grounds.get(..before.len() + name.find(quote)? + quote.len_utf8())
    })
}

/// Its words before the fields that it cannot decode.
const REFUSED: &str = "strict decoding error: ";
/// Its words before the object of a patch, and between that and the reason. Within the object, quotes are escaped.
const PATCHED: [&str; 2] = ["\"\" is invalid: patch: Invalid value: ", "\": strict decoding error: "];
/// Its words before the object of an apply.
const TYPED: &str = "failed to create typed patch object (";
/// Its words before each of them.
const DECODED: [&str; 2] = ["unknown field \"", "duplicate field \""];
/// Its words after a field of an apply that the schema lacks.
const APPLIED: &str = ": field not declared in schema";

/// Whether the server refuses a write because it would drop a field of it.
pub(super) fn is_refused(message: &str) -> bool {
    is_undecoded(message) || is_undeclared(message) || reason_of_patch(message).is_some()
}

/// Only the kind precedes the reason, as in `Pod in version "v1" cannot be handled as a Pod: `.
fn is_undecoded(message: &str) -> bool {
    message.split_once(REFUSED).is_some_and(|(before, _)| {
        before.is_empty() || before.strip_suffix(": ").is_some_and(|kind| !kind.contains(": "))
    })
}

/// The path of a field precedes the reason, and a value follows any other reason.
fn is_undeclared(message: &str) -> bool {
    let fields = message.strip_prefix(TYPED).and_then(|object| object.split_once("): "));
    let is_undeclared = |line: &str| line.find(": ").is_some_and(|end| line[end..].starts_with(APPLIED));
    fields.is_some_and(|(_, fields)| fields.lines().any(is_undeclared))
}

/// The reason for which a patch is refused: the server repeats the whole object in front of it, which may be a Secret.
fn reason_of_patch(message: &str) -> Option<&str> {
    let [before, after] = PATCHED;
    let refused = message.trim_start().strip_prefix(before)?;
    let (object, _) = refused.rsplit_once(after).filter(|(object, _)| !object.ends_with('\\'))?;
    refused.get(object.len() + after.len() - REFUSED.len()..)
}

/// The message without the object of a patch.
pub(super) fn without_object(message: &str) -> &str {
    reason_of_patch(message).unwrap_or(message)
}

impl ApiError {
    /// The fields that a message of the API server names as unknown, in its notation; none for another message.
    #[must_use]
    pub fn unknown_fields(message: &str) -> Vec<String> {
        let refused = message.split_once(REFUSED).map_or("", |(_, fields)| fields);
        let decoded = DECODED.iter().flat_map(|before| refused.split(before).skip(1)).filter_map(until_quote);
        let applied = message.split(APPLIED).filter_map(|before| before.rsplit(char::is_whitespace).next());
        let applied = applied.filter_map(|path| path.strip_prefix('.'));
        let mut fields: Vec<String> = decoded.chain(applied).map(str::to_owned).collect();
        fields.dedup();
        fields
    }
}

fn until_quote(text: &str) -> Option<&str> {
    text.split_once('"').map(|(field, _)| field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_would_be_dropped_is_found_in_either_way_in_which_the_server_names_it() {
        for (message, fields) in [
            (
                "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field \"spec.containers[0].readinessProb\", unknown field \"spec.b\"",
                vec!["spec.containers[0].readinessProb", "spec.b"],
            ),
            (
                "Gadget in version \"v1\" cannot be handled as a Gadget: strict decoding error: duplicate field \"spec.a\"",
                vec!["spec.a"],
            ),
            (
                "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): .spec.template.spec.containers[name=\"main\"].readinessProb: field not declared in schema",
                vec!["spec.template.spec.containers[name=\"main\"].readinessProb"],
            ),
            (
                "failed to create typed patch object (shop/web; v1, Kind=Pod): errors:\n  .spec.a: field not declared in schema\n  .spec.b: field not declared in schema",
                vec!["spec.a", "spec.b"],
            ),
        ] {
            assert!(is_refused(message), "{message}");
            assert_eq!(ApiError::unknown_fields(message), fields, "{message}");
        }
        let patched = "\"\" is invalid: patch: Invalid value: \"{\\\"data\\\":{\\\"password\\\":\\\"strict decoding error: unknown field \"x\"\\\"}}\": strict decoding error: unknown field \"spec.restartedAt\"";
        let said = without_object(patched);
        assert_eq!(said, "strict decoding error: unknown field \"spec.restartedAt\"");
        assert_eq!(ApiError::unknown_fields(said), ["spec.restartedAt"]);
        let typed = "failed to create typed patch object (shop/web; v1, Kind=Pod): .spec.a: expected string, got &value.valueUnstructured{Value:1}";
        for other in [typed, "json: unknown field \"bases2\""] {
            assert!(!is_refused(other) && ApiError::unknown_fields(other).is_empty());
        }
    }
}
