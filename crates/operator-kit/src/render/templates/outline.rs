//! A rendered text without its strings. The objects of one template mostly differ in nothing else, so that the text that
//! takes most of the time, which is to parse YAML, is the same for all of them.

use minijinja::{State, value::Object};
use parking_lot::Mutex;
use serde_json::Value;

/// The key of the strings that a rendering has set aside.
const ASIDE: &str = "@aside";
/// The begin and the end of a mark, which stands for a string.
const MARK: &str = "x@string";
const END: char = '@';

/// What a template needs to read its own output before it is written. There, a mark would be read instead of its string.
const READ_BACK: [&str; 6] = ["endset", "endmacro", "endcall", "endfilter", "endblock", "recursive"];

/// The strings that a rendering has set aside, as JSON.
#[derive(Debug, Default)]
struct Aside(Mutex<Vec<String>>);

impl Object for Aside {}

/// A rendered text without its strings, and the strings.
pub(super) struct Outline {
    text: String,
    strings: Vec<String>,
}

/// Whether templates have outlines: no part of them reads its own output.
pub(super) fn has_outline<'s>(mut sources: impl Iterator<Item = &'s String>) -> bool {
    sources.all(|source| !READ_BACK.iter().any(|word| source.contains(word)))
}

/// Sets the strings of a value, as JSON, aside, and returns the rest with a mark for each of them. Keys stay.
pub(super) fn set_aside(state: &State, json: &str) -> String {
    let aside = state.get_or_set_temp_object(ASIDE, Aside::default);
    let mut aside = aside.0.lock();
    let (mut outline, mut rest) = (String::with_capacity(json.len()), json);
    while let Some(begin) = rest.find('"') {
        let (before, string) = rest.split_at(begin);
        let (string, after) = string.split_at(length(string));
        outline.push_str(before);
        if after.starts_with(':') {
            outline.push_str(string);
        } else {
            outline.push_str(&mark(aside.len()));
            aside.push(string.to_owned());
        }
        rest = after;
    }
    outline + rest
}

/// The length of the string, as JSON, at the begin of a text.
fn length(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 2)
}

fn mark(number: usize) -> String {
    format!("\"{MARK}{number}{END}\"")
}

impl Outline {
    /// The outline of what was rendered.
    pub fn of(state: &State, text: String) -> Self {
        let aside = state.get_or_set_temp_object(ASIDE, Aside::default);
        let strings = std::mem::take(&mut *aside.0.lock());
        Self { text, strings }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The whole rendered text; `None` if it contains what looks like a mark.
    pub fn whole(&self) -> Option<String> {
        let (mut whole, mut rest) = (String::with_capacity(self.text.len()), &*self.text);
        for (number, string) in self.strings.iter().enumerate() {
            let (before, after) = rest.split_once(&mark(number))?;
            whole.extend([before, string]);
            rest = after;
        }
        whole.push_str(rest);
        (self.text.matches(MARK).count() == self.strings.len()).then_some(whole)
    }

    /// The object whose outline was parsed, with these strings.
    pub fn filled(&self, parsed: &Value) -> Value {
        match parsed {
            Value::String(text) => match marked(text).and_then(|number| self.strings.get(number)) {
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

    /// Its parsed text, if it gives this object, in which each string is a value as a whole: the quotes of one that is a part
    /// of a text or a comment are no quotes of YAML, so that such a string could be structure.
    pub fn parsed_for(&self, object: &Value) -> Option<Value> {
        let parsed = serde_saphyr::from_str(&self.text).ok()?;
        let mut found = vec![false; self.strings.len()];
        find_whole(&parsed, &mut found);
        (found.iter().all(|found| *found) && self.filled(&parsed) == *object).then_some(parsed)
    }
}

/// Notes the marks that are values as a whole.
fn find_whole(node: &Value, found: &mut [bool]) {
    match node {
        Value::String(text) => {
            if let Some(found) = marked(text).and_then(|number| found.get_mut(number)) {
                *found = true;
            }
        }
        Value::Array(items) => items.iter().for_each(|item| find_whole(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| find_whole(field, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The number of the string that a mark stands for.
fn marked(text: &str) -> Option<usize> {
    text.strip_prefix(MARK)?.strip_suffix(END)?.parse().ok()
}
