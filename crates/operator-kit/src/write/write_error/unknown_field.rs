//! Fields that the API server would drop: it names them in its message only, in one of two ways.

/// Its words before the fields that it cannot decode.
const REFUSED: &str = "strict decoding error: ";
/// Its words before each of them.
const DECODED: [&str; 2] = ["unknown field \"", "duplicate field \""];
/// Its words after a field of an apply that the schema lacks.
const APPLIED: &str = ": field not declared in schema";

/// Whether the server refuses a write because it would drop a field of it.
pub(super) fn is_refused(message: &str) -> bool {
    message.contains(REFUSED) || message.contains(APPLIED)
}

/// The message without the object: for a patch, the server repeats the whole object in front of the reason, which may
/// be a Secret.
pub(super) fn without_object(message: String) -> String {
    match message.rfind(REFUSED) {
        Some(start) if message[..start].contains("Invalid value: ") => message[start..].to_owned(),
        _ => message,
    }
}

/// The fields that a message of the API server names as unknown, in its notation; none for another message.
#[must_use]
pub fn unknown_fields(message: &str) -> Vec<String> {
    let decoded = DECODED.iter().flat_map(|before| message.split(before).skip(1)).filter_map(until_quote);
    let applied = message.split(APPLIED).filter_map(|before| before.rsplit(char::is_whitespace).next());
    let applied = applied.filter_map(|path| path.strip_prefix('.'));
    let mut fields: Vec<String> = decoded.chain(applied).map(str::to_owned).collect();
    fields.dedup();
    fields
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
            assert_eq!(unknown_fields(message), fields, "{message}");
        }
        let patched = "\"\" is invalid: patch: Invalid value: \"{\\\"data\\\":{\\\"password\\\":\\\"strict decoding error: unknown field \"x\"\\\"}}\": strict decoding error: unknown field \"spec.restartedAt\"";
        let said = without_object(patched.to_owned());
        assert_eq!(said, "strict decoding error: unknown field \"spec.restartedAt\"");
        assert_eq!(unknown_fields(&said), ["spec.restartedAt"]);
        let typed = "failed to create typed patch object (shop/web; v1, Kind=Pod): .spec.a: expected string, got &value.valueUnstructured{Value:1}";
        assert!(!is_refused(typed) && unknown_fields(typed).is_empty());
    }
}
