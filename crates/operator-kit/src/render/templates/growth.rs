//! Limits of values, also for filters whose result can be much larger than what they are given: it is in memory before
//! anything else could count it.

use minijinja::{Environment, Error, ErrorKind, State, Value, filters, value::Rest};

use super::LONGEST;

/// Maximum total size, in bytes, of the values of one rendering. The output of a macro counts where it is built and where
/// it is inserted.
pub(super) const MAX_WRITTEN: usize = 2 * LONGEST;

/// Maximum width, and number of parts.
const MAX_NUMBER: usize = 10_000;

/// Makes the filters fail that a number in a value could make arbitrarily large.
pub(super) fn limit_in(environment: &mut Environment<'_>) {
    let by_number = [
        ("batch", Value::from_function(filters::batch)),
        ("indent", Value::from_function(filters::indent)),
        ("slice", Value::from_function(filters::slice)),
    ];
    for (name, filter) in by_number {
        environment.add_filter(name, move |state: &State, value: Value, more: Rest<Value>| {
            let number = more
                .first()
                .and_then(|first| first.as_usize().or_else(|| first.get_attr("width").ok()?.as_usize()));
            let number = number.unwrap_or_default();
            check_number(name, number)?;
            fits(value.as_str().map_or_else(|| value.len().unwrap_or_default(), str::len), number)?;
            let values: Vec<Value> = std::iter::once(value).chain(more.0).collect();
            filter.call(state, &values)
        });
    }
}

/// Fails if a width or a precision in the text for the filter `format` is too large.
pub(super) fn check_widths(text: &str) -> Result<(), Error> {
    // Two stand for one in the result.
    for part in text.replace("%%", "").split('%').skip(1) {
        let part =
            part.strip_prefix('(').and_then(|named| named.split_once(')')).map_or(part, |(_, rest)| rest);
        let widths = part.split(|character: char| character.is_ascii_alphabetic()).next().unwrap_or_default();
        for digits in widths.split(|character: char| !character.is_ascii_digit()) {
            check_number("format", digits.parse().unwrap_or(if digits.is_empty() { 0 } else { usize::MAX }))?;
        }
    }
    Ok(())
}

fn check_number(filter: &str, number: usize) -> Result<(), Error> {
    if number > MAX_NUMBER {
        let detail = format!("{filter}: {number} is more than {MAX_NUMBER}");
        return Err(Error::new(ErrorKind::InvalidOperation, detail));
    }
    Ok(())
}

/// Fails if a text of this length, in bytes, is too long when it is repeated.
pub(super) fn fits(length: usize, times: usize) -> Result<(), Error> {
    if length.saturating_mul(times) > MAX_WRITTEN { Err(too_much()) } else { Ok(()) }
}

/// The failure of a value that is too long.
pub(super) fn too_much() -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("its values together have more than {MAX_WRITTEN} bytes"))
}
