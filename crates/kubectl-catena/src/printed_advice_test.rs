//! Each command line of this program in its messages and examples is one that it accepts as printed.

use std::{collections::BTreeMap, fs, path::Path};

use catena_api::reason::ROWS;
use clap::Parser;
use serde_json::Value;

use crate::cli::Cli;

const PROGRAM: &str = "kubectl catena";
/// This program and its libraries.
const CRATES: [&str; 7] = [
    "kubectl-catena",
    "catena-archive",
    "catena-cluster",
    "catena-conformance",
    "catena-explain",
    "catena-terminal",
    "catena-upgrade",
];

/// The texts of the sources below a folder, without comments and tests. The sentences of `why` have examples of their own.
fn sources(folder: &Path) -> Vec<String> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["tests", "why"].contains(&&*name) {
                texts.extend(sources(&path));
            }
        } else if name != "tests.rs" && !name.ends_with("_test.rs") {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
            let code = code.split("#[cfg(test)]\npub mod ").next().unwrap();
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            texts.push(lines.collect::<Vec<_>>().join("\n"));
        }
    }
    texts
}

/// The command lines in the literals of a source.
fn command_lines(source: &str) -> Vec<String> {
    // A literal goes on behind a backslash at the end of a line.
    let literals: String =
        source.split("\\\n").map(str::trim_start).collect::<String>().replace("\\\"", "\u{201d}");
    let found = literals.split(PROGRAM).skip(1).filter_map(|rest| {
        let end = rest.find(['`', '"', '\\', '\n']).unwrap_or(rest.len());
        let line = rest[..end].replace('\u{201d}', "\"");
        (!line.trim().is_empty()).then_some(line)
    });
    found.collect()
}

/// The words of a command line, as a shell reads them, with an object in each place that a value is put into.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut quote, mut depth) = (vec![String::new()], None, 0);
    for letter in line.trim().chars() {
        let Some(word) = words.last_mut() else { break };
        match (letter, quote) {
            ('{', None) => depth += 1,
            ('}', None) => {
                depth -= 1;
                word.push('x');
            }
            _ if depth > 0 => {}
            ('\'' | '"', None) => quote = Some(letter),
            (letter, Some(open)) if letter == open => quote = None,
            (' ', None) => words.push(String::new()),
            (letter, _) => word.push(letter),
        }
    }
    words
}

#[test]
fn each_printed_command_line_is_accepted() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let sources: Vec<String> =
        CRATES.iter().flat_map(|name| sources(&crates.join(name).join("src"))).collect();
    let lines: Vec<String> = sources.iter().flat_map(|source| command_lines(source)).collect();
    assert!(lines.len() >= 15, "{lines:?}");
    for line in lines {
        let words = std::iter::once(PROGRAM.to_owned()).chain(words(&line));
        if let Err(error) = Cli::try_parse_from(words) {
            panic!("{PROGRAM}{line}: {error}");
        }
    }
}

#[test]
fn each_command_line_in_a_remedy_is_accepted() {
    let rows: BTreeMap<String, Vec<Value>> = serde_saphyr::from_str(ROWS).unwrap();
    let remedies = rows.values().flatten().filter_map(|row| row["remedy"].as_str());
    let remedies = remedies.map(|remedy| {
        remedy
            .replace("{namespace}", " -n shop")
            .replace("{object}", "basicdeployment/web")
            .replace("{target}", "basicdeployment/web")
            .replace("{name}", "web")
    });
    let lines: Vec<String> = remedies.flat_map(|remedy| remedy_lines(&remedy)).collect();
    assert!(lines.len() >= 4, "{lines:?}");
    for line in lines {
        let words = [PROGRAM, "-n"].into_iter().chain(line.split_whitespace());
        assert!(Cli::try_parse_from(words).is_ok(), "{line}");
    }
}

/// The command lines with a namespace in a text for people.
fn remedy_lines(remedy: &str) -> Vec<String> {
    let lines = remedy.split("kubectl catena -n ").skip(1);
    lines.map(|line| line.split([';', ',']).next().unwrap().to_owned()).collect()
}

#[test]
fn a_command_line_is_found_in_a_literal_of_several_lines() {
    let source = "bail!(\"call `kubectl catena run {kind} \\\n    web --set 'a=b c'`, or not\")";
    let lines = command_lines(source);
    assert_eq!(lines, [" run {kind} web --set 'a=b c'"]);
    assert_eq!(words(&lines[0]), ["run", "x", "web", "--set", "a=b c"]);
}
