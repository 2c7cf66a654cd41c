//! How values are written into a template: as JSON that every YAML parser takes for the same.

use minijinja::{Error, ErrorKind, Output, State, Value};

/// Writes a value. What a template itself put together (a macro, a block) is quoted already.
pub(super) fn format(out: &mut Output, _state: &State, value: &Value) -> Result<(), Error> {
    if value.is_safe() {
        return out.write_str(value.as_str().unwrap_or_default()).map_err(Error::from);
    }
    let json = serde_json::to_string(value).map_err(|error| {
        Error::new(ErrorKind::BadSerialization, "this value cannot be written").with_source(error)
    })?;
    out.write_str(&escape(&json)).map_err(Error::from)
}

/// Escapes the characters that are plain in JSON and not in YAML: line breaks and what is not printable. A parser
/// folds U+0085 in a quoted text into a space, for example.
fn escape(json: &str) -> String {
    json.chars().fold(String::with_capacity(json.len()), |mut text, character| {
        match character {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                text.extend(format!("\\u{:04x}", u32::from(character)).chars());
            }
            plain => text.push(plain),
        }
        text
    })
}
