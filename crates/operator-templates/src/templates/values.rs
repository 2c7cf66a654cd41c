//! The values of one rendering. The formatter of the engine writes a mark for each and keeps the value, so that no value
//! meets the YAML parser.

use std::{borrow::Cow, sync::Arc};

use minijinja::{Error, ErrorKind, Output, State, Value as Inserted, value::Object};
use parking_lot::Mutex;
use serde_json::Value;

use super::limits::{MAX_WRITTEN, refuse, too_much};

/// The start and the end of a mark, around the number of its value. No template and no value contains a start.
pub(super) const START: &str = "\u{e000}@";
pub(super) const END: char = '\u{e001}';

/// The key of the values that a rendering has written.
const KEPT: &str = "@kept";

/// A value that was written.
#[derive(Debug)]
pub(super) struct Kept {
    pub value: Value,
    /// Whether a condition without `else` gave nothing.
    is_nothing: bool,
    /// Its length as a text, in bytes.
    pub length: usize,
}

impl Kept {
    /// What it is in the middle of a text: itself, or its JSON; `None` for null.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        if self.is_nothing { Some("".into()) } else { json_text(&self.value) }
    }
}

#[derive(Debug, Default)]
struct Values(Mutex<Written>);

#[derive(Debug, Default)]
struct Written {
    values: Vec<Kept>,
    /// The total length of the values, in bytes.
    length: usize,
}

impl Object for Values {}

/// The formatter of the engine.
pub(super) fn keep(out: &mut Output, state: &State, value: &Inserted) -> Result<(), Error> {
    let written = written(state);
    let mut written = written.0.lock();
    // A condition without `else` is no missing value: it is nothing in a text, and null as a whole.
    let is_nothing = value.is_undefined();
    let value = if is_nothing { Value::Null } else { read(value)? };
    let mut kept = Kept { value, is_nothing, length: 0 };
    kept.length = kept.text().map_or(0, |text| text.len());
    written.length += kept.length;
    if written.length > MAX_WRITTEN {
        return Err(too_much());
    }
    write!(out, "{START}{}{END}", written.values.len())?;
    written.values.push(kept);
    Ok(())
}

/// The values that a rendering has written, in the order of their marks.
pub(super) fn take(state: &State) -> Vec<Kept> {
    std::mem::take(&mut written(state).0.lock().values)
}

/// A value as a part of a text.
pub(super) fn text(value: &Inserted) -> Result<String, Error> {
    let value = read(value)?;
    json_text(&value).map(Cow::into_owned).ok_or_else(|| {
        Error::new(ErrorKind::InvalidOperation, "none cannot be a part of a text; write (value or \"\")")
    })
}

fn json_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.into()),
        other => Some(other.to_string().into()),
    }
}

fn written(state: &State) -> Arc<Values> {
    state.get_or_set_temp_object(KEPT, Values::default)
}

fn read(value: &Inserted) -> Result<Value, Error> {
    refuse(value)?;
    serde_json::to_value(value).map_err(|error| {
        Error::new(ErrorKind::BadSerialization, "this value cannot be written").with_source(error)
    })
}
