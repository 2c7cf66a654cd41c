//! Proves that each value has stayed a value. JSON is safe where a value is a whole node of YAML; in the middle of a text,
//! its quotes are a part of that text, and a comma or a bracket in it would be structure.

use minijinja::{State, Value as TemplateValue};
use serde_json::{Map, Value};

use super::{growth::MAX_WRITTEN, marks, strings::Strings};

/// The key of whether a rendering has written a value that could be structure.
const IS_RISKY: &str = "@risky";
/// The key of the number of values that a rendering has marked, and the start of the keys of these.
const MARKED: &str = "@marked";

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

/// The mark for a value, as JSON, if that could be structure, or was captured with marks.
pub(super) fn mark(state: &State, json: String) -> String {
    if !is_risky(&json) && !marks::is_in(&json) {
        return json;
    }
    let number = marked(state);
    state.set_temp(&format!("{MARKED}{number}"), TemplateValue::from(json));
    state.set_temp(MARKED, TemplateValue::from(number + 1));
    marks::mark(number)
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
    Strings::of(json).any(|(_, string)| could_be_structure(string))
}

/// Whether a string could be structure, with its quotes in the middle of a text, or without them, as a filter may leave it.
pub(super) fn could_be_structure(string: &str) -> bool {
    let bare = string.trim_matches(['"', ' ']);
    string.contains([',', '[', ']', '{', '}', '\'', '#'])
        || string.contains(": ")
        || bare.ends_with(':')
        || bare.starts_with(AT_THE_START)
}

/// A parsed text with its marks replaced by their values; `None` if these together are larger than they can be in the text.
pub(super) fn unmarked(node: Value, values: &[String]) -> Option<Value> {
    Unmarking { left: MAX_WRITTEN }.node(node, values)
}

struct Unmarking {
    /// Maximum total length of the values that are still to come, in bytes.
    left: usize,
}

impl Unmarking {
    fn node(&mut self, node: Value, values: &[String]) -> Option<Value> {
        match node {
            Value::String(text) => self.text(&text, values),
            Value::Array(items) => items.into_iter().map(|item| self.node(item, values)).collect(),
            Value::Object(fields) => {
                let mut unmarked = Map::new();
                for (name, field) in fields {
                    let name = match self.text(&name, values)? {
                        Value::String(name) => name,
                        other => other.to_string(),
                    };
                    unmarked.insert(name, self.node(field, values)?);
                }
                Some(unmarked.into())
            }
            plain => Some(plain),
        }
    }

    fn text(&mut self, text: &str, values: &[String]) -> Option<Value> {
        if let Some(number) = marks::number(text)
            && let Some(json) = values.get(number)
        {
            self.take(json)?;
            // A text that was captured before it was written has marks of its own, with lower numbers.
            return self.node(serde_json::from_str(json).unwrap_or_default(), &values[..number]);
        }
        let (mut replaced, mut rest) = (String::new(), text);
        while let Some((before, number, after)) = marks::split(rest)
            && let Some(json) = values.get(number)
        {
            self.take(json)?;
            let whole = before.strip_suffix('"').zip(after.strip_prefix('"'));
            let inner = json.strip_prefix('"').and_then(|json| json.strip_suffix('"'));
            let (before, json, after) = match whole {
                Some((before, after)) => (before, json.as_str(), after),
                None => (before, inner.unwrap_or(json), after),
            };
            replaced.extend([before, json]);
            rest = after;
        }
        replaced.push_str(rest);
        Some(replaced.into())
    }

    fn take(&mut self, json: &str) -> Option<()> {
        self.left = self.left.checked_sub(json.len())?;
        Some(())
    }
}
