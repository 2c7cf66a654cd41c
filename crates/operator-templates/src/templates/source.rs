//! The text of a template before the engine compiles it: what it must not have, and the operators by which something small becomes
//! large.

use std::sync::LazyLock;

use regex::Regex;

use super::filters::{COUNTED, FACTOR, TIMES};

type Pattern = LazyLock<Result<Regex, regex::Error>>;

/// What matters outside of blocks: comments, raw text, and the start of a block. To the engine, only ASCII characters are blanks
/// or parts of a name.
static OUTSIDE: Pattern =
    LazyLock::new(|| Regex::new(r"(?s)\{#.*?#\}|\{%[-+]?(?-u:\s*raw\b).*?endraw(?-u:\b)|\{[\{%][-+]?"));
/// The tokens in a block; the first one is its end.
static INSIDE: Pattern = LazyLock::new(|| {
    Regex::new(
        r#"(?s)[-+]?[%\}]\}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|(?-u:[\d_]+(?:\.\d+)?[eE][-+]\d+|\.\w+|\bis\s+(?:not\s+)?\w+|\w+|[=!<>]=|\*\*|//|\s+)|."#,
    )
});
/// The tokens that end an operand of any operator.
const ENDS: &str = ") ] } , : = == != < <= > >= and do elif else for if in not or recursive set with";
/// Maximum number of the operators of a block, of the `elif` of a template, and of the levels that all its `set` add to values: the
/// engine calls itself for each.
const MAX_NESTED: usize = 500;
/// The blocks by which a template would read its own output.
const CAPTURING: &str = "set filter macro call block extends import from include";
/// A `set` that reads no output.
const ASSIGNMENT: &str = "assignment";
/// Around an operand, before the name of a filter; with tabs that tell it from what an author writes.
const OPENING: &str = "(\t";
const CLOSING: &str = "\t)|";
/// The filter of an operand of `~`. The engine would write true as `True`.
const JOINED: &str = "string";

/// A bracket that is open, or the block itself.
struct Level {
    is_square: bool,
    colons: usize,
    /// Where what follows the last operator begins.
    operand: usize,
    sum: Side,
    join: Side,
    product: Side,
}

/// An operand of the last operator of one precedence.
#[derive(Clone, Copy)]
struct Side {
    /// Where it begins, or could begin.
    start: usize,
    /// Whether it is on the right of `+`, `~` or `*`.
    is_right: bool,
}

/// A template as the engine compiles it, in which each operand of `~` is a text, and those of `+` and `*` and each slice are counted.
///
/// # Errors
/// With the mistake and its remedy.
pub(super) fn prepare(source: &str) -> Result<String, String> {
    let compiled = |pattern: &'static Pattern| pattern.as_ref().map_err(ToString::to_string);
    let (outside, inside) = (compiled(&OUTSIDE)?, compiled(&INSIDE)?);
    let (mut prepared, mut at, mut keyword) = (String::with_capacity(source.len()), 0, "");
    let mut levels: Vec<Level> = Vec::new();
    let (mut operators, mut elifs, mut nested, mut deepest) = (0, 0, 0, 0);
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
                (operators, deepest) = (0, 0);
                levels.push(Level::new(token, prepared.len()));
            }
            continue;
        };
        level.take(token, is_block_end, &mut prepared);
        operators += usize::from(is_nesting(token));
        if operators > MAX_NESTED {
            return Err(format!(
                "a block has more than {MAX_NESTED} operators; put parts of it into {{% set name = value %}}"
            ));
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
            _ if is_block_end => {
                levels.clear();
                nested += if keyword == ASSIGNMENT { deepest } else { 0 };
                if nested > MAX_NESTED {
                    return Err(format!(
                        "its {{% set %}} nest values more than {MAX_NESTED} deep; write lists and maps where they are used"
                    ));
                }
            }
            "(" | "[" | "{" => {
                levels.push(Level::new(token, prepared.len()));
                deepest = deepest.max(levels.len() - 1);
            }
            ")" | "]" | "}" => {
                // Of a slice of which only a part is taken, nothing stays.
                let is_whole = !source[at..].trim_start().starts_with(['.', '[', '(']);
                let is_slice = level.is_square && level.colons > 0;
                levels.pop();
                if let Some(outer) = levels.last().filter(|_| is_slice && is_whole) {
                    wrap(&mut prepared, outer.operand, COUNTED);
                }
            }
            "=" if keyword == "set" && levels.len() == 1 => keyword = ASSIGNMENT,
            _ if keyword.is_empty() => {
                keyword = token.trim();
                elifs += usize::from(keyword == "elif");
                if elifs > MAX_NESTED {
                    return Err(format!("it has more than {MAX_NESTED} elif; look values up in a map"));
                }
            }
            _ => {}
        }
    }
    Ok(prepared + &source[at..])
}

/// A part of a prepared template, as its author wrote it.
pub(super) fn as_written(prepared: &str) -> String {
    let filters = [JOINED, COUNTED, FACTOR, TIMES];
    let without = |written: String, filter| written.replace(&format!("{CLOSING}{filter}"), "");
    filters.into_iter().fold(prepared.replace(OPENING, ""), without)
}

impl Level {
    fn new(opening: &str, start: usize) -> Self {
        let side = Side { start, is_right: false };
        Self { is_square: opening == "[", colons: 0, operand: start, sum: side, join: side, product: side }
    }

    /// Appends a token, and wraps the operands that it ends. What ends one of an operator ends those of all that bind more closely.
    fn take(&mut self, token: &str, is_block_end: bool, prepared: &mut String) {
        // Without an operand before it, it is a sign, or the star of an argument.
        let is_operator = !prepared[self.operand..].trim().is_empty();
        let is = |operators: &str| is_operator && is_one_of(operators, token);
        let ends_sum = is_block_end || is_one_of(ENDS, token) || is("+ -");
        let ends_join = ends_sum || is("~");
        let ends_product = ends_join || is("* / // %");
        if ends_product && self.product.is_right {
            wrap(prepared, self.product.start, TIMES);
        }
        if is("*") {
            // Its left operand is all of the product so far.
            wrap(prepared, self.join.start, FACTOR);
        }
        if ends_join && (is("~") || self.join.is_right) {
            wrap(prepared, self.join.start, JOINED);
        }
        if ends_sum && (is("+") || self.sum.is_right) {
            wrap(prepared, self.sum.start, COUNTED);
        }
        prepared.push_str(token);
        let start = prepared.len();
        let sides = [
            (&mut self.sum, ends_sum, "+"),
            (&mut self.join, ends_join, "~"),
            (&mut self.product, ends_product, "*"),
        ];
        for (side, is_over, operator) in sides {
            if is_over {
                *side = Side { start, is_right: token == operator };
            }
        }
        if ends_product || token == "**" {
            self.operand = start;
        }
    }
}

/// Whether a token begins another level of an expression: it is no name, no literal, and separates or closes nothing.
fn is_nesting(token: &str) -> bool {
    let is_name = |next: char| next.is_alphanumeric() || matches!(next, '_' | '"' | '\'');
    let separates = token.trim().is_empty() || is_one_of(", : ) ] } =", token);
    let is_test = token.starts_with("is") && token.contains(char::is_whitespace);
    let is_word = token.starts_with(is_name) && !is_test;
    !separates && (!is_word || is_one_of(ENDS, token))
}

fn is_one_of(list: &str, token: &str) -> bool {
    list.split(' ').any(|listed| listed == token)
}

/// Puts the operand that begins here into parentheses, and through a filter.
fn wrap(prepared: &mut String, operand: usize, filter: &str) {
    let end = prepared.trim_end().len().max(operand);
    let start = end - prepared[operand..end].trim_start().len();
    prepared.insert_str(end, &format!("{CLOSING}{filter}"));
    prepared.insert_str(start, OPENING);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operand_that_could_become_large_is_filtered_and_all_else_stays() {
        for (source, expected) in [
            ("{{ a ~ b }}", "{{ ‹a› ~ ‹b› }}"),
            ("{{- a~-b -}}", "{{- ‹a›~‹-b› -}}"),
            ("{{ a ~ \"-\" ~ b | upper }}", "{{ ‹a› ~ ‹\"-\"› ~ ‹b | upper› }}"),
            ("{{ 1e+3 ~ 2.5E-3 }}", "{{ ‹1e+3› ~ ‹2.5E-3› }}"),
            ("{{ a * 2 ~ b + c ~ -d }}", "{{ «‹⟦a⟧ * ⦅2⦆› ~ ‹b›» + «‹c› ~ ‹-d›» }}"),
            ("{{ a + -b - c * -d ** -e }}", "{{ «a» + «-b» - ⟦c⟧ * ⦅-d ** -e⦆ }}"),
            ("{{ a / b * (c * d) % e * f }}", "{{ ⟦⟦a / b⟧ * ⦅(⟦c⟧ * ⦅d⦆)⦆ % e⟧ * ⦅f⦆ }}"),
            ("{{ f(*a, **b)[1:] + [2][0:1][0] }}", "{{ ««f(*a, **b)[1:]»» + «[2][0:1][0]» }}"),
            ("{{ a ~ b == c ~ d and e ~ f }}", "{{ ‹a› ~ ‹b› == ‹c› ~ ‹d› and ‹e› ~ ‹f› }}"),
            ("{{ a ~ (b ~ c if d else e)[1:] }}", "{{ ‹a› ~ ‹«(‹b› ~ ‹c› if d else e)[1:]»› }}"),
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
                "a: ~\nb: {{ «x[1:]» }} {{ [{'a': 1, 'b': 2}] }}",
            ),
        ] {
            let prepared = prepare(source).unwrap();
            let filters = [("‹›", JOINED), ("«»", COUNTED), ("⟦⟧", FACTOR), ("⦅⦆", TIMES)];
            let expected = filters.iter().fold(expected.to_owned(), |expected, (marks, filter)| {
                let [opening, closing] = [0, 1].map(|at| marks.chars().nth(at).unwrap());
                expected.replace(opening, OPENING).replace(closing, &format!("{CLOSING}{filter}"))
            });
            assert_eq!(prepared, expected, "{source}");
            assert_eq!(as_written(&prepared), source);
        }
    }

    /// The stack of a thread ends by then, and with it the process.
    #[test]
    fn an_endless_chain_of_operators_is_refused_and_a_long_literal_is_not() {
        for link in [
            ".a",
            "[0]",
            "()",
            " | abs",
            " + 1",
            " ~ 1",
            " * 2",
            " ** 2",
            " or 1",
            " == 1",
            " is true",
            " if 1 else 1",
        ] {
            assert_eq!(prepare(&format!("{{{{ a{} }}}}", link.repeat(100))).err(), None, "{link}");
            let problem = prepare(&format!("{{{{ a{} }}}}", link.repeat(MAX_NESTED + 1))).unwrap_err();
            assert!(problem.contains("more than 500 operators"), "{link}: {problem}");
        }
        for opening in ["(", "[", "{", "-", "not "] {
            prepare(&format!("{{{{ {}a", opening.repeat(MAX_NESTED + 1))).unwrap_err();
        }
        let chain = format!("{{% if a %}}{}{{% endif %}}", "{% elif b %}".repeat(MAX_NESTED + 1));
        assert!(prepare(&chain).unwrap_err().contains("more than 500 elif"));
        let sets = "{% set x = [[x], [y]] %}".repeat(MAX_NESTED / 2);
        assert!(prepare(&format!("{sets}{{% set x = [x] %}}")).unwrap_err().contains("more than 500 deep"));
        for long in [
            sets,
            "{% set x = y %}{% if [x] %}{% endif %}".repeat(MAX_NESTED + 1),
            format!("{{% set x = [{}] %}}", "'a', 1, b, ".repeat(MAX_NESTED)),
            "{{ a.b }}".repeat(MAX_NESTED + 1),
        ] {
            assert_eq!(prepare(&long).as_ref(), Ok(&long));
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
            "{% set x = y[1:][0] %}",
        ] {
            assert_eq!(prepare(source).as_deref(), Ok(source));
        }
    }
}
