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
use operator_templates::Expression;
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
    #[serde(rename = "difference")]
    name: String,
    instead: String,
    found: Found,
    /// Expressions that show it.
    expressions: Vec<String>,
    /// A regular expression for others.
    #[serde(default)]
    covers: Option<String>,
}

/// The content of `generated.yaml`.
#[derive(Debug, Deserialize)]
struct Parts {
    fields: Vec<String>,
    of_one: Vec<String>,
    few: Vec<String>,
    of_two: Vec<String>,
    patterns: Vec<String>,
    subjects: Vec<String>,
    numbers: Vec<String>,
    times: Vec<String>,
    durations: Vec<String>,
    quantities: Vec<String>,
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
    let file = read("../crates/operator-templates/src/expression/differences.yaml")?;
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

/// Each operator and function with values of each type, and usual and odd texts for those that read them. All values are fields
/// of an object, so that no type is known before.
fn generated() -> Result<Vec<String>> {
    let parts: Parts = serde_saphyr::from_str(&read("expressions/generated.yaml")?)?;
    let mut all = Vec::new();
    for field in &parts.fields {
        for x in [format!("object.spec.{field}"), format!("object.spec.?{field}")] {
            all.extend(parts.of_one.iter().map(|form| form.replace('X', &x)));
        }
    }
    for x in &parts.few {
        for y in &parts.few {
            let of_pair = |form: &String| {
                form.replace('X', &format!("object.spec.{x}")).replace('Y', &format!("object.spec.{y}"))
            };
            all.extend(parts.of_two.iter().map(of_pair));
        }
    }
    for pattern in &parts.patterns {
        all.extend(parts.subjects.iter().map(|subject| format!("'{subject}'.matches('{pattern}')")));
    }
    all.extend(parts.numbers.iter().map(|text| format!("int('{text}')")));
    all.extend(parts.times.iter().map(|text| format!("timestamp('{text}')")));
    let after = |text: &String| format!("timestamp('2026-03-01T10:00:00Z') + duration('{text}')");
    all.extend(parts.durations.iter().map(after));
    for one in &parts.quantities {
        all.extend(["0", "1.5", "1k", "1Mi", "7Ei", "-1"].map(|other| compared_quantities(one, other)));
    }
    Ok(all)
}

fn compared_quantities(one: &str, other: &str) -> String {
    format!("quantity('{one}').compareTo(quantity('{other}'))")
}

fn asked() -> Result<Vec<Asked>> {
    let mut all = written()?;
    let listed = differences()?.into_iter().flat_map(|difference| difference.expressions);
    let more = generated()?.into_iter().chain(listed);
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
        let mut lines = vec![json!(objects).to_string()];
        lines.extend(asked.iter().map(|Asked { object, expression }| {
            json!({"object": object, "expression": expression}).to_string()
        }));
        let output = output_of(Command::new(program), &(lines.join("\n") + "\n")).await?;
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
        if self.found() != Some(difference.found) {
            return Ok(false);
        }
        let Asked { object, expression } = &self.asked;
        if let Worth::Refused(refusal) = &self.ours {
            return Ok(refusal.contains(&difference.instead));
        }
        let is_listed = object == VALUES && difference.expressions.contains(expression);
        let covers = difference.covers.as_deref().map(Regex::new).transpose()?;
        Ok(is_listed || covers.is_some_and(|covers| covers.is_match(expression)))
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
    ensure!(written()?.len() > 700 && generated()?.len() > 5_000, "the corpus has shrunk");
    Ok(())
}

#[tokio::test]
async fn each_listed_difference_exists_and_its_refusal_says_what_to_write_instead() -> Result<()> {
    e2e::needs!(Go);
    let compared = compared().await?;
    let mut gone = Vec::new();
    for difference in differences()? {
        ensure!(!difference.expressions.is_empty(), "{}: without an expression", difference.name);
        for expression in &difference.expressions {
            let mut of_values = compared.iter().filter(|compared| compared.asked.object == VALUES);
            let found = of_values.find(|compared| compared.asked.expression == *expression);
            let found = found.with_context(|| format!("{expression} was not evaluated"))?;
            if !found.shows(&difference)? {
                gone.push(format!("{}: {found}", difference.name));
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
    let mut rows = vec!["| difference | for example | instead | found |\n|---|---|---|---|".to_owned()];
    for Difference { name, instead, found, expressions, .. } in differences()? {
        let example = cell(expressions.first().map_or("", String::as_str));
        let found = match found {
            Found::Settings => "settings",
            Found::Evaluation => "object",
            Found::Policy => "policy",
        };
        rows.push(format!("| {name} | {example} | {} | {found} |", instead.replace('|', "\\|")));
    }
    let table = rows.join("\n") + "\n\n";
    ensure!(
        read("../docs/expressions.md")?.contains(&table),
        "docs/expressions.md must have this table:\n{table}"
    );
    Ok(())
}
