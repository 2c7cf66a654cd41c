//! A text is read as kubectl and Helm read it, or refused: thousands of texts are compared with their library. A text that this
//! does not read may be read.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use e2e::{GoModule, output_of};
use operator_templates::Yaml;
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, TestRng, TestRunner},
};
use serde_json::Value;
use tokio::process::Command;

/// Plain scalars that YAML parsers are known to read in more than one way, and their neighbours.
const SCALARS: &str = "
    0 -0 +0 00 007 0400 -0400 +0400 08 09 -09 018 0o17 0O17 0o8 0x1F 0X1F 0xg -0x1 +0x1 0b11 0B11 0b2
    -0b1 1 -1 +12 1_000 1__0 _1 1_ 1_000.5 0_7 0x_1 0b_1 1.0 1. -1. .5 -.5 +.5 00.5 1.5e3 1e3 1E3 1e+3
    1e-3 1e400 012e1 1.2.3 1e e3 .e3 . .. - + .inf -.inf +.inf .Inf .INF .nan .NaN .NAN inf nan NaN
    Infinity 9223372036854775807 9223372036854775808 18446744073709551615 18446744073709551616
    -9223372036854775808 -9223372036854775809 12345678901234567890123 0.1 100000000000000000000.0 1e21
    123456789.123456789 true True TRUE tRUE false False FALSE yes Yes YES yES no No NO on On ON oN off
    Off OFF y Y n N null Null NULL nULL ~ ~~ 2024-01-01 2024-01-01T00:00:00Z 1:30 190:20:30 = << a
";

/// The places of a scalar in a document.
const PLACES: [&str; 14] = [
    "a: {}",
    "- {}",
    "a: [{}, b]",
    "a: {b: {}}",
    "{}: b",
    "? {}\n: b",
    "{ {}: b }",
    "a: \"{}\"",
    "a: '{}'",
    "a: |\n  {}\n",
    "a: !!str {}",
    "{}",
    "a: &x {}\nb: *x",
    "a: {} # b",
];

/// Texts whose structure is read in more than one way.
const TEXTS: [&str; 62] = [
    "",
    " ",
    "\n",
    "#",
    "# a\n",
    "---",
    "---\n---",
    "...",
    "a: 1\n...",
    "a: 1\n...\nb: 2",
    "--- a",
    "--- |\n a",
    "%YAML 1.1\n---\na: 1",
    "%YAML 1.2\n---\na: 1",
    "%TAG ! !a\n---\na: 1",
    "a: 1\n---\na: 2",
    "a: 1\n---\n",
    "---\na: 1\n---\n# b\n---\nc: 1",
    "a: 1\na: 2",
    "{a: 1, a: 2}",
    "a: &x {b: 1}\nc: {<<: *x, d: 2}",
    "a: &x {b: 1}\nc: {<<: [*x], b: 2}",
    "a: *x",
    "a: &x *x",
    "a: &x [*x]",
    "- &x a\n- *x",
    "a: !a b",
    "a: !!int \"3\"",
    "a: !!int b",
    "a: !!float 3",
    "a: !!bool yes",
    "a: !!null ''",
    "a: !!binary YWI=",
    "a: !!timestamp 2024-01-01",
    "a: !!set {b, c}",
    "a: !!omap [b: 1]",
    "a: ! 3",
    "a:\tb",
    "a: b\tc",
    "\ta: b",
    "a:\n\tb: c",
    "a: |\n  \tb\n",
    "a: |\n\tb\n",
    "a: >\n  b\n  c\n\n  d\n",
    "a: |2\n   b\n",
    "a: |+\n  b\n\n",
    "a: >-\n  b\n   c\n  d",
    "a: b\n c",
    "a: \"b\n  c\"",
    "a: 'b\n\n  c'",
    "a: \"\\x41\\u00e9\\/\\_\\N\"",
    "a: 'it''s'",
    "a: b: c",
    "a: b #c",
    "a: b#c",
    "a: [b, c,]",
    "a: {b, c: }",
    "[a, b]: c",
    "{a: b}: c",
    "? a\n? b",
    "\u{feff}a: 1",
    "a: 1\r\nb: 2\r\n",
];

/// Parts of the texts that are made at random.
const PARTS: [&str; 40] = [
    "a", "b", "0", "7", "8", ".", "_", "-", "+", "e", "x", ":", ": ", " ", "  ", "\n", "\n  ", "\n- ", "- ",
    "? ", "#", " #", "\"", "'", "|", ">", "|-\n", "[", "]", "{", "}", ", ", "&x ", "*x", "!", "!!str ", "~",
    "yes", "\t", "---\n",
];

/// How a text is read: all that is in it, or nothing.
type Read = Option<Value>;

/// All texts as kubectl reads them.
async fn by_kubectl(texts: &[String]) -> Result<Vec<Read>> {
    let program = GoModule("yaml").build(".").await?;
    let lines = output_of(Command::new(program), &serde_json::to_string(texts)?).await?;
    let read: Vec<Read> = lines.lines().map(|line| serde_json::from_str(line).ok()).collect();
    ensure!(read.len() == texts.len(), "{} answers to {} texts", read.len(), texts.len());
    Ok(read)
}

/// A text as we read it, if it is one document that can be an object.
fn by_us(text: &str) -> Read {
    let [only] = <[Value; 1]>::try_from(Yaml::read_all(text).ok()?).ok()?;
    Some(only).filter(|value| value.is_object() || value.is_array())
}

/// Texts of random parts, always the same ones.
fn random(number: usize) -> Result<Vec<String>> {
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        TestRng::deterministic_rng(Config::default().rng_algorithm),
    );
    let strategy =
        prop::collection::vec(prop::sample::select(&PARTS[..]), 1..9).prop_map(|parts| parts.concat());
    let one = |_| Ok(strategy.new_tree(&mut runner).map_err(|error| anyhow::anyhow!("{error}"))?.current());
    (0..number).map(one).collect()
}

/// All files of a folder and of those below it that hold YAML and no template.
fn files(folder: &Path, found: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            found.push(fs::read_to_string(path)?);
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_text_is_read_as_kubectl_reads_it_or_refused() -> Result<()> {
    e2e::needs!(Go);
    let mut texts: Vec<String> = TEXTS.map(str::to_owned).into();
    for place in PLACES {
        texts.extend(SCALARS.split_whitespace().map(|scalar| place.replacen("{}", scalar, 1)));
    }
    texts.extend(random(20_000)?);
    let theirs = by_kubectl(&texts).await?;
    let (mut same, mut wrong) = (0, Vec::new());
    for (text, theirs) in texts.iter().zip(theirs) {
        match (by_us(text), theirs) {
            (Some(ours), Some(theirs)) if ours == theirs => same += 1,
            (Some(ours), Some(theirs)) => wrong.push(format!("{text:?}: {ours} instead of {theirs}")),
            _ => {}
        }
    }
    println!("{} texts, {same} read alike", texts.len());
    ensure!(wrong.is_empty(), "{} are read otherwise:\n{}", wrong.len(), wrong.join("\n"));
    ensure!(same > 2_000, "hardly anything is compared");
    Ok(())
}

#[tokio::test]
async fn what_people_write_is_read() -> Result<()> {
    e2e::needs!(Go);
    let mut texts = Vec::new();
    for folder in ["../examples", "../crds", "../xtask/values"] {
        files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut texts)?;
    }
    for text in &texts {
        let read = Yaml::read_all(text);
        ensure!(read.is_ok(), "{read:?}: {text}");
    }
    Ok(())
}
