//! Limits of the values of a rendering: in number, depth and length, and a missing one is an error wherever it is used, unless
//! the template says otherwise by `default` or `is defined`. An object that lacks a value would look complete.

use minijinja::{Error, ErrorKind, Value, value::ValueKind};

use super::LONGEST;

/// Maximum total length of the values of one rendering, in bytes.
pub(super) const MAX_WRITTEN: usize = 2 * LONGEST;
/// Maximum number of the parts of a value: no object that the API server stores has more. A list may be endless, because it is
/// generated.
const MAX_PARTS: usize = 1_000_000;
/// Maximum depth of a value.
const MAX_DEPTH: usize = 100;

/// Refuses a value that a filter could not finish with. The fields of a map are not looked at, because that counts as reading
/// them.
pub(super) fn check(value: &Value) -> Result<(), Error> {
    Walk { left: MAX_PARTS, is_strict: false }.value(value, 0)
}

/// Refuses a value that is missing, or has a missing part.
pub(super) fn refuse_missing(value: &Value) -> Result<(), Error> {
    Walk { left: MAX_PARTS, is_strict: true }.value(value, 0)
}

struct Walk {
    left: usize,
    is_strict: bool,
}

impl Walk {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        let kind = value.kind();
        match kind {
            ValueKind::Undefined if self.is_strict => return Err(Error::from(ErrorKind::UndefinedError)),
            ValueKind::Invalid => return Err(Error::new(ErrorKind::InvalidOperation, value.to_string())),
            ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {}
            _ if value.as_str().is_some_and(|text| text.len() > MAX_WRITTEN) => return Err(too_much()),
            _ => return Ok(()),
        }
        if depth == MAX_DEPTH {
            let detail = format!("a value is nested more than {MAX_DEPTH} deep");
            return Err(Error::new(ErrorKind::InvalidOperation, detail));
        }
        for part in value.try_iter()? {
            self.left = self.left.checked_sub(1).ok_or_else(|| {
                let detail = format!("a value has more than {MAX_PARTS} parts");
                Error::new(ErrorKind::InvalidOperation, detail)
            })?;
            if kind != ValueKind::Map {
                self.value(&part, depth + 1)?;
            } else if self.is_strict {
                self.value(&value.get_item(&part)?, depth + 1)?;
            }
        }
        Ok(())
    }
}

/// The failure of values that are too long.
pub(super) fn too_much() -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("its values together have more than {MAX_WRITTEN} bytes"))
}
