//! Filters that insert values into captured text, such as that of a `{% set %}` block. Captured text is written as it is. So
//! what is inserted is written as it would be without a filter: the engine would not tell where it has written a value.

use minijinja::{
    Environment, Error, State, Value, filters,
    value::{Rest, StringInput, ValueKind},
};

use super::growth::{check_widths, fits};

/// Replaces the filters of the engine, but for `join`, which is stricter in another way as well.
pub(super) fn write_in(environment: &mut Environment<'_>) {
    environment.add_filter("replace", replace);
    environment.add_filter("format", format);
}

fn replace(state: &State, text: &Value, from: &Value, to: &Value) -> Result<Value, Error> {
    let is_captured = [text, from, to].into_iter().any(Value::is_safe);
    let [text, to] =
        if is_captured { [written(state, text)?, written(state, to)?] } else { [text.clone(), to.clone()] };
    let [text, from, to] = [&text, from, &to].map(|value| StringInput::new(state, value));
    let (text, from, to) = (text?, from?, to?);
    fits(to.as_str().len(), text.as_str().matches(from.as_str()).count())?;
    filters::replace(state, text, from, to)
}

fn format(state: &State, text: &Value, values: Rest<Value>) -> Result<Value, Error> {
    check_widths(text.as_str().unwrap_or_default())?;
    let values = values.0.into_iter().map(|value| match value.kind() {
        // They are formatted as numbers.
        ValueKind::Bool | ValueKind::Number => Ok(value),
        _ if text.is_safe() && !value.is_safe() => state.format(value).map(Value::from_safe_string),
        _ => Ok(value),
    });
    filters::format(state, text, Rest(values.collect::<Result<_, _>>()?))
}

/// The filter `join`.
pub(super) fn join(state: &State, items: &Value, between: Option<Value>) -> Result<Value, Error> {
    let (mut count, mut is_captured) = (0, false);
    for item in items.try_iter()? {
        count += 1;
        is_captured |= item.is_safe();
    }
    let between = between.map(|between| if is_captured { written(state, &between) } else { Ok(between) });
    let between = between.transpose()?;
    let between = between.as_ref().map(|between| StringInput::new(state, between)).transpose()?;
    fits(between.as_ref().map_or(0, |between| between.as_str().len()), count)?;
    filters::join(state, items, between)
}

/// A text as it is written.
fn written(state: &State, value: &Value) -> Result<Value, Error> {
    if value.is_safe() {
        return Ok(value.clone());
    }
    let text = StringInput::new(state, value)?.as_str().to_owned();
    state.format(text.into()).map(Value::from_safe_string)
}
