//! `--only NAME`: a file of the suite, or the tests with this in their name.

use std::{fs, path::Path, str::FromStr};

use anyhow::{Context, Result, bail};

use crate::workspace;

/// An existing part of the suite, because a name that matches nothing would pass without a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Only {
    /// All tests of e2e/tests/NAME.rs.
    File(String),
    /// All tests with this in their name.
    Tests(String),
}

impl Only {
    /// The filter of the test program: all tests with this in their full name.
    pub fn filter(&self) -> String {
        match self {
            Self::File(name) => format!("{name}::"),
            Self::Tests(name) => name.clone(),
        }
    }
}

impl FromStr for Only {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        let files = files()?;
        // A shell completes to a path.
        let file = Path::new(name).file_stem().unwrap_or_default();
        if let Some((found, _)) = files.iter().find(|(stem, _)| file == stem.as_str()) {
            return Ok(Self::File(found.clone()));
        }
        if files.iter().any(|(_, text)| tests(text).any(|test| test.contains(name))) {
            return Ok(Self::Tests(name.to_owned()));
        }
        bail!("no test has it in its name, and there is no such file; the files are {}", names(&files))
    }
}

/// Options of a test program whose value is an argument of its own.
const WITH_VALUE: [&str; 7] =
    ["--color", "--format", "--logfile", "--shuffle-seed", "--skip", "--test-threads", "-Z"];

/// Fails if one of a test program's arguments is the name of no test: without a test, the program would pass.
pub fn ensure_found(arguments: &[String]) -> Result<()> {
    let is_exact = arguments.iter().any(|argument| argument == "--exact");
    let mut before = "";
    for argument in arguments {
        let is_name = !argument.starts_with('-') && !WITH_VALUE.contains(&before);
        before = argument;
        if !is_name {
            continue;
        }
        let files = files()?;
        let fits = |full: String| if is_exact { full == *argument } else { full.contains(argument) };
        let is_found =
            files.iter().any(|(stem, text)| tests(text).any(|test| fits(format!("{stem}::{test}"))));
        // Those of the support code have other paths.
        if !is_found
            && (is_exact || !support()?.iter().any(|text| tests(text).any(|test| test.contains(argument))))
        {
            bail!(
                "{argument:?} is {} test; the files are {}",
                if is_exact { "not the full name, FILE::TEST, of any" } else { "not in the name of any" },
                names(&files)
            );
        }
    }
    Ok(())
}

fn names(files: &[(String, String)]) -> String {
    files.iter().map(|(stem, _)| stem.as_str()).collect::<Vec<_>>().join(", ")
}

/// The name and text of each file of the suite.
fn files() -> Result<Vec<(String, String)>> {
    let directory = workspace::root().join("e2e/tests");
    let mut files = Vec::new();
    for entry in
        fs::read_dir(&directory).with_context(|| format!("could not list {}", directory.display()))?
    {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs")
            && let Some(stem) = path.file_stem().and_then(|stem| stem.to_str())
            // That one only lists the files of the suite.
            && stem != "suite"
        {
            let text = fs::read_to_string(&path);
            let text = text.with_context(|| format!("could not read {}", path.display()))?;
            files.push((stem.to_owned(), text));
        }
    }
    files.sort();
    Ok(files)
}

/// The texts of the support code, which has tests of its own.
fn support() -> Result<Vec<String>> {
    let mut texts = Vec::new();
    let mut left = vec![workspace::root().join("e2e/src"), workspace::root().join("e2e/tests/suite.rs")];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            for entry in fs::read_dir(&path)? {
                left.push(entry?.path());
            }
        } else {
            texts.push(
                fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?,
            );
        }
    }
    Ok(texts)
}

/// The names of the tests in a file.
fn tests(text: &str) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    text.lines().map(str::trim_start).filter_map(move |line| {
        if line.starts_with("#[") {
            is_test |= line.ends_with("test]") || line.contains("test(");
            return None;
        }
        let (_, after) = line.split_once("fn ")?;
        let name = after.split(['(', '<']).next();
        if std::mem::take(&mut is_test) { name } else { None }
    })
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_file_is_found_by_its_name_or_path_and_a_test_by_a_part_of_its_name() {
        let heals = Only::File("heals".into());
        for name in ["heals", "heals.rs", "e2e/tests/heals.rs"] {
            assert_eq!(name.parse::<Only>().unwrap(), heals);
        }
        assert_eq!("three_replicas".parse::<Only>().unwrap(), Only::Tests("three_replicas".into()));
    }

    #[test]
    fn what_fits_nothing_is_refused_with_what_there_is() {
        let said = "no_such_behaviour".parse::<Only>().unwrap_err().to_string();
        assert!(said.contains("heals") && said.contains("rolls_out"), "{said}");
    }

    #[test]
    fn an_argument_that_is_in_no_name_is_refused_and_an_option_is_not() {
        let found = |line: &str| ensure_found(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for line in ["heals", "takes_any", "heals::", "--ignored blackhole", "--skip healz", "-Z nonsense"] {
            found(line).unwrap();
        }
        // With arguments of their own, in a macro, and in the support code.
        for line in ["chaos_as_it_is_asked_for --ignored", "after_any_specs", "every_file_is_part"] {
            found(line).unwrap();
        }
        for line in ["healz", "heals healz", "--ignored healz", "--skip heals healz", "--exact heals"] {
            let said = found(line).unwrap_err().to_string();
            assert!(said.contains("rolls_out"), "{line}: {said}");
        }
    }

    #[test]
    fn only_what_is_marked_is_a_test() {
        let text = "\
fn aid() {}
#[must_use]
fn answer() -> u8 {
#[tokio::test]
#[ignore = \"long\"]
async fn it_works() -> Result<()> {
async fn other() {}
";
        assert_eq!(tests(text).collect::<Vec<_>>(), ["it_works"]);
    }
}
