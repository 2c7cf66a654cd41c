//! Writes values into a template, as JSON that every YAML parser reads alike, and only as many as an object can hold.

use std::io;

use minijinja::{Error, ErrorKind, Output, State, Value};

use super::{
    growth::{MAX_WRITTEN, too_much},
    missing, outline, structure,
};
use crate::render::yaml::escape;

/// The start of the keys of maps that the parser takes for something else than a map.
const RESERVED: &str = "$serde_json::private::";

/// The key of the number of bytes that a rendering has written.
const WRITTEN: &str = "@written";

/// Writes a value. The output of a macro or a block is quoted already.
pub(super) fn format(out: &mut Output, state: &State, value: &Value) -> Result<(), Error> {
    write(out, state, value, |json| {
        structure::note(state, &json);
        json
    })
}

/// Writes a mark for each value that could be structure.
pub(super) fn mark(out: &mut Output, state: &State, value: &Value) -> Result<(), Error> {
    write(out, state, value, |json| structure::mark(state, json))
}

/// Writes a mark for each string of a value, and notes a key that could be structure.
pub(super) fn set_aside(out: &mut Output, state: &State, value: &Value) -> Result<(), Error> {
    write(out, state, value, |json| {
        let rest = outline::set_aside(state, &json);
        structure::note(state, &rest);
        rest
    })
}

fn write(
    out: &mut Output,
    state: &State,
    value: &Value,
    written: impl FnOnce(String) -> String,
) -> Result<(), Error> {
    let before = state.get_temp(WRITTEN).and_then(|written| written.as_usize()).unwrap_or_default();
    let left = MAX_WRITTEN.saturating_sub(before);
    let (length, text) = if value.is_safe() {
        let text = value.as_str().unwrap_or_default();
        if text.len() > left {
            return Err(too_much());
        }
        (text.len(), text.to_owned())
    } else {
        // A condition without `else` is no missing value.
        if !value.is_undefined() {
            missing::refuse(value)?;
        }
        let json = json(value, left)?;
        (json.len(), written(json))
    };
    state.set_temp(WRITTEN, Value::from(before + length));
    out.write_str(&text).map_err(Error::from)
}

fn json(value: &Value, left: usize) -> Result<String, Error> {
    let mut json = Bounded { bytes: Vec::new(), left };
    serde_json::to_writer(&mut json, value).map_err(|error| {
        if error.is_io() {
            return too_much();
        }
        Error::new(ErrorKind::BadSerialization, "this value cannot be written").with_source(error)
    })?;
    let json = String::from_utf8_lossy(&json.bytes);
    if json.contains(RESERVED) {
        return Err(Error::new(
            ErrorKind::BadSerialization,
            format!("{RESERVED:?} cannot be a part of a value"),
        ));
    }
    Ok(escape(&json))
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
