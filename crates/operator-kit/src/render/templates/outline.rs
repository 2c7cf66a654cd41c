//! A rendered text without its strings. The objects of one template mostly differ in nothing else. So they share an outline,
//! and its YAML is parsed once.

use std::mem::take;

use minijinja::{Captured, State, value::Object};
use parking_lot::Mutex;
use serde_json::Value;

use super::{marks, strings::Strings};

/// The key of the strings that a rendering has set aside.
const ASIDE: &str = "@aside";
/// Maximum number of strings of one rendering that are set aside. Each takes ten times the memory of a short one.
const MAX_ASIDE: usize = 1_000;

/// The words without which a template cannot read its own output. Where it can, it would read a mark instead of its string.
const READ_BACK: [&str; 8] =
    ["endset", "endmacro", "endcall", "endfilter", "endblock", "extends", "import", "recursive"];

/// The strings that a rendering has set aside, as JSON.
#[derive(Debug, Default)]
struct Aside(Mutex<Vec<String>>);

impl Object for Aside {}

/// A rendered text without its strings, and the strings.
pub(super) struct Outline {
    pub text: String,
    strings: Vec<String>,
    /// The text with its strings.
    pub whole: String,
}

/// Whether templates have outlines: none of them can read its own output. A word that means nothing there costs only time.
pub(super) fn has_outline<'s>(mut sources: impl Iterator<Item = &'s String>) -> bool {
    let is_no_part = |character: char| !character.is_ascii_alphanumeric() && character != '_';
    sources.all(|source| !source.split(is_no_part).any(|word| READ_BACK.contains(&word)))
}

/// Sets the strings of a value, as JSON, aside, and returns the rest with a mark for each of them. Keys stay, because they
/// have to be different.
pub(super) fn set_aside(state: &State, json: &str) -> String {
    let aside = state.get_or_set_temp_object(ASIDE, Aside::default);
    let mut aside = aside.0.lock();
    let (mut outline, mut strings) = (String::with_capacity(json.len()), Strings::of(json));
    while let Some((before, string)) = strings.next() {
        outline.push_str(before);
        if strings.rest().starts_with(':') || aside.len() == MAX_ASIDE {
            outline.push_str(string);
        } else {
            outline.push_str(&marks::mark(aside.len()));
            aside.push(string.to_owned());
        }
    }
    outline + strings.rest()
}

impl Outline {
    /// The outline of what was rendered; `None` if a mark has been lost.
    pub fn of(rendered: Captured<'_>) -> Option<Self> {
        let aside = rendered.state().get_or_set_temp_object(ASIDE, Aside::default);
        let strings = take(&mut *aside.0.lock());
        let text = rendered.into_output();
        let whole = whole(&text, &strings)?;
        Some(Self { text, strings, whole })
    }

    /// The object whose outline was parsed, with these strings.
    pub fn filled(&self, parsed: &Value) -> Value {
        match parsed {
            Value::String(text) => match marks::number(text).and_then(|number| self.strings.get(number)) {
                Some(json) => serde_json::from_str(json).unwrap_or_default(),
                None => parsed.clone(),
            },
            Value::Array(items) => items.iter().map(|item| self.filled(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(name, field)| (name.clone(), self.filled(field))).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => parsed.clone(),
        }
    }

    /// Its parsed text, if it gives this object, and each string is a value as a whole: where a string is a part of a text or
    /// a comment, its quotes are no quotes of YAML, so that it could be structure.
    pub fn parsed_for(&self, object: &Value) -> Option<Value> {
        let parsed = serde_saphyr::from_str(&self.text).ok()?;
        let mut found = vec![0; self.strings.len()];
        find_whole(&parsed, &mut found);
        // A string that an alias repeats may be too long for that.
        (found.iter().all(|times| *times == 1) && self.filled(&parsed) == *object).then_some(parsed)
    }
}

/// A text with a string for each of its marks.
fn whole(text: &str, strings: &[String]) -> Option<String> {
    let (mut whole, mut rest) = (String::with_capacity(text.len()), text);
    for (number, string) in strings.iter().enumerate() {
        let (before, after) = rest.split_once(&marks::mark(number))?;
        whole.extend([before, string]);
        rest = after;
    }
    Some(whole + rest)
}

/// Counts the marks that are values as a whole.
fn find_whole(node: &Value, found: &mut [usize]) {
    match node {
        Value::String(text) => {
            if let Some(found) = marks::number(text).and_then(|number| found.get_mut(number)) {
                *found += 1;
            }
        }
        Value::Array(items) => items.iter().for_each(|item| find_whole(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| find_whole(field, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
