//! YAML, read as kubectl and Helm read it, and JSON that every YAML parser reads alike.

use serde::Serialize;
use serde_json::Value;
use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle};
use thiserror::Error;

/// The words that are booleans in one case or another.
const BOOLEANS: [&str; 8] = ["true", "false", "yes", "no", "y", "n", "on", "off"];

/// Why a text is not read, or a value is not written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum YamlError {
    /// It has several documents.
    #[error("it has several documents; write one")]
    SeveralDocuments,
    /// It is not YAML, or kubectl would read it in another way: the line, the problem and, if there is one, the remedy.
    #[error("{0}")]
    Invalid(String),
}

/// YAML, as kubectl reads it.
pub struct Yaml;

impl Yaml {
    /// Reads one document.
    ///
    /// # Errors
    /// When it is not YAML, or YAML parsers do not agree on it.
    pub fn read(text: &str) -> Result<Value, YamlError> {
        read(text, |_| {})
    }

    /// Reads all documents of a text. Empty ones are none.
    ///
    /// # Errors
    /// As [`Yaml::read`].
    pub fn read_all(text: &str) -> Result<Vec<Value>, YamlError> {
        read_all(text, |_| {})
    }

    /// Writes a document.
    ///
    /// # Errors
    /// When the value cannot be written.
    pub fn write(value: &impl Serialize) -> Result<String, YamlError> {
        let write = |prefer_block_scalars| {
            let options = serde_saphyr::ser_options! { prefer_block_scalars: prefer_block_scalars };
            let text = serde_saphyr::to_string_with_options(value, options);
            text.map_err(|error| YamlError::Invalid(error.to_string()))
        };
        let text = write(true)?;
        // kubectl does not read a block that begins with a tab.
        if check(&text, |_| {}).is_ok() { Ok(text) } else { write(false) }
    }
}

/// Like [`Yaml::read`]; tells each scalar that is a text because it is quoted, a block or tagged.
pub(crate) fn read(text: &str, is_text: impl FnMut(&str)) -> Result<Value, YamlError> {
    let mut all = read_all(text, is_text)?;
    let last = all.pop().unwrap_or_default();
    if all.is_empty() { Ok(last) } else { Err(YamlError::SeveralDocuments) }
}

fn read_all(text: &str, is_text: impl FnMut(&str)) -> Result<Vec<Value>, YamlError> {
    let options = serde_saphyr::options! { legacy_octal_numbers: true, reject_unsupported_tags: true };
    let read: Result<Vec<Value>, _> = serde_saphyr::from_multiple_with_options(text, options);
    let mut all = read.map_err(|error| YamlError::Invalid(error.to_string()))?;
    check(text, is_text)?;
    all.iter_mut().for_each(write_integers);
    Ok(all)
}

/// Writes `1.0` and `1e3` as kubectl does, which the API server takes for an integer.
pub(crate) fn write_integers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Ok(integer) = number.as_f64().unwrap_or_default().to_string().parse::<i64>() {
                *number = integer.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(write_integers),
        Value::Object(fields) => fields.values_mut().for_each(write_integers),
        _ => {}
    }
}

/// Refuses what YAML parsers read in different ways.
fn check(text: &str, mut is_text: impl FnMut(&str)) -> Result<(), YamlError> {
    // The collections that are open: for a map, whether a key is next.
    let mut open: Vec<Option<bool>> = Vec::new();
    let mut block_with_break = None;
    for (event, span) in Parser::new_from_str(text).map_while(Result::ok) {
        let mut remedy = None;
        match event {
            Event::SequenceStart(..) => {
                open.push(None);
                continue;
            }
            Event::MappingStart(..) => {
                open.push(Some(true));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => drop(open.pop()),
            Event::Alias(_) => {}
            Event::Scalar(scalar, ScalarStyle::Plain, _, None) => {
                // A key that is a block has an empty value.
                block_with_break = block_with_break.filter(|_| span.start.index() == span.end.index());
                remedy = remedy_for(&scalar, open.last() == Some(&Some(true)));
            }
            Event::Scalar(scalar, style, ..) => {
                is_text(&scalar);
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                let begins_with_tab = is_block && scalar.trim_start_matches('\n').starts_with('\t');
                block_with_break = (is_block && scalar.ends_with('\n')).then(|| span.start.line());
                remedy =
                    begins_with_tab.then_some("a text that begins with a tab in double quotes, with \\t");
            }
            _ => continue,
        }
        if let Some(remedy) = remedy {
            return Err(ambiguous(span.start.line(), remedy));
        }
        if let Some(Some(is_key)) = open.last_mut() {
            *is_key = !*is_key;
        }
    }
    match block_with_break {
        Some(line) if !text.ends_with('\n') => Err(ambiguous(line, "a line break at the end of the text")),
        _ => Ok(()),
    }
}

fn ambiguous(line: usize, remedy: &str) -> YamlError {
    YamlError::Invalid(format!("line {line}: YAML parsers do not agree on this value; write {remedy}"))
}

/// What to write instead of a plain scalar that YAML parsers read in different ways.
fn remedy_for(scalar: &str, is_key: bool) -> Option<&'static str> {
    let digits = scalar.strip_prefix(['+', '-']).unwrap_or(scalar);
    // Rust also reads words, such as inf.
    let is_number = digits.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && digits.replace('_', "").parse::<f64>().is_ok();
    let is_octal = digits.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
    let has_leading_zero =
        digits.starts_with('0') && digits[1..].starts_with(|next: char| next.is_ascii_digit());
    let word = scalar.to_ascii_lowercase();
    let is_boolean = BOOLEANS.contains(&&*word);
    let is_integer = scalar.parse::<i64>().is_ok_and(|integer| integer.to_string() == scalar);
    if is_number && digits.contains('_') {
        Some("a number without _, or a text in quotes")
    } else if is_number && has_leading_zero && !is_octal {
        Some("a number without a leading 0, or a text in quotes")
    } else if is_boolean && scalar[1..] != word[1..] && scalar != scalar.to_ascii_uppercase() {
        Some("true or false, or a text in quotes")
    } else if is_key
        && ((is_number && !is_integer)
            || is_other_number(digits)
            || (is_boolean && !["true", "false"].contains(&scalar)))
    {
        Some("a key in quotes")
    } else {
        None
    }
}

/// Whether digits are a number in another base, or none of the finite ones.
fn is_other_number(digits: &str) -> bool {
    let digits = digits.to_ascii_lowercase();
    let prefixed = ["0x", "0o", "0b"].iter().find_map(|prefix| digits.strip_prefix(prefix));
    prefixed.is_some_and(|rest| rest.bytes().all(|digit| digit.is_ascii_hexdigit() || digit == b'_'))
        || [".inf", ".nan"].contains(&&*digits)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_is_read_as_kubectl_reads_it() {
        // As read by sigs.k8s.io/yaml 1.6.
        for (text, expected) in [
            ("0400", json!(256)),
            ("-0400", json!(-256)),
            ("00", json!(0)),
            ("0o400", json!(256)),
            ("0x1F", json!(31)),
            ("0b11", json!(3)),
            ("+12", json!(12)),
            ("1.0", json!(1)),
            ("1.", json!(1)),
            ("1e3", json!(1000)),
            (".5", json!(0.5)),
            ("18446744073709551615", json!(u64::MAX)),
            ("yes", json!(true)),
            ("Off", json!(false)),
            ("N", json!(false)),
            ("~", json!(null)),
            ("2024-01-01", json!("2024-01-01")),
            ("1:30", json!("1:30")),
            ("0x", json!("0x")),
            ("_1", json!("_1")),
            ("1.2.3", json!("1.2.3")),
            ("08a", json!("08a")),
            ("inf", json!("inf")),
            ("'08'", json!("08")),
            ("\"yES\"", json!("yES")),
        ] {
            assert_eq!(Yaml::read(&format!("a: {text}")), Ok(json!({"a": expected})), "{text}");
        }
    }

    #[test]
    fn what_yaml_parsers_read_in_different_ways_is_refused_with_its_line_and_remedy() {
        for (text, remedy) in [
            ("a: 08", "without a leading 0"),
            ("a: -09", "without a leading 0"),
            ("a: [1, 00.5]", "without a leading 0"),
            ("a: 012e1", "without a leading 0"),
            ("a: 1_000.5", "without _"),
            ("a: 1__0", "without _"),
            ("a: yES", "true or false"),
            ("a: oFF", "true or false"),
            ("on: 1", "a key in quotes"),
            ("y: 1", "a key in quotes"),
            ("a: {0400: 1}", "a key in quotes"),
            ("a: {b: 1, 1.5: 2}", "a key in quotes"),
            ("0x1F: a", "a key in quotes"),
            (".NaN: a", "a key in quotes"),
            ("a: |\n  b", "a line break at the end"),
            ("a: |\n  \tb\n  c\n", "in double quotes"),
            ("a: >-\n  \tb\n", "in double quotes"),
        ] {
            let error = Yaml::read(&format!("first: 1\n{text}")).unwrap_err().to_string();
            let line = if text.contains('\n') { 3 } else { 2 };
            assert!(
                error.starts_with(&format!("line {line}: ")) && error.contains(remedy),
                "{text}: {error}"
            );
        }
        let tagged = Yaml::read("a: 1\nb: !secret x").unwrap_err().to_string();
        assert!(tagged.contains("secret"), "{tagged}");
        for text in [
            "{8080: a, -1: b, true: c, 'on': d, \"~\": e}",
            "{a: {b: yes}, c: [on, no]}",
            "{a: &x {b: on}, c: *x, d: no}",
        ] {
            assert!(Yaml::read(text).is_ok(), "{text}: {:?}", Yaml::read(text));
        }
        assert_eq!(Yaml::read("a: 1\n---\na: 2"), Err(YamlError::SeveralDocuments));
        assert_eq!(Yaml::read("---\na: 1\n---\n"), Ok(json!({"a": 1})));
        assert_eq!(Yaml::read("# nothing"), Ok(Value::Null));
        assert_eq!(Yaml::read_all("a: 0400\n---\nb: 1"), Ok(vec![json!({"a": 256}), json!({"b": 1})]));
        assert!(Yaml::read_all("a: 1\n---\nb: 08").unwrap_err().to_string().starts_with("line 3: "));
    }

    /// What the API server gives back is compared with what was rendered.
    #[test]
    fn a_number_with_many_digits_is_the_same_in_json() {
        let rendered = Yaml::read("123456789.123456789").unwrap();
        let returned: Value = serde_json::from_str(&rendered.to_string()).unwrap();
        assert_eq!(returned, rendered);
    }

    #[test]
    fn what_is_written_is_read_again_by_every_parser() {
        let value = json!({"on": "yes", "tab": "\ta\nb\n", "lines": "a\nb\n", "08": "08", "number": 1.5, "~": "1_000"});
        let text = Yaml::write(&value).unwrap();
        assert_eq!(Yaml::read(&text), Ok(value), "{text}");
        assert!(Yaml::write(&json!({"lines": "a\nb\n"})).unwrap().contains('|'), "as it is read best");
    }
}
