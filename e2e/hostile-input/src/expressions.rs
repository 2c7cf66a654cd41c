//! Expressions: of any text, over any object.

use operator_templates::Expression;
use serde_json::Value;

use crate::parts;

pub fn read(input: &[u8]) {
    let (source, rest) = parts::first_and_rest(input);
    let Ok(expression) = Expression::compile("field", &source, &["object"]) else { return };
    // Anything but JSON is the text of an object.
    let object = rest.first().map_or(Value::Null, |text| {
        serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str()))
    });
    let variables = [("object", &object)];
    let asked = (
        expression.bool(&variables).map_err(|error| error.to_string()),
        expression.optional_text(&variables).map_err(|error| error.to_string()),
        expression.optional_int(&variables).map_err(|error| error.to_string()),
        expression.optional_timestamp(&variables).map_err(|error| error.to_string()),
    );
    let types = [asked.0.is_ok(), matches!(asked.1, Ok(Some(_))), matches!(asked.2, Ok(Some(_)))];
    assert!(types.iter().filter(|&&is_it| is_it).count() <= 1, "a value is of one type: {asked:?}");
}
