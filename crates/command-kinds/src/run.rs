//! How the commands of a kind are carried out.

use std::{
    collections::BTreeMap,
    fmt::{self, Debug},
    sync::Arc,
};

use catena_api::keys;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use operator_templates::{Expression, ExpressionError, Templates};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::fields::Fields;

/// The variables of expressions and of the patch.
const VARIABLES: [&str; 4] = ["command", "target", "ran", "now"];
/// The name of the only template of a kind.
const PATCH: &str = "patch";
/// Seconds from its creation after which a command fails, unless its kind says otherwise.
pub const DEFAULT_DEADLINE: i64 = 3600;
/// Parts of the names of fields that tell a new effect from an old one, in lower case.
const DATES: [&str; 4] = ["observedgeneration", "handled", "hash", "annotations"];
/// The mistake in an expression that reads none of them.
const UNDATED: &str = "the patch changes only annotations or labels, which gives no new generation, and this expression reads neither an observedGeneration, nor a field with the handled annotation, nor a hash: an old status would be taken for the effect; read one of them";
/// The annotations that are command-runner's records.
const RECORDS: [&str; 2] = [keys::COMMANDS, keys::RUN];

/// How the commands of a kind are carried out. In a configuration, the patch and the expressions are text.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Run<E = Expression, P = Patch, D = E> {
    /// The change of the target.
    pub patch: P,
    /// Why a command cannot run yet. The first that applies is reported.
    #[serde(default)]
    pub wait: Vec<Rule<E>>,
    /// Why it can never run.
    #[serde(default)]
    pub refuse: Vec<Rule<E>>,
    /// Whether it has succeeded, once it has run.
    pub succeeded: E,
    /// Why it can no longer succeed, once it has run.
    #[serde(default)]
    pub failed: Vec<Rule<E>>,
    /// How far it is, as `2/5`.
    pub progress: Option<E>,
    /// What is told of it, once it has run.
    pub message: Option<E>,
    /// The seconds from its creation after which it fails.
    deadline: Option<D>,
    /// Whether it goes first, and ends all older commands of its target once it has run.
    #[serde(default)]
    pub supersedes: bool,
}

/// A rule about a command and its target.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule<E = Expression> {
    when: E,
    reason: String,
    message: Option<String>,
    message_expression: Option<E>,
}

/// A reason, one `PascalCase` word, and a message for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The reason.
    pub reason: String,
    /// The message.
    pub message: String,
}

/// The change of a target, as a template.
#[derive(Clone)]
pub struct Patch {
    template: Arc<Templates>,
    /// Whether only a new generation dates its effect.
    needs_spec: bool,
}

/// What expressions and the patch read.
#[derive(Clone, Debug)]
pub struct Inputs<'i> {
    /// The command.
    pub command: &'i Value,
    /// Its target, live.
    pub target: &'i Value,
    /// The last commands that ran on the target: a list of `created` and `uid`.
    pub ran: Value,
    /// The present time.
    pub now: Value,
}

/// A run, as it is configured.
pub(crate) type RunFile = Run<String, String, IntOrString>;

impl RunFile {
    /// # Errors
    /// The wrong field, the problem and the remedy.
    pub(crate) fn compile(self, kind: &Fields<'_>) -> Result<Run, String> {
        let fields = kind.within("run", &VARIABLES);
        let rules = |list: &str, rules: Vec<Rule<String>>| {
            let rules = rules.into_iter().enumerate();
            let compiled = rules
                .map(|(index, rule)| rule.compile(&fields.within(&format!("{list}[{index}]"), &VARIABLES)));
            compiled.collect::<Result<Vec<_>, _>>()
        };
        let succeeded = fields.compile("succeeded", &self.succeeded)?;
        let is_date = |field: &String| DATES.iter().any(|date| field.to_ascii_lowercase().contains(date));
        let needs_spec = !succeeded.fields().iter().any(is_date);
        // What its values and conditions give is known only when it is rendered.
        let has_spec =
            Templates::top_keys(&self.patch).is_none_or(|keys| keys.iter().any(|key| key == "spec"));
        fields.check(has_spec || !needs_spec, "succeeded", UNDATED)?;
        let template = Templates::compile(&BTreeMap::from([(PATCH.to_owned(), self.patch)]), keys::GROUP);
        if let Some(problem) = template.broken().next() {
            return Err(fields.problem(PATCH, &problem.to_string()));
        }
        let deadline = self.deadline.map(|deadline| match deadline {
            IntOrString::Int(seconds) => seconds.to_string(),
            IntOrString::String(expression) => expression,
        });
        Ok(Run {
            patch: Patch { template: Arc::new(template), needs_spec },
            wait: rules("wait", self.wait)?,
            refuse: rules("refuse", self.refuse)?,
            succeeded,
            failed: rules("failed", self.failed)?,
            progress: fields.optional("progress", self.progress.as_ref())?,
            message: fields.optional("message", self.message.as_ref())?,
            deadline: kind.within("run", &["command"]).optional("deadline", deadline.as_ref())?,
            supersedes: self.supersedes,
        })
    }
}

impl Rule<String> {
    fn compile(self, fields: &Fields<'_>) -> Result<Rule, String> {
        let Self { when, reason, message, message_expression } = self;
        let is_word = reason.starts_with(|first: char| first.is_ascii_uppercase())
            && reason.chars().all(|character| character.is_ascii_alphanumeric());
        fields.check(is_word, "reason", &format!("{reason:?} is not one PascalCase word; write one"))?;
        if message.is_some() == message_expression.is_some() {
            return Err(format!("{}: needs either message or messageExpression; set one", fields.name));
        }
        Ok(Rule {
            when: fields.compile("when", &when)?,
            reason,
            message,
            message_expression: fields.optional("messageExpression", message_expression.as_ref())?,
        })
    }
}

impl Rule {
    /// What the first of these rules that applies tells.
    ///
    /// # Errors
    /// When it is unknown whether one applies.
    pub fn first(rules: &[Self], inputs: &Inputs<'_>) -> Result<Option<Told>, String> {
        rules.iter().find_map(|rule| rule.told(inputs).transpose()).transpose()
    }

    /// What this rule tells if it applies.
    ///
    /// # Errors
    /// When that is unknown.
    pub fn told(&self, inputs: &Inputs<'_>) -> Result<Option<Told>, String> {
        let applies = self.when.bool(&inputs.variables()).map_err(|error| error.to_string())?;
        Ok(applies.then(|| Told { reason: self.reason.clone(), message: self.message(inputs) }))
    }

    fn message(&self, inputs: &Inputs<'_>) -> String {
        let Some(expression) = &self.message_expression else {
            return self.message.clone().unwrap_or_default();
        };
        let message = expression.optional_text(&inputs.variables());
        message.map_or_else(|error| error.to_string(), Option::unwrap_or_default)
    }
}

impl Inputs<'_> {
    /// By their names.
    #[must_use]
    pub fn variables(&self) -> [(&str, &Value); 4] {
        let [command, target, ran, now] = VARIABLES;
        [(command, self.command), (target, self.target), (ran, &self.ran), (now, &self.now)]
    }
}

impl Patch {
    /// The fields of the target that a command changes. No value of its author changes anything else.
    ///
    /// # Errors
    /// When it cannot be rendered, would change anything but `spec`, labels and annotations, or has no effect that can be dated.
    pub fn render(&self, inputs: &Inputs<'_>) -> Result<Value, String> {
        let rendered = self.template.render_fields(PATCH, &inputs.variables());
        let mut fields = rendered.map_err(|error| error.to_string())?;
        only(&mut fields, ["spec", "metadata"])?;
        if self.needs_spec && !fields.contains_key("spec") {
            return Err(format!("run.succeeded: {UNDATED}"));
        }
        let Some(metadata) = fields.get_mut("metadata") else { return Ok(fields.into()) };
        let metadata = metadata.as_object_mut().ok_or_else(|| no_map("metadata"))?;
        only(metadata, ["labels", "annotations"])?;
        for (field, entries) in metadata.iter() {
            let entries = entries.as_object().ok_or_else(|| no_map(&format!("metadata.{field}")))?;
            if let Some(key) = RECORDS.into_iter().find(|key| entries.contains_key(*key)) {
                return Err(format!("the patch sets {key}, which is a record of command-runner; remove it"));
            }
        }
        Ok(fields.into())
    }
}

/// Refuses other fields than these. A null would remove the whole spec, or all labels: it is taken for nothing.
fn only(fields: &mut Map<String, Value>, allowed: [&str; 2]) -> Result<(), String> {
    if let Some(other) = fields.keys().find(|field| !allowed.contains(&field.as_str())) {
        return Err(format!(
            "the patch sets {other}; it may set spec, metadata.labels and metadata.annotations"
        ));
    }
    fields.retain(|_, field| !field.is_null());
    Ok(())
}

fn no_map(field: &str) -> String {
    format!("the patch sets {field} to what is no map; write one entry per line")
}

impl Debug for Patch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(PATCH)
    }
}

impl Run {
    /// The seconds from its creation after which a command fails. A field that the command does not set counts for the default.
    ///
    /// # Errors
    /// When the expression has no whole number as its value.
    pub fn deadline(&self, command: &Value) -> Result<i64, ExpressionError> {
        let Some(expression) = &self.deadline else { return Ok(DEFAULT_DEADLINE) };
        match expression.optional_int(&[("command", command)]) {
            Err(error) if error.missing().is_none() => Err(error),
            read => Ok(read.ok().flatten().unwrap_or(DEFAULT_DEADLINE)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn compile(more: &Value) -> Result<Run, String> {
        let mut file = json!({
            "patch": "spec: {restartedAt: {{ command.metadata.creationTimestamp }}}",
            "succeeded": "target.status.ready",
        });
        for (field, value) in more.as_object().unwrap() {
            file[field] = value.clone();
        }
        let file: RunFile = serde_json::from_value(file).map_err(|error| error.to_string())?;
        file.compile(&Fields::of_kind("a"))
    }

    fn render(patch: &str, command: &Value) -> Result<Value, String> {
        let run = compile(&json!({"patch": patch, "succeeded": "target.status.hash == ''"})).unwrap();
        let target = json!({"metadata": {"name": "web"}});
        run.patch.render(&Inputs { command, target: &target, ran: json!([]), now: json!("now") })
    }

    #[test]
    fn a_patch_has_the_fields_of_the_template_and_values_of_the_command() {
        let command = json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"n": 3}});
        let patch = "spec:\n  at: {{ command.metadata.creationTimestamp }}\n  count: {{ command.spec.n }}";
        let expected = json!({"spec": {"at": "2026-01-01T00:00:00Z", "count": 3}});
        assert_eq!(render(patch, &command), Ok(expected));
    }

    #[test]
    fn a_value_of_an_author_changes_nothing_else() {
        let patch = "metadata: {annotations: {a: {{ command.spec.a }}}}";
        for hostile in
            ["x}, labels: {b: c", "\"\n  finalizers: [a]", "$(SECRET)", "{{ target.metadata.name }}"]
        {
            let rendered = render(patch, &json!({"spec": {"a": hostile}}));
            assert_eq!(rendered, Ok(json!({"metadata": {"annotations": {"a": hostile}}})));
        }
    }

    #[test]
    fn only_single_values_of_limited_length_are_taken_from_a_command() {
        let patch = "spec: {a: {{ command.spec.a }}}";
        for (value, problem) in
            [(json!({"b": 1}), "a map"), (json!([1]), "a list"), (json!("x".repeat(32 * 1024 + 1)), "32 KiB")]
        {
            let refusal = render(patch, &json!({"spec": {"a": value}})).unwrap_err();
            assert!(refusal.contains(problem), "{refusal}");
        }
        render(patch, &json!({"spec": {"a": "x".repeat(32 * 1024)}})).unwrap();
    }

    #[test]
    fn what_identifies_the_target_and_its_status_are_not_changed() {
        for (patch, field) in [
            ("{kind: Secret}", "kind"),
            ("{status: {ready: true}}", "status"),
            ("{metadata: {name: {{ command.spec.a }}}}", "name"),
            ("{metadata: {finalizers: [a]}}", "finalizers"),
            ("{data: {a: b}}", "data"),
        ] {
            let refusal = render(patch, &json!({"spec": {"a": "b"}})).unwrap_err();
            assert!(refusal.starts_with(&format!("the patch sets {field};")), "{refusal}");
        }
    }

    #[test]
    fn labels_and_annotations_are_maps_or_nothing_and_records_are_not_among_them() {
        let metadata = |text: &str| render(&format!("spec: {{a: b}}\nmetadata: {text}"), &json!({"a": "b"}));
        for (text, field) in [
            ("{{ command.a }}", "metadata"),
            ("[a]", "metadata"),
            ("{annotations: {{ command.a }}}", "metadata.annotations"),
            ("{annotations: [a]}", "metadata.annotations"),
            ("{labels: 1}", "metadata.labels"),
        ] {
            let refusal = metadata(text).unwrap_err();
            assert!(refusal.starts_with(&format!("the patch sets {field} to what is no map;")), "{refusal}");
        }
        for text in ["{annotations: {catena.dev/commands: a}}", "{annotations: {catena.dev/run: a}}"] {
            let refusal = metadata(text).unwrap_err();
            assert!(refusal.contains("which is a record of command-runner"), "{refusal}");
        }
        for (text, left) in [
            ("null", json!({"spec": {"a": "b"}})),
            (
                "{annotations: null, labels: {a: null}}",
                json!({"spec": {"a": "b"}, "metadata": {"labels": {"a": null}}}),
            ),
        ] {
            assert_eq!(metadata(text), Ok(left));
        }
    }

    #[test]
    fn a_mistake_names_its_field() {
        let rule = |rule: Value| json!({"refuse": [rule]});
        for (more, expected) in [
            (json!({"succeeded": "object.ready"}), "kinds[a].run.succeeded: "),
            (json!({"patch": "spec: {{ command."}), "kinds[a].run.patch: "),
            (json!({"deadline": "target.spec.deadline"}), "kinds[a].run.deadline: "),
            (
                json!({"patch": "metadata: {annotations: {a: b}}"}),
                "an old status would be taken for the effect",
            ),
            (rule(json!({"when": "true", "reason": "not a word", "message": ""})), "run.refuse[0].reason: "),
            (rule(json!({"when": "true", "reason": "No"})), "either message or messageExpression"),
            (rule(json!({"when": "x", "reason": "No", "message": ""})), "kinds[a].run.refuse[0].when: "),
        ] {
            let problem = compile(&more).map(drop).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        }
    }

    #[test]
    fn an_annotation_is_an_effect_where_the_outcome_dates_it() {
        for succeeded in [
            "target.status.lastHandledReconcileAt == command.metadata.creationTimestamp",
            "target.status.child.hash == 'a'",
            "target.status.observedGeneration == 1",
        ] {
            compile(&json!({"patch": "metadata: {annotations: {a: b}}", "succeeded": succeeded})).unwrap();
        }
    }

    #[test]
    fn neither_a_comment_nor_a_text_dates_an_effect() {
        let annotation = "metadata: {annotations: {a: b}}";
        for (patch, succeeded) in [
            ("# spec:\nmetadata: {annotations: {a: b}}", "target.status.ready"),
            ("metadata: {annotations: {a: \"spec:\"}}", "target.status.ready"),
            (annotation, "target.status.phase == 'rehashed'"),
            (annotation, "!target.status.crashed"),
        ] {
            let problem = compile(&json!({"patch": patch, "succeeded": succeeded})).map(drop).unwrap_err();
            assert!(problem.starts_with("kinds[a].run.succeeded: ") && problem.contains("read one of them"));
        }
    }

    #[test]
    fn a_patch_that_turns_out_to_have_no_spec_is_refused_where_only_that_dates_its_effect() {
        let patch = "{% if command.a %}\nspec: {a: b}\n{% endif %}\nmetadata: {labels: {a: b}}";
        let render = |succeeded: &str, a: bool| {
            let run = compile(&json!({"patch": patch, "succeeded": succeeded})).unwrap();
            let command = json!({ "a": a });
            run.patch.render(&Inputs {
                command: &command,
                target: &json!([]),
                ran: json!([]),
                now: json!([]),
            })
        };
        render("target.status.ready", true).unwrap();
        render("target.status.hash == ''", false).unwrap();
        assert!(render("target.status.ready", false).unwrap_err().contains("read one of them"));
    }

    #[test]
    fn a_deadline_is_a_number_or_an_expression_and_an_hour_by_default() {
        let deadline = |more: Value, command: Value| compile(&more).unwrap().deadline(&command);
        assert_eq!(deadline(json!({}), json!({})), Ok(3600));
        assert_eq!(deadline(json!({"deadline": 60}), json!({})), Ok(60));
        let by_field = json!({"deadline": "command.spec.seconds"});
        assert_eq!(deadline(by_field.clone(), json!({"spec": {"seconds": 5}})), Ok(5));
        assert_eq!(deadline(by_field.clone(), json!({"spec": {}})), Ok(3600));
        deadline(by_field, json!({"spec": {"seconds": "x"}})).unwrap_err();
    }
}
