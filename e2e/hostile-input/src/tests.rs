//! Known inputs, and many variations of them.

use std::{
    env, fs,
    path::Path,
    time::{Duration, Instant},
};

use proptest::{collection::vec, prelude::*, sample::Index, test_runner::TestRunner};

use crate::{
    ANNOTATIONS, EXPRESSIONS, OBJECTS, PARAMETERS, SENT, SETTINGS, TARGETS, TEMPLATES, Target, WATCHED,
};

/// Number of generated inputs of a target.
const MANY: u32 = 800;
/// The same if one input may take all the steps of a template or an expression.
const FEW: u32 = 150;
/// Maximum number of edits of a generated input, and of one in a search.
const FEW_EDITS: usize = 8;
const MANY_EDITS: usize = 40;
/// Maximum length, as for cargo-fuzz.
const LONGEST: usize = 8192;

/// A change to an input.
#[derive(Clone, Debug)]
enum Edit {
    Put(Index, Vec<u8>),
    Remove(Index, usize),
    Repeat(Index, usize, usize),
    Splice(Index, Index),
}

fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let mut files: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// The words of the dictionary of cargo-fuzz: each is quoted, with `\xAB`, `\\` and `\"` in it.
fn words() -> Vec<Vec<u8>> {
    let word = |line: &str| {
        let word = line.strip_prefix('"')?.strip_suffix('"')?;
        let (mut bytes, mut rest) = (Vec::new(), word);
        while let Some((plain, escaped)) = rest.split_once('\\') {
            bytes.extend(plain.as_bytes());
            if let Some(hex) = escaped.strip_prefix('x') {
                bytes.push(u8::from_str_radix(&hex[..2], 16).unwrap());
                rest = &hex[2..];
            } else {
                bytes.extend(&escaped.as_bytes()[..1]);
                rest = &escaped[1..];
            }
        }
        bytes.extend(rest.as_bytes());
        Some(bytes)
    };
    include_str!("../words.dict").lines().filter_map(word).collect()
}

fn edits(most: usize) -> impl Strategy<Value = Vec<Edit>> {
    let put = prop_oneof![
        4 => proptest::sample::select(words()),
        1 => vec(any::<u8>(), 1..8),
        1 => ".{1,8}".prop_map(String::into_bytes),
    ];
    let edit = prop_oneof![
        4 => (any::<Index>(), put).prop_map(|(at, what)| Edit::Put(at, what)),
        2 => (any::<Index>(), 1..40_usize).prop_map(|(at, length)| Edit::Remove(at, length)),
        1 => (any::<Index>(), 1..40_usize, 1..60_usize).prop_map(|(at, length, times)| Edit::Repeat(at, length, times)),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(at, other)| Edit::Splice(at, other)),
    ];
    vec(edit, 0..most)
}

fn edited(mut input: Vec<u8>, edits: Vec<Edit>, corpus: &[Vec<u8>]) -> Vec<u8> {
    for edit in edits {
        let place = |at: Index| at.index(input.len() + 1);
        match edit {
            Edit::Put(at, what) => {
                let at = place(at);
                input.splice(at..at, what);
            }
            Edit::Remove(at, length) => {
                let at = place(at);
                input.drain(at..input.len().min(at + length));
            }
            Edit::Repeat(at, length, times) => {
                let at = place(at);
                let part = input[at..input.len().min(at + length)].repeat(times);
                input.splice(at..at, part);
            }
            Edit::Splice(at, other) => {
                input.truncate(place(at));
                let other = other.get(corpus);
                input.extend(&other[other.len() / 2..]);
            }
        }
    }
    input.truncate(LONGEST);
    input
}

/// Reads the inputs of the corpus, and variations of them.
fn holds(target: &Target, made: u32) {
    let corpus = corpus(target);
    for input in &corpus {
        target.read(input);
    }
    vary(target, &corpus, made, FEW_EDITS);
}

/// Reads proptest's variations of the inputs.
fn vary(target: &Target, corpus: &[Vec<u8>], made: u32, most_edits: usize) {
    let config = ProptestConfig { cases: made, failure_persistence: None, ..ProptestConfig::default() };
    let bases = (proptest::sample::select(corpus.to_vec()), edits(most_edits));
    let edited = bases.prop_map(|(input, edits)| edited(input, edits, corpus));
    let anything = vec(any::<u8>(), 0..64);
    let inputs = prop_oneof![20 => edited, 1 => anything];
    let shown = inputs.prop_map(Shown);
    TestRunner::new(config)
        .run(&shown, |Shown(input)| {
            target.read(&input);
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{}: {error}", target.name));
}

/// Bytes in a form that can be pasted into a file.
struct Shown(Vec<u8>);

impl std::fmt::Debug for Shown {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "b\"{}\"", self.0.escape_ascii())
    }
}

#[test]
fn settings_are_taken_or_refused() {
    holds(&SETTINGS, FEW);
}

#[test]
fn parameters_stay_values_in_the_shipped_templates() {
    holds(&PARAMETERS, MANY);
}

#[test]
fn templates_give_one_object_or_an_error() {
    holds(&TEMPLATES, FEW);
}

#[test]
fn expressions_give_a_value_or_an_error() {
    holds(&EXPRESSIONS, FEW);
}

#[test]
fn annotations_are_read_as_they_were_written_or_not_at_all() {
    holds(&ANNOTATIONS, MANY);
}

#[test]
fn objects_are_kept_as_far_as_they_can_be_read() {
    holds(&OBJECTS, MANY);
}

#[test]
fn what_is_sent_is_read_as_the_same() {
    holds(&SENT, MANY);
}

#[test]
fn an_object_that_cannot_be_read_spoils_no_other() {
    holds(&WATCHED, MANY);
}

/// Without cargo-fuzz, and so on a stable toolchain:
/// `TARGET=templates SECONDS=600 cargo test --release -p hostile-input searches -- --ignored --nocapture`.
#[test]
#[ignore = "it searches for SECONDS"]
fn searches_for_inputs_that_are_read_incorrectly() {
    let variable = |name| env::var(name).unwrap_or_else(|_| panic!("set {name}"));
    let (name, seconds) = (variable("TARGET"), variable("SECONDS"));
    let target = TARGETS.into_iter().find(|target| target.name == name).expect("TARGET names a corpus");
    let time = Duration::from_secs(seconds.parse().expect("SECONDS is a number"));
    let (corpus, begun, mut made) = (corpus(&target), Instant::now(), 0);
    while begun.elapsed() < time {
        vary(&target, &corpus, FEW, MANY_EDITS);
        made += FEW;
    }
    println!("{name}: {made} inputs in {:?}", begun.elapsed());
}

#[test]
fn each_target_has_a_corpus_and_a_program_for_cargo_fuzz() {
    let manifest = include_str!("../fuzz/Cargo.toml");
    for target in TARGETS {
        let Target { name, .. } = target;
        assert!(!corpus(&target).is_empty(), "{name} has no corpus");
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} has no program");
    }
}
