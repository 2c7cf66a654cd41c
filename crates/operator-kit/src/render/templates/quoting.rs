//! Writes values into a template, as JSON that every YAML parser reads alike.

use minijinja::{Error, ErrorKind, Output, State, Value};

use crate::render::yaml::escape;

/// Writes a value. The output of a macro or a block is quoted already.
pub(super) fn format(out: &mut Output, _state: &State, value: &Value) -> Result<(), Error> {
    if value.is_safe() {
        return out.write_str(value.as_str().unwrap_or_default()).map_err(Error::from);
    }
    let json = serde_json::to_string(value).map_err(|error| {
        Error::new(ErrorKind::BadSerialization, "this value cannot be written").with_source(error)
    })?;
    out.write_str(&escape(&json)).map_err(Error::from)
}
