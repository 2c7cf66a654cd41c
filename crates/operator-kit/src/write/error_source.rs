use operator_templates::{Subject, Templates};
use operator_watch::{ApiError, Cause, Verb};

use super::Writer;

/// Maximum number of fields whose values are added to a message.
const MAX_FIELDS: usize = 3;

impl Writer {
    /// Adds details to an error, if the server rejects a rendered object: the values of the fields that it names, or for an
    /// unknown field the template that sets it.
    #[must_use]
    pub fn with_source(
        mut error: ApiError,
        templates: &Templates,
        name: &str,
        subject: &Subject<'_>,
        kind: (&str, &str),
    ) -> ApiError {
        if error.verb != Verb::Write || !matches!(error.cause, Cause::Invalid | Cause::UnknownField) {
            return error;
        }
        let Ok(rendered) = templates.render_object(name, subject, &[kind]) else { return error };
        if error.cause == Cause::UnknownField {
            let is_set = !Templates::named_fields("", &error.fields, &rendered).is_empty();
            return if is_set { error.with_template(&format!("the template {name:?}")) } else { error };
        }
        let fields = Templates::named_fields(&error.message, &error.fields, &rendered);
        for (path, value) in fields.into_iter().take(MAX_FIELDS) {
            if let Some(value) = value.filter(|_| !error.message.contains(&path)) {
                error.message = format!("{}; {path} is {value}", error.message);
            }
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const TYPED: &str = r"
apiVersion: v1
kind: Pod
metadata: {name: {{ name }}, labels: {tier: web}}
spec:
  containers:
    - image: {{ parameters.image }}
      ports: [{containerPort: {{ parameters.port }}}]
      note: {{ parameters.port ~ '/' ~ parameters.protocol | default('tcp') }}
";

    fn templates() -> Templates {
        Templates::compile(&[("typed".to_owned(), TYPED.to_owned())].into(), "example.org")
    }

    fn parameters(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn subject(parameters: &BTreeMap<String, String>) -> Subject<'_> {
        Subject {
            name: "web",
            namespace: "shop",
            uid: "u1",
            labels: None,
            annotations: None,
            parameters,
            suffix: "",
        }
    }

    fn refused(given: &[(&str, &str)], message: &str, field: &str) -> String {
        let given = parameters(given);
        let cause = if message.contains("unknown field") { Cause::UnknownField } else { Cause::Invalid };
        let mut error = ApiError::new(Verb::Write, ("Pod", "web"), cause, message);
        error.fields.push(field.to_owned());
        Writer::with_source(error, &templates(), "typed", &subject(&given), ("v1", "Pod")).to_string()
    }

    #[test]
    fn where_the_server_names_a_field_its_value_is_told() {
        let port = "spec.containers[0].ports[0].containerPort";
        let said = refused(&[("image", "a"), ("port", "abc")], "no number", port);
        assert!(said.contains(&format!("no number; {port} is \"abc\"; ")), "{said}");
        let said =
            refused(&[("image", "a"), ("port", "1"), ("protocol", "x")], "bad", "spec.containers[0].note");
        assert!(said.contains("note is \"1/x\";"), "{said}");
        let long = "x".repeat(1000);
        let said = refused(&[("image", "a"), ("port", &long)], "no number", port);
        assert!(said.contains(&format!("{port} is a longer string;")) && !said.contains(&long), "{said}");
        let told = format!("{port}: Invalid value: abc");
        let said = refused(&[("image", "a"), ("port", "abc")], &told, port);
        assert!(said.contains(&told) && !said.contains(&format!("{port} is")), "it says so itself: {said}");
    }

    #[test]
    fn a_field_that_the_server_does_not_know_is_told_with_the_template_that_sets_it() {
        let unknown = |field: &str| format!("strict decoding error: unknown field \"{field}\"");
        let given = [("image", "a"), ("port", "1")];
        let note = "spec.containers[0].note";
        let said = refused(&given, &unknown(note), note);
        assert!(said.contains("the template \"typed\" sets it") && !said.contains("note is"), "{said}");
        let said = refused(&given, &unknown("spec.restartedAt"), "spec.restartedAt");
        assert!(said.contains("spec.restartedAt") && !said.contains("the template \"typed\""), "{said}");
    }

    #[test]
    fn a_refusal_of_many_fields_is_looked_into_for_few_of_them() {
        let given = parameters(&[("image", "nginx:1"), ("port", "abc")]);
        let fields =
            ["kind", "apiVersion", "metadata.labels.tier", "spec.containers[0].ports[0].containerPort"];
        let mut error = ApiError::new(Verb::Write, ("Pod", "web"), Cause::Invalid, "no");
        error.fields = fields.map(str::to_owned).to_vec();
        let told =
            Writer::with_source(error, &templates(), "typed", &subject(&given), ("v1", "Pod")).to_string();
        assert!(told.contains("tier is \"web\"") && !told.contains("containerPort"), "{told}");
    }
}
