//! The rules for one field: the values that it accepts, its default, and how it is merged.

use std::cmp::Ordering;

use serde_json::Value;

use super::Rule;

/// Lower bounds, each with the flag that excludes the bound itself.
const LOWER: [(&str, &str); 4] =
    [("minimum", "exclusiveMinimum"), ("minLength", ""), ("minItems", ""), ("minProperties", "")];
/// Upper bounds, likewise.
const UPPER: [(&str, &str); 4] =
    [("maximum", "exclusiveMaximum"), ("maxLength", ""), ("maxItems", ""), ("maxProperties", "")];
/// Combined validations, which cannot be compared.
const COMBINED: [&str; 4] = ["allOf", "anyOf", "oneOf", "not"];
/// How a list or a map is merged, and the value that stands for a missing one.
const MERGE: [(&str, &str); 2] =
    [("x-kubernetes-list-type", "atomic"), ("x-kubernetes-map-type", "granular")];

/// What the schema of a field no longer accepts or does otherwise than before, without its fields and items.
pub(super) fn narrowed(old: &Value, new: &Value) -> Vec<(Rule, String)> {
    let rules = [types, format, values, pattern, multiple, combined, default, keys];
    let mut found: Vec<_> = rules.into_iter().filter_map(|rule| rule(old, new)).collect();
    found.extend(LOWER.into_iter().filter_map(|bound| tightened(old, new, bound, Ordering::Greater)));
    found.extend(UPPER.into_iter().filter_map(|bound| tightened(old, new, bound, Ordering::Less)));
    found.extend(MERGE.into_iter().filter_map(|way| merge(old, new, way)));
    found.extend(expressions(old, new));
    found
}

/// Whether fields are kept that the schema does not name.
pub(super) fn is_open(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == true || schema["additionalProperties"] == true
}

/// The types of the values that a schema accepts.
fn accepted(schema: &Value) -> Vec<&str> {
    let mut types = match schema["type"].as_str() {
        _ if schema["x-kubernetes-int-or-string"] == true => vec!["integer", "string"],
        Some("number") => vec!["integer", "number"],
        Some(one) => vec![one],
        None => return vec!["array", "boolean", "integer", "null", "number", "object", "string"],
    };
    if schema["nullable"] == true {
        types.push("null");
    }
    types
}

fn types(old: &Value, new: &Value) -> Option<(Rule, String)> {
    if new["x-kubernetes-embedded-resource"] == true && old["x-kubernetes-embedded-resource"] != true {
        return Some((
            Rule::TypeNarrowed,
            "it becomes a whole object, which needs an apiVersion and a kind".to_owned(),
        ));
    }
    let after = accepted(new);
    let lost: Vec<_> = accepted(old).into_iter().filter(|accepted| !after.contains(accepted)).collect();
    let message = || format!("a value of type {} is no longer accepted", lost.join(" or "));
    (!lost.is_empty()).then(|| (Rule::TypeNarrowed, message()))
}

fn format(old: &Value, new: &Value) -> Option<(Rule, String)> {
    let (before, after) = (&old["format"], new["format"].as_str()?);
    let is_wider = before == after || matches!((before.as_str(), after), (Some("int32"), "int64"));
    (!is_wider).then(|| (Rule::FormatNarrowed, changed("the format", before, &new["format"])))
}

fn values(old: &Value, new: &Value) -> Option<(Rule, String)> {
    let after = new["enum"].as_array()?;
    let Some(before) = old["enum"].as_array() else {
        let message = format!("only these values are accepted from now on: {}", listed(after.iter()));
        return Some((Rule::EnumNarrowed, message));
    };
    let lost: Vec<_> = before.iter().filter(|value| !after.contains(value)).collect();
    let message = || format!("no longer accepted: {}", listed(lost.iter().copied()));
    (!lost.is_empty()).then(|| (Rule::EnumNarrowed, message()))
}

fn pattern(old: &Value, new: &Value) -> Option<(Rule, String)> {
    let (before, after) = (&old["pattern"], &new["pattern"]);
    (!after.is_null() && before != after)
        .then(|| (Rule::PatternChanged, changed("the pattern", before, after)))
}

fn multiple(old: &Value, new: &Value) -> Option<(Rule, String)> {
    let after = new["multipleOf"].as_f64()?;
    let is_kept = old["multipleOf"].as_f64().is_some_and(|before| before % after == 0.0);
    (!is_kept).then(|| (Rule::BoundTightened, changed("multipleOf", &old["multipleOf"], &new["multipleOf"])))
}

fn tightened(
    old: &Value,
    new: &Value,
    (bound, exclusive): (&str, &str),
    tighter: Ordering,
) -> Option<(Rule, String)> {
    let after = new[bound].as_f64()?;
    let is_exclusive = |schema: &Value| schema[exclusive] == true;
    let is_tighter = old[bound].as_f64().is_none_or(|before| match after.total_cmp(&before) {
        Ordering::Equal => is_exclusive(new) && !is_exclusive(old),
        order => order == tighter,
    });
    is_tighter.then(|| (Rule::BoundTightened, changed(bound, &old[bound], &new[bound])))
}

fn combined(old: &Value, new: &Value) -> Option<(Rule, String)> {
    let key = COMBINED.into_iter().find(|key| !new[*key].is_null() && new[*key] != old[*key])?;
    Some((Rule::ValidationAdded, format!("{key} is introduced or changed, which may refuse former values")))
}

fn expressions(old: &Value, new: &Value) -> impl Iterator<Item = (Rule, String)> {
    let rules = |schema: &Value| -> Vec<String> {
        let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
        rules.filter_map(|rule| rule["rule"].as_str().map(str::to_owned)).collect()
    };
    let before = rules(old);
    let added =
        rules(new).into_iter().filter(move |rule| !before.contains(rule) && !needs_a_new_field(old, rule));
    added.map(|rule| (Rule::ValidationAdded, format!("the rule is introduced or changed: {rule}")))
}

/// Whether a rule is `!has(self.field) || …` with a field that the old schema does not have: it refuses no object of that
/// schema. `||` binds least of all operators but `?`.
fn needs_a_new_field(old: &Value, rule: &str) -> bool {
    let guarded = rule.strip_prefix("!has(self.").and_then(|rest| rest.split_once(") || "));
    let has_any_field = is_open(old) || old["additionalProperties"].is_object();
    guarded.is_some_and(|(field, rest)| {
        !has_any_field
            && !field.contains('.')
            && old["properties"].get(field).is_none()
            && !rest.contains('?')
    })
}

fn default(old: &Value, new: &Value) -> Option<(Rule, String)> {
    let (before, after) = (&old["default"], &new["default"]);
    (before != after).then(|| (Rule::DefaultChanged, changed("the default", before, after)))
}

fn merge(old: &Value, new: &Value, (key, missing): (&str, &str)) -> Option<(Rule, String)> {
    let [before, after] = [old, new].map(|schema| schema[key].as_str().unwrap_or(missing));
    let message = || changed(key.trim_start_matches("x-kubernetes-"), &before.into(), &after.into());
    (before != after).then(|| (Rule::ListTypeChanged, message()))
}

fn keys(old: &Value, new: &Value) -> Option<(Rule, String)> {
    const KEYS: &str = "x-kubernetes-list-map-keys";
    let sorted = |schema: &Value| {
        let mut keys: Vec<_> =
            schema[KEYS].as_array().into_iter().flatten().map(ToString::to_string).collect();
        keys.sort();
        keys
    };
    let message = || changed("list-map-keys", &old[KEYS], &new[KEYS]);
    (sorted(old) != sorted(new)).then(|| (Rule::ListTypeChanged, message()))
}

fn changed(what: &str, before: &Value, after: &Value) -> String {
    match (before, after) {
        (Value::Null, after) => format!("{what} becomes {after}; there was none"),
        (before, Value::Null) => format!("{what} was {before}, and is removed"),
        (before, after) => format!("{what} was {before}, and becomes {after}"),
    }
}

fn listed<'v>(values: impl Iterator<Item = &'v Value>) -> String {
    values.map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
