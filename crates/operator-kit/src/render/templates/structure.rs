//! Proves that each value has stayed a value. JSON is safe where a value is a whole node of YAML; in the middle of a text,
//! its quotes are a part of that text, and a comma or a bracket in it would be structure.

use minijinja::{State, Value as TemplateValue};
use serde_json::{Map, Value};

use super::strings::Strings;

/// The key of whether a rendering has written a value that could be structure.
const IS_RISKY: &str = "@risky";
/// The key of the number of values that a rendering has marked, and the start of the keys of these.
const MARKED: &str = "@marked";
/// The start and the end of a mark, which stands for a value.
const MARK: &str = "x@value";
const END: char = '@';

/// Characters with a meaning at the start of a node.
const AT_THE_START: [char; 11] = ['-', '?', ':', '&', '*', '!', '|', '>', '%', '@', '`'];

/// Notes a value, as JSON, that is written.
pub(super) fn note(state: &State, json: &str) {
    if is_risky(json) {
        state.set_temp(IS_RISKY, TemplateValue::from(true));
    }
}

/// Whether a value was written that could be structure.
pub(super) fn has_risky_values(state: &State) -> bool {
    state.get_temp(IS_RISKY).is_some_and(|risky| risky.is_true())
}

/// The mark for a value, as JSON, if that could be structure.
pub(super) fn mark(state: &State, json: String) -> String {
    if !is_risky(&json) {
        return json;
    }
    let number = marked(state);
    state.set_temp(&format!("{MARKED}{number}"), TemplateValue::from(json));
    state.set_temp(MARKED, TemplateValue::from(number + 1));
    format!("\"{MARK}{number}{END}\"")
}

fn marked(state: &State) -> usize {
    state.get_temp(MARKED).and_then(|number| number.as_usize()).unwrap_or_default()
}

/// The marked values, as JSON.
pub(super) fn values(state: &State) -> Vec<String> {
    let value = |number| Some(state.get_temp(&format!("{MARKED}{number}"))?.as_str()?.to_owned());
    (0..marked(state)).filter_map(value).collect()
}

/// Whether the strings of a value, as JSON, contain what could be structure.
fn is_risky(json: &str) -> bool {
    Strings::of(json).any(|(_, string)| could_be_structure(string)) || json.contains(MARK)
}

/// Whether a string could be structure, with its quotes in the middle of a text, or without them, as a filter may leave it.
fn could_be_structure(string: &str) -> bool {
    let bare = string.trim_matches(['"', ' ']);
    string.contains([',', '[', ']', '{', '}', '\'', '#'])
        || string.contains(": ")
        || bare.ends_with(':')
        || bare.starts_with(AT_THE_START)
}

/// A parsed text with its marks replaced by their values.
pub(super) fn unmarked(node: Value, values: &[String]) -> Value {
    match node {
        Value::String(text) => unmarked_text(&text, values),
        Value::Array(items) => items.into_iter().map(|item| unmarked(item, values)).collect(),
        Value::Object(fields) => {
            let key = |key: String| match unmarked_text(&key, values) {
                Value::String(text) => text,
                other => other.to_string(),
            };
            let fields = fields.into_iter().map(|(name, field)| (key(name), unmarked(field, values)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        plain => plain,
    }
}

fn unmarked_text(text: &str, values: &[String]) -> Value {
    let whole = text.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(END));
    if let Some(number) = whole.and_then(|number| number.parse::<usize>().ok())
        && let Some(json) = values.get(number)
    {
        // A text that was captured before it was written has marks of its own, with lower numbers.
        return unmarked(serde_json::from_str(json).unwrap_or_default(), &values[..number]);
    }
    let (mut replaced, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(MARK) {
        let found = after
            .split_once(END)
            .and_then(|(number, after)| Some((values.get(number.parse::<usize>().ok()?)?.as_str(), after)));
        let Some((json, after)) = found else {
            replaced.extend([before, MARK]);
            rest = after;
            continue;
        };
        if let Some((before, after)) = before.strip_suffix('"').zip(after.strip_prefix('"')) {
            replaced.extend([before, json]);
            rest = after;
        } else {
            let inner = json.strip_prefix('"').and_then(|json| json.strip_suffix('"'));
            replaced.extend([before, inner.unwrap_or(json)]);
            rest = after;
        }
    }
    replaced.push_str(rest);
    replaced.into()
}
