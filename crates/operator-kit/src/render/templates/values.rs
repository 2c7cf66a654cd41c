//! The values of one rendering. The formatter of the engine writes a mark for each and keeps the value, so that no value
//! meets the YAML parser.

use std::{borrow::Cow, io, sync::Arc};

use minijinja::{Error, ErrorKind, Output, State, Value as Inserted, value::Object};
use parking_lot::Mutex;
use serde_json::Value;

use super::limits::{MAX_WRITTEN, refuse_missing, too_much};

/// The start and the end of a mark, around the number of its value. No template and no value contains a start.
pub(super) const START: &str = "\u{e000}@";
pub(super) const END: char = '\u{e001}';

/// The start of the keys of maps that serde_json takes for something else than a map.
const RESERVED: &str = "$serde_json::private::";
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
    let value = if is_nothing { Value::Null } else { read(value, MAX_WRITTEN - written.length)? };
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
    let value = read(value, MAX_WRITTEN)?;
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

/// A value of at most this many bytes.
fn read(value: &Inserted, left: usize) -> Result<Value, Error> {
    refuse_missing(value)?;
    if let Some(text) = value.as_str() {
        refuse_reserved(text.as_bytes())?;
        return if text.len() > left { Err(too_much()) } else { Ok(text.into()) };
    }
    let mut json = Bounded { bytes: Vec::new(), left };
    serde_json::to_writer(&mut json, value)
        .map_err(|error| if error.is_io() { too_much() } else { unwritable(error) })?;
    refuse_reserved(&json.bytes)?;
    serde_json::to_value(value).map_err(unwritable)
}

/// Refuses a mark, which is the template's own output, and a key that is not a key.
fn refuse_reserved(text: &[u8]) -> Result<(), Error> {
    let is_in = |reserved: &&str| memchr::memmem::find(text, reserved.as_bytes()).is_some();
    match [START, RESERVED].into_iter().find(is_in) {
        Some(found) => {
            let detail = format!("{found:?} cannot be a part of a value");
            Err(Error::new(ErrorKind::BadSerialization, detail))
        }
        None => Ok(()),
    }
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::BadSerialization, "this value cannot be written").with_source(error)
}

/// A buffer of limited size: a list may be of any length, and is generated while it is written.
struct Bounded {
    bytes: Vec<u8>,
    left: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len()).ok_or_else(|| io::Error::other("it is too long"))?;
        self.bytes.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
