//! The marked text as a tree, with the values in the places of their marks.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::{
    TemplateError,
    limits::MAX_WRITTEN,
    object::not_an_object,
    values::{END, Kept, START},
};
use crate::render::yaml::{YamlError, read};

/// Maximum total length of the parsed texts that are kept, in bytes. A parsed one takes about ten times its length, and one
/// of many small maps 70 times.
const MAX_KEPT: usize = 128 * 1024;
/// Maximum length of a value in a message, in bytes.
const MAX_SHOWN: usize = 60;

/// A parsed text.
struct Tree {
    root: Value,
    /// The numbers of the marks that are a whole node, in quotes, in a block of text or with a tag: a text whatever the
    /// value is.
    texts: BTreeSet<usize>,
}

/// The texts that were parsed: those of the objects of one template are mostly the same.
#[derive(Default)]
pub(super) struct Trees {
    known: Mutex<HashMap<String, Arc<Tree>>>,
}

impl Trees {
    /// The tree of a text of this template, with these values.
    pub fn fill(&self, template: &str, text: &str, values: &[Kept]) -> Result<Value, TemplateError> {
        let known = self.known.lock().get(text).cloned();
        let tree = match known {
            Some(tree) => tree,
            None => self.learn(template, text, values)?,
        };
        Filling { template, texts: &tree.texts, values, left: MAX_WRITTEN }.node(&tree.root)
    }

    fn learn(&self, template: &str, text: &str, values: &[Kept]) -> Result<Arc<Tree>, TemplateError> {
        let mut texts = BTreeSet::new();
        let root = read(text, |scalar| texts.extend(number(scalar))).map_err(|error| match error {
            YamlError::SeveralDocuments => not_an_object(template, "several YAML documents"),
            YamlError::Invalid(problem) => not_yaml(template, &legible(&problem, values)),
        })?;
        let tree = Arc::new(Tree { root, texts });
        let mut known = self.known.lock();
        if known.keys().map(String::len).sum::<usize>() + text.len() > MAX_KEPT {
            known.clear();
        }
        if text.len() <= MAX_KEPT {
            known.insert(text.to_owned(), tree.clone());
        }
        Ok(tree)
    }

    /// The lengths of the texts that are kept, in bytes.
    #[cfg(test)]
    pub fn lengths(&self) -> Vec<usize> {
        self.known.lock().keys().map(String::len).collect()
    }
}

fn not_yaml(template: &str, problem: &str) -> TemplateError {
    TemplateError::refused(template, format!("does not render to YAML: {problem}; correct the template"))
}

/// The number of the value that a text stands for as a whole.
fn number(text: &str) -> Option<usize> {
    text.strip_prefix(START)?.strip_suffix(END)?.parse().ok()
}

/// The parts of a text: what is before each mark, and the value of that.
fn parts<'t>(text: &'t str, values: &'t [Kept]) -> impl Iterator<Item = (&'t str, Option<&'t Kept>)> {
    text.split(START).enumerate().flat_map(move |(at, part)| {
        let marked = part.split_once(END).filter(|_| at > 0);
        let kept = marked.and_then(|(number, _)| values.get(number.parse::<usize>().ok()?));
        [("", kept), (marked.map_or(part, |(_, after)| after), None)]
    })
}

/// A message with the values in the place of their marks.
fn legible(message: &str, values: &[Kept]) -> String {
    let shown = |kept: &Kept| {
        let json = kept.value.to_string();
        if json.len() > MAX_SHOWN { "…".to_owned() } else { json }
    };
    parts(message, values)
        .fold(String::new(), |all, (before, kept)| all + before + &kept.map(shown).unwrap_or_default())
}

struct Filling<'f> {
    template: &'f str,
    texts: &'f BTreeSet<usize>,
    values: &'f [Kept],
    /// Maximum total length of the values that are still to come, in bytes: an alias may repeat them.
    left: usize,
}

impl Filling<'_> {
    fn node(&mut self, node: &Value) -> Result<Value, TemplateError> {
        Ok(match node {
            Value::String(text) => {
                let whole = number(text).filter(|number| !self.texts.contains(number));
                if let Some(kept) = whole.and_then(|number| self.values.get(number)) {
                    self.spend(kept.length)?;
                    return Ok(kept.value.clone());
                }
                self.text(text)?.into()
            }
            Value::Array(items) => items.iter().map(|item| self.node(item)).collect::<Result<_, _>>()?,
            Value::Object(fields) => {
                let mut filled = Map::new();
                for (key, field) in fields {
                    let key = self.text(key)?;
                    let field = self.node(field)?;
                    if filled.contains_key(&key) {
                        let problem = format!("the key {key:?} is there twice");
                        return Err(not_yaml(self.template, &problem));
                    }
                    filled.insert(key, field);
                }
                filled.into()
            }
            plain => plain.clone(),
        })
    }

    fn text(&mut self, text: &str) -> Result<String, TemplateError> {
        let mut filled = String::with_capacity(text.len());
        for (before, kept) in parts(text, self.values) {
            filled.push_str(before);
            if let Some(kept) = kept {
                self.spend(kept.length)?;
                let text = kept.text().ok_or_else(|| {
                    let text = legible(text, self.values);
                    let problem = format!("none is a part of {text:?}; write (value or \"\")");
                    TemplateError::failed(self.template, &problem)
                })?;
                filled.push_str(&text);
            }
        }
        Ok(filled)
    }

    fn spend(&mut self, bytes: usize) -> Result<(), TemplateError> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or_else(|| TemplateError::too_long(self.template))?;
        Ok(())
    }
}
