//! The values of one rendering, and the text with their marks as a tree. The formatter of the engine writes a mark for each
//! value and keeps the value, so that none meets the YAML parser; in the tree, each takes the place of its mark.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use minijinja::{Error, ErrorKind, Output, State, Value as Inserted, value::Object};
use parking_lot::Mutex;
use serde_json::{Map, Value, map::Entry};

use super::{
    TemplateError,
    filters::{MAX_PARTS, MAX_WRITTEN, WRITTEN, Walk, refuse, too_much},
    object::not_an_object,
};
use crate::yaml::{self, YamlError};

/// Maximum total length of the parsed texts that are kept, in bytes. A parsed one takes about ten times its length, and one
/// of many small maps 70 times.
const MAX_KEPT: usize = 128 * 1024;
/// Maximum length of a value in a message, in bytes.
const MAX_SHOWN: usize = 60;

/// Where a node is, for texts in which the kubelet expands `$(NAME)`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Other,
    Containers,
    /// The environment variables or the mounts of a container.
    Entries,
    Probe,
    Expanded,
}

impl Place {
    /// The place of a field.
    fn of(self, field: &str) -> Self {
        match (self, field) {
            (_, "containers" | "initContainers" | "ephemeralContainers") => Self::Containers,
            (Self::Containers, "env" | "volumeMounts") => Self::Entries,
            (Self::Containers, "livenessProbe" | "readinessProbe" | "startupProbe")
            | (Self::Probe, "exec") => Self::Probe,
            (Self::Containers, "command" | "args")
            | (Self::Entries, "value" | "subPathExpr")
            | (Self::Probe, "command") => Self::Expanded,
            _ => Self::Other,
        }
    }

    /// Appends a text that comes from a value. The kubelet reads `$$` as `$`, also where the first one is the template's own.
    fn append(self, text: &str, filled: &mut String) {
        if self != Self::Expanded {
            filled.push_str(text);
            return;
        }
        let of_the_template = filled.len() - filled.trim_end_matches('$').len();
        if of_the_template % 2 == 1 && !text.is_empty() {
            filled.push('$');
        }
        filled.push_str(&text.replace('$', "$$"));
    }

    /// A value that is a whole node.
    fn whole(self, value: &Value) -> Value {
        match value {
            Value::String(text) if self == Self::Expanded => text.replace('$', "$$").into(),
            Value::Array(items) => items.iter().map(|item| self.whole(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(name, field)| (name.clone(), self.of(name).whole(field))).collect()
            }
            plain => plain.clone(),
        }
    }
}

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
    /// The tree of a text of this template, with these values, which may be whole objects.
    pub fn fill(
        &self,
        template: &str,
        text: &str,
        values: &[Kept],
        has_objects: bool,
    ) -> Result<Value, TemplateError> {
        let known = self.known.lock().get(text).cloned();
        let tree = match known {
            Some(tree) => tree,
            None => self.learn(template, text, values)?,
        };
        let texts = &tree.texts;
        Filling { template, texts, values, has_objects, left: MAX_WRITTEN, parts_left: MAX_PARTS }
            .node(&tree.root, Place::Other)
    }

    fn learn(&self, template: &str, text: &str, values: &[Kept]) -> Result<Arc<Tree>, TemplateError> {
        let mut texts = BTreeSet::new();
        let root = yaml::read(text, |scalar| texts.extend(number(scalar))).map_err(|error| match error {
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
    /// Whether a value may be a whole object that somebody else wrote.
    has_objects: bool,
    /// Maximum total length of the values that are still to come, in bytes: an alias may repeat them.
    left: usize,
    /// Maximum number of their parts.
    parts_left: usize,
}

impl Filling<'_> {
    fn node(&mut self, node: &Value, place: Place) -> Result<Value, TemplateError> {
        Ok(match node {
            Value::String(text) => {
                let whole = number(text).filter(|number| !self.texts.contains(number));
                if let Some(kept) = whole.and_then(|number| self.values.get(number)) {
                    self.spend(kept)?;
                    // A copy of a whole object stays what it is: what it expands is its author's.
                    let is_object = self.has_objects && place == Place::Other;
                    let mut value = if is_object { kept.value.clone() } else { place.whole(&kept.value) };
                    yaml::write_integers(&mut value);
                    return Ok(value);
                }
                self.text(text, place)?.into()
            }
            Value::Array(items) => {
                items.iter().map(|item| self.node(item, place)).collect::<Result<_, _>>()?
            }
            Value::Object(fields) => {
                let mut filled = Map::new();
                for (key, field) in fields {
                    let key = self.text(key, Place::Other)?;
                    let field = self.node(field, place.of(&key))?;
                    match filled.entry(key) {
                        Entry::Vacant(place) => drop(place.insert(field)),
                        Entry::Occupied(first) => {
                            let problem = format!("the key {:?} is there twice", first.key());
                            return Err(not_yaml(self.template, &problem));
                        }
                    }
                }
                filled.into()
            }
            plain => plain.clone(),
        })
    }

    fn text(&mut self, text: &str, place: Place) -> Result<String, TemplateError> {
        // Most texts have no mark.
        if !text.contains(END) {
            return Ok(text.to_owned());
        }
        let mut filled = String::with_capacity(text.len());
        for (before, kept) in parts(text, self.values) {
            filled.push_str(before);
            if let Some(kept) = kept {
                self.spend(kept)?;
                let text = kept.text().ok_or_else(|| {
                    let text = legible(text, self.values);
                    let problem = format!("none is a part of {text:?}; write (value or \"\")");
                    TemplateError::failed(self.template, &problem)
                })?;
                place.append(&text, &mut filled);
            }
        }
        Ok(filled)
    }

    fn spend(&mut self, kept: &Kept) -> Result<(), TemplateError> {
        let left = self.left.checked_sub(kept.length);
        self.left = left.ok_or_else(|| TemplateError::too_long(self.template))?;
        let problem = "repeats values that have more than 1,000,000 parts together; make it smaller";
        let parts_left = self.parts_left.checked_sub(kept.parts);
        self.parts_left = parts_left.ok_or_else(|| TemplateError::refused(self.template, problem))?;
        Ok(())
    }
}

/// The start and the end of a mark, around the number of its value. No template and no value contains a start.
pub(super) const START: &str = "\u{e000}@";
pub(super) const END: char = '\u{e001}';

/// The key of the values that a rendering has written.
const KEPT: &str = "@kept";

/// A value that was written.
#[derive(Debug)]
pub(super) struct Kept {
    pub value: Value,
    /// Whether a condition without `else` gave nothing.
    is_nothing: bool,
    /// Its length as a text, in bytes.
    pub length: usize,
    /// The number of its parts.
    parts: usize,
}

impl Kept {
    /// What it is in the middle of a text: itself, or its JSON; `None` for null.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        if self.is_nothing { Some("".into()) } else { json_text(&self.value) }
    }
}

#[derive(Debug, Default)]
struct Values(Mutex<Written>);

#[derive(Debug)]
struct Written {
    values: Vec<Kept>,
    /// The total length of the values, in bytes.
    length: usize,
    /// What may still come.
    left: Walk,
}

impl Default for Written {
    fn default() -> Self {
        Self { values: Vec::new(), length: 0, left: Walk::new(&WRITTEN, true) }
    }
}

impl Object for Values {}

/// The formatter of the engine.
pub(super) fn keep(out: &mut Output, state: &State, value: &Inserted) -> Result<(), Error> {
    let written = written(state);
    let mut written = written.0.lock();
    // A condition without `else` is no missing value: it is nothing in a text, and null as a whole.
    let is_nothing = value.is_undefined();
    let parts = written.left.parts;
    let value = if is_nothing {
        Value::Null
    } else {
        written.left.value(value, 0)?;
        read(value)?
    };
    let mut kept = Kept { value, is_nothing, length: 0, parts: parts - written.left.parts };
    kept.length = kept.text().map_or(0, |text| text.len());
    written.length += kept.length;
    if written.length > MAX_WRITTEN {
        return Err(too_much());
    }
    write!(out, "{START}{}{END}", written.values.len())?;
    written.values.push(kept);
    Ok(())
}

/// The values that a rendering has written, in the order of their marks.
pub(super) fn take(state: &State) -> Vec<Kept> {
    std::mem::take(&mut written(state).0.lock().values)
}

/// A value as a part of a text.
pub(super) fn text(value: &Inserted) -> Result<String, Error> {
    refuse(value)?;
    let value = read(value)?;
    json_text(&value).map(Cow::into_owned).ok_or_else(|| {
        Error::new(ErrorKind::InvalidOperation, "none cannot be a part of a text; write (value or \"\")")
    })
}

fn json_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.into()),
        other => Some(other.to_string().into()),
    }
}

fn written(state: &State) -> Arc<Values> {
    state.get_or_set_temp_object(KEPT, Values::default)
}

fn read(value: &Inserted) -> Result<Value, Error> {
    serde_json::to_value(value).map_err(|error| {
        Error::new(ErrorKind::BadSerialization, "this value cannot be written").with_source(error)
    })
}
