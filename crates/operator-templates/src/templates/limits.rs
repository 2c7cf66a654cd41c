//! Limits of the values of a rendering: in number, depth and length, and a missing one is an error wherever it is used, unless
//! the template says otherwise by `default` or `is defined`. An object that lacks a value would look complete.

use minijinja::{Error, ErrorKind, Value, value::ValueKind};

use super::{LONGEST, values::START};

/// Maximum total length of the values of one rendering, in bytes.
pub(super) const MAX_WRITTEN: usize = 2 * LONGEST;
/// Maximum number of the parts of a value: no object that the API server stores has more. A list may be endless, because it is
/// generated.
const MAX_PARTS: usize = 1_000_000;
/// Maximum depth of a value.
const MAX_DEPTH: usize = 100;

/// A mark, which is the template's own output, and the start of the keys of maps that `serde_json` takes for something else.
const RESERVED: [&str; 2] = [START, "$serde_json::private::"];

/// Refuses a value that a filter could not finish with. The fields of a map are not looked at, because that counts as reading
/// them.
pub(super) fn check(value: &Value) -> Result<(), Error> {
    Walk { parts: MAX_PARTS, bytes: MAX_WRITTEN, is_strict: false }.value(value, 0)
}

/// Refuses a value that cannot be written: it is missing or has a missing part, is too large, or contains what stands for
/// something else.
pub(super) fn refuse(value: &Value) -> Result<(), Error> {
    Walk { parts: MAX_PARTS, bytes: MAX_WRITTEN, is_strict: true }.value(value, 0)
}

struct Walk {
    /// How many parts may still come.
    parts: usize,
    /// How long the texts that may still come are together.
    bytes: usize,
    is_strict: bool,
}

impl Walk {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        let failure = |detail: String| Err(Error::new(ErrorKind::InvalidOperation, detail));
        let kind = value.kind();
        match kind {
            ValueKind::String => return self.text(value.as_str().unwrap_or_default()),
            ValueKind::Undefined if self.is_strict => return Err(Error::from(ErrorKind::UndefinedError)),
            ValueKind::Invalid => return failure(value.to_string()),
            ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {}
            _ => return Ok(()),
        }
        if depth == MAX_DEPTH {
            return failure(format!("a value is nested more than {MAX_DEPTH} deep"));
        }
        for part in value.try_iter()? {
            if self.parts == 0 {
                return failure(format!("a value has more than {MAX_PARTS} parts"));
            }
            self.parts -= 1;
            self.value(&part, depth + 1)?;
            if kind == ValueKind::Map && self.is_strict {
                self.value(&value.get_item(&part)?, depth + 1)?;
            }
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), Error> {
        self.bytes = self.bytes.checked_sub(text.len()).ok_or_else(too_much)?;
        match RESERVED.iter().find(|reserved| self.is_strict && text.contains(**reserved)) {
            Some(found) => {
                let detail = format!("{found:?} cannot be a part of a value");
                Err(Error::new(ErrorKind::BadSerialization, detail))
            }
            None => Ok(()),
        }
    }
}

/// The failure of values that are too long.
pub(super) fn too_much() -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("its values together have more than {MAX_WRITTEN} bytes"))
}
