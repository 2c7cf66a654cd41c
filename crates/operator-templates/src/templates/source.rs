//! The text of a template before the engine compiles it: what it must not have, and the values that it joins by `~`.

use std::sync::LazyLock;

use regex::Regex;

type Pattern = LazyLock<Result<Regex, regex::Error>>;

/// What matters outside of blocks: comments, raw text, and the start of a block. To the engine, only ASCII characters are blanks
/// or parts of a name.
static OUTSIDE: Pattern =
    LazyLock::new(|| Regex::new(r"(?s)\{#.*?#\}|\{%[-+]?(?-u:\s*raw\b).*?endraw(?-u:\b)|\{[\{%][-+]?"));
/// The tokens in a block; the first one is its end.
static INSIDE: Pattern = LazyLock::new(|| {
    Regex::new(
        r#"(?s)[-+]?[%\}]\}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|(?-u:\.\w+|\bis\s+(?:not\s+)?\w+|\w+|[=!<>]=|\s+)|."#,
    )
});
/// The tokens that end an operand of `~`.
const ENDS: &str = ") ] } , : = == != < <= > >= + - and do elif else for if in not or recursive set with";
/// The blocks by which a template would read its own output.
const CAPTURING: &str = "set filter macro call block extends import from include";
/// Around an operand of `~`, with tabs that tell it from what an author writes. The engine would write true as `True`.
const OPENING: &str = "(\t";
const CLOSING: &str = "\t)|string";

/// A bracket that is open, or the block itself.
struct Level {
    is_square: bool,
    colons: usize,
    /// Where the last operand of `~` begins, or could begin.
    operand: usize,
    is_joined: bool,
}

/// A template as the engine compiles it, in which each operand of `~` is a text.
///
/// # Errors
/// With the mistake and its remedy.
pub(super) fn prepare(source: &str) -> Result<String, String> {
    let compiled = |pattern: &'static Pattern| pattern.as_ref().map_err(ToString::to_string);
    let is_one_of = |list: &str, token: &str| list.split(' ').any(|listed| listed == token);
    let (outside, inside) = (compiled(&OUTSIDE)?, compiled(&INSIDE)?);
    let (mut prepared, mut at, mut keyword) = (String::with_capacity(source.len()), 0, "");
    let mut levels: Vec<Level> = Vec::new();
    loop {
        let tokens = if levels.is_empty() { outside } else { inside };
        let Some(found) = tokens.find_at(source, at) else { break };
        let looks_like_end = found.len() > 1 && found.as_str().ends_with('}');
        let is_block_end = looks_like_end && levels.len() == 1;
        // Two braces may also end two maps.
        let token = if looks_like_end && levels.len() > 1 { &found.as_str()[..1] } else { found.as_str() };
        prepared.push_str(&source[at..found.start()]);
        at = found.start() + token.len();
        let Some(level) = levels.last_mut() else {
            prepared.push_str(token);
            if token.starts_with("{{") || (token.starts_with("{%") && !token.ends_with("endraw")) {
                keyword = if token.starts_with("{{") { "{{" } else { "" };
                levels.push(Level::new(token, prepared.len()));
            }
            continue;
        };
        let is_sign = matches!(token, "+" | "-") && prepared[level.operand..].trim().is_empty();
        let is_end = is_block_end || (is_one_of(ENDS, token) && !is_sign);
        if token == "~" || (is_end && level.is_joined) {
            wrap(&mut prepared, level.operand);
        }
        prepared.push_str(token);
        if token == "~" || is_end {
            (level.operand, level.is_joined) = (prepared.len(), token == "~");
        }
        level.colons += usize::from(token == ":");
        if level.is_square && level.colons > 1 {
            return Err("a slice has a step; leave it out, or use the filter reverse".to_owned());
        }
        if (is_block_end && is_one_of(CAPTURING, keyword)) || (token == "recursive" && keyword == "for") {
            return Err(format!(
                "{{% {keyword} %}} would read the template's own output; write the values where they are used, or {{% set name = value %}}"
            ));
        }
        match token {
            _ if is_block_end => levels.clear(),
            "(" | "[" | "{" => levels.push(Level::new(token, prepared.len())),
            ")" | "]" | "}" => drop(levels.pop()),
            "=" if keyword == "set" && levels.len() == 1 => keyword = "assignment",
            _ if keyword.is_empty() => keyword = token.trim(),
            _ => {}
        }
    }
    Ok(prepared + &source[at..])
}

/// A part of a prepared template, as its author wrote it.
pub(super) fn as_written(prepared: &str) -> String {
    prepared.replace(OPENING, "").replace(CLOSING, "")
}

impl Level {
    fn new(opening: &str, operand: usize) -> Self {
        Self { is_square: opening == "[", colons: 0, operand, is_joined: false }
    }
}

/// Makes the operand that begins here a text.
fn wrap(prepared: &mut String, operand: usize) {
    let end = prepared.trim_end().len().max(operand);
    let start = end - prepared[operand..end].trim_start().len();
    prepared.insert_str(end, CLOSING);
    prepared.insert_str(start, OPENING);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operand_of_a_tilde_is_a_text_and_all_else_stays() {
        for (source, expected) in [
            ("{{ a ~ b }}", "{{ ‹a› ~ ‹b› }}"),
            ("{{- a~-b -}}", "{{- ‹a›~‹-b› -}}"),
            ("{{ a ~ \"-\" ~ b | upper }}", "{{ ‹a› ~ ‹\"-\"› ~ ‹b | upper› }}"),
            ("{{ a * 2 ~ b + c ~ d }}", "{{ ‹a * 2› ~ ‹b› + ‹c› ~ ‹d› }}"),
            ("{{ a ~ b == c ~ d and e ~ f }}", "{{ ‹a› ~ ‹b› == ‹c› ~ ‹d› and ‹e› ~ ‹f› }}"),
            ("{{ a ~ (b ~ c if d else e)[1:] }}", "{{ ‹a› ~ ‹(‹b› ~ ‹c› if d else e)[1:]› }}"),
            ("{{ a ~ b is not none }}", "{{ ‹a› ~ ‹b is not none› }}"),
            ("{{ a.in ~ f(x=b ~ c, d=[e ~ g]) }}", "{{ ‹a.in› ~ ‹f(x=‹b› ~ ‹c›, d=[‹e› ~ ‹g›])› }}"),
            ("{{ {'a': {'b': c ~ d}}}}", "{{ {'a': {'b': ‹c› ~ ‹d›}}}}"),
            ("{{ '~ }}' ~ \"\\\"~\" }}", "{{ ‹'~ }}'› ~ ‹\"\\\"~\"› }}"),
            ("{% set x = a ~ b %}~", "{% set x = ‹a› ~ ‹b› %}~"),
            ("{%- for x in a ~ b if x -%}", "{%- for x in ‹a› ~ ‹b› if x -%}"),
            ("{% if not a ~ b %}\"{{ c ~ d }}\"", "{% if not ‹a› ~ ‹b› %}\"{{ ‹c› ~ ‹d› }}\""),
            (
                "{# {{ a ~ b }} #}{% raw %}{{ a ~ b }}{% endraw %}~",
                "{# {{ a ~ b }} #}{% raw %}{{ a ~ b }}{% endraw %}~",
            ),
            (
                "a: ~\nb: {{ x[1:] }} {{ [{'a': 1, 'b': 2}] }}",
                "a: ~\nb: {{ x[1:] }} {{ [{'a': 1, 'b': 2}] }}",
            ),
        ] {
            let prepared = prepare(source).unwrap();
            assert_eq!(prepared, expected.replace('‹', OPENING).replace('›', CLOSING), "{source}");
            assert_eq!(as_written(&prepared), source);
        }
    }

    #[test]
    fn blocks_that_read_the_output_and_steps_of_slices_are_refused() {
        for source in [
            "{% set x %}a{% endset %}",
            "{%- set x | upper -%}a{% endset %}",
            "{% filter upper %}a{% endfilter %}",
            "{% macro m() %}{% endmacro %}",
            "{% call m() %}{% endcall %}",
            "{% block a %}{% endblock %}",
            "{% extends 'a' %}",
            "{% import 'a' as a %}",
            "{% from 'a' import a %}",
            "{%+ include 'a' %}",
            "{% for x in y recursive %}{% endfor %}",
            "{{ x[::-1] }}",
            "{{ x[1:f(2):n] }}",
        ] {
            assert!(prepare(source).is_err(), "{source}");
        }
        for source in [
            "set filter {# {% macro m() %} #}",
            "{{ 'recursive' }}",
            "{% raw %}{% filter %}{% endraw %}",
            "{% set x = y[1:] %}",
        ] {
            assert_eq!(prepare(source).as_deref(), Ok(source));
        }
    }
}
