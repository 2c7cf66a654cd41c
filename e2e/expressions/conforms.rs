//! An expression of the settings has the value that it has in an admission policy of the API server, or none: thousands of them
//! are compared with the API server's own library, over the objects in `objects.yaml`. What has a value on one side only is a
//! difference that `differences.yaml` names, and that `docs/expressions.md` shows.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::Path,
    thread::{self, available_parallelism},
};

use anyhow::{Context, Result, ensure};
use e2e::{GoModule, output_of};
use jiff::Timestamp;
use operator_kit::render::Expression;
use regex::Regex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{process::Command, sync::OnceCell};

/// The object of the expressions that are generated, and of those in `differences.yaml`.
const VALUES: &str = "values";

/// An expression, and the name of the object that it reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Asked {
    object: String,
    expression: String,
}

/// What an expression is worth on one side.
#[derive(Clone, Debug, PartialEq)]
enum Worth {
    /// JSON; null for nothing, too.
    Value(Value),
    /// A point in time.
    Time(Timestamp),
    /// A value that has no form in JSON.
    Other,
    /// It is refused before there is an object.
    Refused(String),
    /// It has no value for the object.
    Failed(String),
}

/// The content of `differences.yaml` that matters here.
#[derive(Debug, Deserialize)]
struct Differences {
    differences: Vec<Difference>,
}

/// A difference that it names.
#[derive(Debug, Deserialize)]
struct Difference {
    difference: String,
    instead: String,
    found: Found,
    /// Expressions that show it.
    expressions: Vec<String>,
    /// A regular expression for others.
    #[serde(default)]
    covers: Option<String>,
}

/// When an expression is refused to which the API server gives a value, or the other way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Found {
    /// When settings are read.
    Settings,
    /// When an object is read: no type is known before.
    Evaluation,
    /// By the API server alone, when a policy is written.
    Policy,
}

impl Worth {
    fn is_value(&self) -> bool {
        matches!(self, Self::Value(_) | Self::Time(_) | Self::Other)
    }
}

/// A file, by its path from e2e.
fn read(path: &str) -> Result<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
}

fn objects() -> Result<BTreeMap<String, Value>> {
    Ok(serde_saphyr::from_str(&read("expressions/objects.yaml")?)?)
}

fn differences() -> Result<Vec<Difference>> {
    let file = read("../crates/operator-kit/src/render/expression/differences.yaml")?;
    Ok(serde_saphyr::from_str::<Differences>(&file)?.differences)
}

/// The expressions that people wrote: one a line, in a file for each object.
fn written() -> Result<Vec<Asked>> {
    let mut all = Vec::new();
    for object in objects()?.into_keys().filter(|object| object != VALUES) {
        let lines = read(&format!("expressions/corpus/{object}.txt"))?;
        let expressions = lines.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        all.extend(expressions.map(|line| Asked { object: object.clone(), expression: line.to_owned() }));
    }
    Ok(all)
}

/// Each operator and function with values of each type. All are fields of an object, so that no type is known before.
fn generated() -> Vec<String> {
    const FIELDS: [&str; 24] = [
        "int", "zero", "negative", "large", "double", "whole", "text", "empty", "unicode", "digits", "bool",
        "nothing", "list", "texts", "mixed", "objects", "map", "none", "no", "time", "duration", "quantity",
        "missing", "`a-b`",
    ];
    const FEW: [&str; 10] =
        ["int", "double", "whole", "text", "bool", "nothing", "list", "texts", "map", "missing"];
    const OPERATORS: [&str; 14] =
        ["==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "in", "&&", "||"];
    const OF_ONE: [&str; 38] = [
        "X",
        "!X",
        "-X",
        "has(X)",
        "has(X.a)",
        "size(X)",
        "X.size()",
        "string(X)",
        "int(X)",
        "dyn(X)",
        "timestamp(X)",
        "duration(X) == duration('1h30m')",
        "quantity(X) == quantity('500Mi')",
        "X.lowerAscii()",
        "X.upperAscii()",
        "X.trim()",
        "X.sort()",
        "X.min()",
        "X.max()",
        "X.join()",
        "X.join('-')",
        "X.a",
        "X.?a",
        "X[0]",
        "X[?0]",
        "X['a']",
        "X[?'a']",
        "X.?a.?b",
        "X.map(x, x)",
        "X.filter(x, x == 1)",
        "X.exists(x, x == 1)",
        "X.all(x, x != 1)",
        "X.exists_one(x, x == 1)",
        "X ? 1 : 2",
        "X.orValue(1)",
        "[X]",
        "{'k': X}",
        "X.substring(1)",
    ];
    const OF_TWO: [&str; 15] = [
        "X.startsWith(Y)",
        "X.endsWith(Y)",
        "X.contains(Y)",
        "X.matches(Y)",
        "X.split(Y)",
        "X[Y]",
        "X[?Y]",
        "X.substring(Y)",
        "X.exists(x, x == Y)",
        "X.all(x, x < Y)",
        "X.map(x, x + Y)",
        "X == 1 ? X : Y",
        "[X, Y] == [Y, X]",
        "X.?a.orValue(Y)",
        "timestamp(X) < timestamp(Y)",
    ];
    let of_each = |field: &&str| [format!("object.spec.{field}"), format!("object.spec.?{field}")];
    let fields = FIELDS.iter().flat_map(of_each);
    let one = fields.flat_map(|field| OF_ONE.map(|form| form.replace('X', &field)));
    let few = || FEW.iter().map(|field| format!("object.spec.{field}"));
    let pairs = || few().flat_map(|x| few().map(move |y| [x.clone(), y]));
    let operators = pairs().flat_map(|[x, y]| OPERATORS.map(|operator| format!("{x} {operator} {y}")));
    let functions = pairs().flat_map(|[x, y]| OF_TWO.map(|form| form.replace('X', &x).replace('Y', &y)));
    one.chain(operators).chain(functions).chain(of_texts()).collect()
}

/// What stands in texts: patterns, numbers, times, durations and quantities, usual and odd ones.
fn of_texts() -> impl Iterator<Item = String> {
    const PATTERNS: [&str; 62] = [
        "",
        "a",
        "^a",
        "a$",
        "^$",
        ".",
        "a.c",
        "a.*c",
        "a+",
        "a*?",
        "a{2}",
        "a{2,}",
        "a{1,2}",
        "a{,2}",
        "a{",
        "a{x}",
        "{1}",
        "a**",
        "a++",
        "(a|b)c",
        "(a",
        "a)",
        "(?:a)",
        "(?i)A",
        "(?i)é",
        "(?i:A)b",
        "(?m)^b",
        "(?s).",
        "(?x) a",
        "(?P<n>a)",
        "(?<n>a)",
        "(?=a)",
        "(?!a)",
        "[abc]",
        "[^abc]",
        "[a-c]",
        "[c-a]",
        "[a-]",
        "[-a]",
        "[]a]",
        "[^]a]",
        "[]",
        "[a",
        "[[:alpha:]]",
        "[[:^alpha:]]",
        "[[:word:]]",
        "[[:foo:]]",
        "[[a]]",
        "[a&&b]",
        "[a--b]",
        "[.]",
        "[.-]",
        "[+*?(]",
        "a|",
        "|a",
        "a||b",
        "()",
        "^*",
        "$a",
        "é",
        "[é-ü]",
        "a{1001}",
    ];
    const SUBJECTS: [&str; 9] = ["", "a", "abc", "ABC", "aaa", "b c", "é", "a{,2}", "[a]"];
    const NUMBERS: [&str; 20] = [
        "0",
        "-0",
        "+7",
        "007",
        "1_000",
        "1e3",
        "1.0",
        "0x10",
        " 1",
        "1 ",
        "９",
        "--1",
        "+",
        "",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "1u",
        "1L",
        "0b1",
    ];
    const TIMES: [&str; 34] = [
        "2026-03-01T10:00:00Z",
        "2026-03-01T10:00:00.5Z",
        "2026-03-01T10:00:00.123456789Z",
        "2026-03-01T10:00:00+01:00",
        "2026-03-01T10:00:00-23:59",
        "2026-03-01T10:00:00+24:00",
        "2026-03-01T10:00:00+01:60",
        "2026-03-01t10:00:00z",
        "2026-03-01 10:00:00Z",
        "2026-03-01T10:00:00",
        "2026-03-01T10:00Z",
        "2026-03-01",
        "2026-03-01T24:00:00Z",
        "2026-03-01T23:59:60Z",
        "2026-02-29T00:00:00Z",
        "2024-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-01-32T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59.999999999Z",
        "9999-12-31T23:59:59-01:00",
        "10000-01-01T00:00:00Z",
        "+2026-03-01T10:00:00Z",
        "-2026-03-01T10:00:00Z",
        "2026-3-1T10:00:00Z",
        "2026-03-01T10:00:00.Z",
        "2026-03-01T10:00:00,5Z",
        "2026-03-01T10:00:00+0100",
        "2026-03-01T10:00:00 +01:00",
        "",
    ];
    const DURATIONS: [&str; 36] = [
        "0",
        "-0",
        "+0",
        "0s",
        "1h",
        "90m",
        "3600s",
        "1500ms",
        "1us",
        "1µs",
        "1μs",
        "1ns",
        "1h30m",
        "1h30m15s",
        "30m1h",
        "1m1m",
        "1.5h",
        "0.5s",
        ".5s",
        "1.s",
        "1.1ns",
        "-1h",
        "-1h30m",
        "+1h",
        "1",
        "h",
        "1d",
        "1H",
        "1h 30m",
        " 1h",
        "",
        "1h-30m",
        "999999h",
        "2562047h",
        "2562048h",
        "9999999999s",
    ];
    const QUANTITIES: [&str; 44] = [
        "0",
        "-0",
        "1",
        "-1",
        "+1",
        "1.5",
        ".5",
        "5.",
        ".",
        "1n",
        "0.1n",
        "1u",
        "1m",
        "1k",
        "1K",
        "1M",
        "1G",
        "1T",
        "1P",
        "1E",
        "1Ki",
        "1ki",
        "1Mi",
        "1Gi",
        "1Ti",
        "1Pi",
        "1Ei",
        "7Ei",
        "8Ei",
        "9E",
        "10E",
        "1e3",
        "1E3",
        "1e+3",
        "1e-3",
        "1e",
        "1e3Ki",
        "1.0000000001",
        "0.000000001",
        "12345678901234567890",
        "1 Gi",
        "1mi",
        "Gi",
        "",
    ];
    let quoted = |text: &&str| format!("'{text}'");
    let patterns = PATTERNS.iter().flat_map(move |pattern| {
        SUBJECTS.iter().map(move |subject| format!("{}.matches({})", quoted(subject), quoted(pattern)))
    });
    let numbers = NUMBERS.iter().map(move |text| format!("int({})", quoted(text)));
    let times = TIMES.iter().map(move |text| format!("timestamp({})", quoted(text)));
    let durations = DURATIONS
        .iter()
        .map(move |text| format!("timestamp('2026-03-01T10:00:00Z') + duration({})", quoted(text)));
    let quantities = QUANTITIES.iter().flat_map(move |one| {
        ["0", "1.5", "1k", "1Mi", "7Ei", "-1"]
            .map(|other| format!("quantity({}).compareTo(quantity({}))", quoted(one), quoted(&other)))
    });
    patterns.chain(numbers).chain(times).chain(durations).chain(quantities)
}

fn asked() -> Result<Vec<Asked>> {
    let mut all = written()?;
    let listed = differences()?.into_iter().flat_map(|difference| difference.expressions);
    let more = generated().into_iter().chain(listed);
    all.extend(more.map(|expression| Asked { object: VALUES.to_owned(), expression }));
    Ok(all)
}

fn ours(asked: &Asked, object: &Value) -> Worth {
    let expression = match Expression::compile("field", &asked.expression, &["object"]) {
        Ok(expression) => expression,
        Err(error) => return Worth::Refused(error.to_string()),
    };
    let variables = [("object", object)];
    match (expression.optional_json(&variables), expression.optional_timestamp(&variables)) {
        (Ok(value), _) => Worth::Value(value.unwrap_or_default()),
        (Err(_), Ok(Some(time))) => Worth::Time(time),
        (Err(error), _) if error.to_string().contains("must return a value of JSON") => Worth::Other,
        (Err(error), _) => Worth::Failed(error.to_string()),
    }
}

/// What a line of the Go program says.
fn theirs(line: &str) -> Result<Worth> {
    let line: BTreeMap<String, Value> = serde_json::from_str(line)?;
    let (what, value) = line.into_iter().next().context("the Go program said nothing")?;
    let text = value.as_str().unwrap_or_default().to_owned();
    Ok(match what.as_str() {
        "value" => Worth::Value(value),
        // Ours ends a few hours before the year 9999 does.
        "time" => Worth::Time(text.parse().unwrap_or(Timestamp::MAX)),
        "other" => Worth::Other,
        "refused" => Worth::Refused(text),
        _ => Worth::Failed(text),
    })
}

/// An expression with what it is worth here, and in a policy.
struct Compared {
    asked: Asked,
    ours: Worth,
    theirs: Worth,
}

static COMPARED: OnceCell<Vec<Compared>> = OnceCell::const_new();

async fn compared() -> Result<&'static [Compared]> {
    let compared = COMPARED.get_or_try_init(async || {
        let (asked, objects) = (asked()?, objects()?);
        let program = GoModule("expressions").build(".").await?;
        let mut input = format!("{}\n", json!(objects));
        for Asked { object, expression } in &asked {
            input += &format!("{}\n", json!({"object": object, "expression": expression}));
        }
        let output = output_of(Command::new(program), &input).await?;
        let theirs = output.lines().map(theirs).collect::<Result<Vec<_>>>()?;
        ensure!(theirs.len() == asked.len(), "{} answers for {} expressions", theirs.len(), asked.len());
        let all: Vec<_> = asked.into_iter().zip(theirs).collect();
        // The parser takes its time without optimization.
        let share = all.len().div_ceil(available_parallelism()?.get());
        Ok(thread::scope(|scope| {
            let shares = all.chunks(share).map(|share| scope.spawn(|| of_share(share, &objects)));
            let shares: Vec<_> = shares.collect();
            shares.into_iter().flat_map(|share| share.join().expect("no evaluation panics")).collect()
        }))
    });
    compared.await.map(Vec::as_slice)
}

fn of_share(share: &[(Asked, Worth)], objects: &BTreeMap<String, Value>) -> Vec<Compared> {
    let compared = share.iter().cloned().map(|(asked, theirs)| {
        let ours = ours(&asked, &objects[&asked.object]);
        Compared { asked, ours, theirs }
    });
    compared.collect()
}

impl Compared {
    /// When the one side has a value and the other one has none.
    fn found(&self) -> Option<Found> {
        match (&self.ours, &self.theirs) {
            (Worth::Refused(_), theirs) if theirs.is_value() => Some(Found::Settings),
            (Worth::Failed(_), theirs) if theirs.is_value() => Some(Found::Evaluation),
            (ours, Worth::Refused(_)) if ours.is_value() => Some(Found::Policy),
            _ => None,
        }
    }

    /// Whether both have the same value, or none.
    fn is_same(&self) -> bool {
        // The order of the keys of a map is as it comes.
        let is_of_keys = ["map.map(", "map.filter("].iter().any(|part| self.asked.expression.contains(part));
        let ordered = |worth: &Worth| match worth {
            Worth::Value(Value::Array(items)) if is_of_keys => {
                let mut items = items.clone();
                items.sort_by_key(Value::to_string);
                Worth::Value(items.into())
            }
            worth => worth.clone(),
        };
        let have_none = !self.ours.is_value() && !self.theirs.is_value();
        have_none || ordered(&self.ours) == ordered(&self.theirs)
    }

    /// Whether it shows a difference.
    fn shows(&self, difference: &Difference) -> Result<bool> {
        let Asked { object, expression } = &self.asked;
        let is_listed = object == VALUES && difference.expressions.contains(expression);
        let covers = difference.covers.as_deref().map(Regex::new).transpose()?;
        let is_named = match &self.ours {
            Worth::Refused(refusal) => refusal.contains(&difference.instead),
            _ => is_listed || covers.is_some_and(|covers| covers.is_match(expression)),
        };
        Ok(is_named && self.found() == Some(difference.found))
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked: Asked { object, expression }, ours, theirs } = self;
        write!(formatter, "{expression} of {object}: here {ours:?}, in a policy {theirs:?}")
    }
}

#[tokio::test]
async fn an_expression_has_the_value_that_it_has_in_a_policy_or_a_listed_difference() -> Result<()> {
    e2e::needs!(Go);
    let (compared, differences) = (compared().await?, differences()?);
    let mut wrong = Vec::new();
    for compared in compared {
        let mut listed = false;
        for difference in &differences {
            listed |= compared.shows(difference)?;
        }
        if !compared.is_same() && !listed {
            wrong.push(compared.to_string());
        }
    }
    ensure!(wrong.is_empty(), "{} differences that are not listed:\n{}", wrong.len(), wrong.join("\n"));
    let with_value =
        compared.iter().filter(|compared| compared.ours.is_value() && compared.theirs.is_value());
    println!("{} expressions, {} with a value on both sides", compared.len(), with_value.count());
    ensure!(written()?.len() > 700 && generated().len() > 3_000, "the corpus has shrunk");
    Ok(())
}

#[tokio::test]
async fn each_listed_difference_exists_and_its_refusal_says_what_to_write_instead() -> Result<()> {
    e2e::needs!(Go);
    let compared = compared().await?;
    let mut gone = Vec::new();
    for difference in differences()? {
        ensure!(!difference.expressions.is_empty(), "{}: without an expression", difference.difference);
        for expression in &difference.expressions {
            let mut of_values = compared.iter().filter(|compared| compared.asked.object == VALUES);
            let found = of_values.find(|compared| compared.asked.expression == *expression);
            let found = found.with_context(|| format!("{expression} was not evaluated"))?;
            if !found.shows(&difference)? {
                gone.push(format!("{}: {found}", difference.difference));
            }
        }
    }
    ensure!(gone.is_empty(), "{} differences that are none:\n{}", gone.len(), gone.join("\n"));
    Ok(())
}

/// A cell of a table with an expression.
fn cell(expression: &str) -> String {
    let quotes = if expression.contains('`') { "``" } else { "`" };
    let space = if expression.contains('`') { " " } else { "" };
    format!("{quotes}{space}{}{space}{quotes}", expression.replace('|', "\\|").replace('\n', " "))
}

#[test]
fn the_page_has_the_differences_as_they_are_listed() -> Result<()> {
    let mut table = "| difference | for example | instead | found |\n|---|---|---|---|\n".to_owned();
    for Difference { difference, instead, found, expressions, .. } in differences()? {
        let example = cell(expressions.first().map_or("", String::as_str));
        let found = match found {
            Found::Settings => "settings",
            Found::Evaluation => "object",
            Found::Policy => "policy",
        };
        table += &format!("| {difference} | {example} | {} | {found} |\n", instead.replace('|', "\\|"));
    }
    ensure!(
        read("../docs/expressions.md")?.contains(&table),
        "docs/expressions.md must have this table:\n{table}"
    );
    Ok(())
}
