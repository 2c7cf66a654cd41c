//! The parameters that a template declares, those that it reads, and those that it does not.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use minijinja::{
    Value,
    value::{Enumerator, Object},
};
use parking_lot::Mutex;
use regex::Regex;
use serde::Deserialize;

use super::{Subject, TemplateError, Templates};

/// Maximum number of edits between a misspelt name and the one that was meant.
const MISSPELT: usize = 2;

/// A parameter that a template declares.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ParameterSpec {
    /// Its name; one that ends with `*` stands for all names with this beginning, such as `env.*`.
    pub name: String,
    /// Its meaning, for the authors of objects.
    #[serde(default)]
    pub description: String,
    /// The value that the template reads when none is set.
    pub default: Option<String>,
    /// Whether it must be set.
    #[serde(default)]
    pub required: bool,
    /// A regular expression that the whole value must match.
    pub pattern: Option<String>,
    /// The possible values; any without it.
    #[serde(default, rename = "enum")]
    pub one_of: Vec<String>,
}

/// The parameters of one template, ready for checks.
#[derive(Debug)]
pub(super) struct Declared(Vec<(ParameterSpec, Option<Regex>)>);

impl Declared {
    /// Compiles declarations for a template that references these parameters, and adds the mistakes in them.
    pub fn read(
        template: &str,
        parameters: Vec<ParameterSpec>,
        referenced: &[String],
        mistakes: &mut Vec<String>,
    ) -> Self {
        let mut declared = Self(Vec::new());
        for parameter in parameters {
            let ParameterSpec { name, default, required, pattern, .. } = &parameter;
            let mut mistake = |problem: &str| mistakes.push(format!("parameters.{template}.{name}{problem}"));
            let pattern = pattern.as_ref().map(|pattern| Regex::new(&format!("^(?:{pattern})$"))).transpose();
            let pattern = pattern.unwrap_or_else(|error| {
                mistake(&format!(".pattern: is not a regular expression: {error}"));
                None
            });
            if name.is_empty() || name.trim_end_matches('*').contains('*') {
                mistake(": is not a name; only its last character may be *");
            }
            if declared.0.iter().any(|(other, _)| other.name == *name) {
                mistake(": is declared twice; remove one of them");
            }
            if name.ends_with('*') && (*required || default.is_some()) {
                mistake(
                    ": stands for many names, so that it can neither be required nor have a default; remove that",
                );
            } else if *required && default.is_some() {
                mistake(": is required and has a default; remove one of them");
            }
            declared.0.push((parameter, pattern));
        }
        for (ParameterSpec { name, default, one_of, .. }, _) in &declared.0 {
            let values = default.iter().map(|value| ("default", value));
            for (field, value) in values.chain(one_of.iter().map(|value| ("enum", value))) {
                if let Some(problem) = declared.objection(name, value) {
                    mistakes.push(format!("parameters.{template}.{name}.{field}: {problem}"));
                }
            }
        }
        let undeclared = referenced.iter().filter(|name| declared.matching(name).next().is_none());
        mistakes.extend(undeclared.map(|name| {
            format!("parameters.{template}: the template reads parameters.{name}; declare it, or remove it from the template")
        }));
        declared
    }

    /// The given parameters with the defaults of all others.
    ///
    /// # Errors
    /// When a parameter is unknown or missing, or has a value that it must not have.
    pub fn complete(
        &self,
        template: &str,
        given: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, TemplateError> {
        for (name, value) in given {
            let refused = |reason, problem: &str, details: &str| {
                let problem = format!("{problem} the template {template:?}: {details}");
                TemplateError::new(reason, format!("spec.parameters.{name} {problem}"))
            };
            if self.matching(name).next().is_none() {
                let known: Vec<&str> = self.0.iter().map(|(parameter, _)| &*parameter.name).collect();
                let advice = match meant(name, known.iter().copied()) {
                    Some(meant) => format!("did you mean {meant}?"),
                    None => format!("it has these: {}", known.join(", ")),
                };
                return Err(refused("ParameterUnknown", "is not a parameter of", &advice));
            }
            if let Some(problem) = self.objection(name, value) {
                return Err(refused("ParameterInvalid", "is not valid for", &problem));
            }
        }
        let mut complete = given.clone();
        for (ParameterSpec { name, default, required, .. }, _) in &self.0 {
            match default {
                _ if given.contains_key(name) => {}
                Some(default) => drop(complete.insert(name.clone(), default.clone())),
                None if *required => return Err(TemplateError::missing(template, name)),
                None => {}
            }
        }
        Ok(complete)
    }

    /// The declarations for a name, all of which hold.
    fn matching<'d>(&'d self, name: &'d str) -> impl Iterator<Item = &'d (ParameterSpec, Option<Regex>)> {
        self.0.iter().filter(move |(parameter, _)| is_for(parameter, name))
    }

    /// The first objection to a value, with the remedy.
    fn objection(&self, name: &str, value: &str) -> Option<String> {
        self.matching(name).find_map(|(ParameterSpec { one_of, pattern: source, .. }, pattern)| {
            if !one_of.is_empty() && !one_of.iter().any(|possible| possible == value) {
                return Some(format!("{value:?} is none of its values; use one of: {}", one_of.join(", ")));
            }
            let is_refused = pattern.as_ref().is_some_and(|pattern| !pattern.is_match(value));
            let source = source.as_deref().unwrap_or_default();
            is_refused.then(|| format!("{value:?} does not match the pattern {source}; correct it"))
        })
    }
}

/// The known name that a misspelt one probably means.
pub(super) fn meant<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let near = known.map(|known| (strsim::osa_distance(name, known), known));
    let near = near.filter(|(distance, known)| *distance <= MISSPELT && *distance < known.len());
    near.min().map(|(_, known)| known)
}

fn is_for(parameter: &ParameterSpec, name: &str) -> bool {
    match parameter.name.strip_suffix('*') {
        Some(beginning) => name.len() > beginning.len() && name.starts_with(beginning),
        None => parameter.name == name,
    }
}

/// The `parameters` of a template, which record those that it read, and the last missing one.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    values: BTreeMap<String, String>,
    /// Whether every other name has the value `1`, to try a template out.
    is_probe: bool,
    missing: Mutex<Option<String>>,
    read: Mutex<BTreeSet<String>>,
}

impl Parameters {
    pub fn new(values: BTreeMap<String, String>, is_probe: bool) -> Arc<Self> {
        Arc::new(Self { values, is_probe, ..Self::default() })
    }

    /// The same parameters, and this one.
    pub fn with(&self, name: &str) -> Arc<Self> {
        let mut values = self.values.clone();
        values.insert(name.to_owned(), "1".to_owned());
        Self::new(values, self.is_probe)
    }

    /// The names that were read.
    pub fn read(&self) -> BTreeSet<String> {
        self.read.lock().clone()
    }

    /// The last missing parameter that was read.
    pub fn missing(&self) -> Option<String> {
        self.missing.lock().clone()
    }
}

impl Object for Parameters {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let name = key.as_str()?;
        let value = self.values.get(name).map(|value| Value::from(value.as_str()));
        if value.is_none() && self.is_probe {
            return Some(Value::from("1"));
        }
        self.read.lock().insert(name.to_owned());
        if value.is_none() {
            *self.missing.lock() = Some(name.to_owned());
        }
        value
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.values.keys().map(|name| Value::from(name.as_str())).collect())
    }
}

impl Templates {
    /// The parameters of a subject that a template without declarations does not read, each with the name that was
    /// probably meant. None if the template cannot be rendered.
    #[must_use]
    pub fn unread(&self, name: &str, subject: &Subject<'_>) -> Vec<String> {
        let referenced = self.referenced(name);
        // Each pass asks: nothing is rendered where nothing can be found.
        let is_possible = subject.parameters.keys().any(|name| !referenced.contains(name));
        if !is_possible || self.declared.contains_key(name) {
            return Vec::new();
        }
        let Ok(input) = self.input(name, subject) else { return Vec::new() };
        if self.fill(name, &input).is_err() {
            return Vec::new();
        }
        let read = input.parameters.read();
        // A part that was left out references more names than were read.
        let unread =
            subject.parameters.keys().filter(|name| !read.contains(*name) && !referenced.contains(name));
        let described = unread.map(|name| match meant(name, referenced.iter().map(String::as_str)) {
            Some(meant) => format!("spec.parameters.{name} (did you mean {meant}?)"),
            None => format!("spec.parameters.{name}"),
        });
        described.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(text: &str) -> (Declared, Vec<String>) {
        let mut mistakes = Vec::new();
        let referenced = ["image".to_owned(), "port".to_owned()];
        let referenced = if text.contains("image") { &referenced[..] } else { &[] };
        let declared =
            Declared::read("default", serde_saphyr::from_str(text).unwrap(), referenced, &mut mistakes);
        (declared, mistakes)
    }

    fn given(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_misspelt_or_bad_parameter_is_refused_with_the_remedy_and_defaults_are_filled_in() {
        let (declared, mistakes) = declared(
            "[{name: image, required: true}, {name: port, pattern: '[0-9]+'}, {name: memory, default: 64Mi},
              {name: tier, enum: [gold, silver]}, {name: 'env.*'}]",
        );
        assert!(mistakes.is_empty(), "{mistakes:?}");
        let refusal =
            |pairs: &[(&str, &str)]| declared.complete("default", &given(pairs)).unwrap_err().to_string();
        for (pairs, expected) in [
            (&[("image", "x"), ("prot", "8080")][..], "spec.parameters.prot"),
            (&[("image", "x"), ("prot", "8080")], "did you mean port?"),
            (&[("image", "x"), ("memroy", "1Gi")], "did you mean memory?"),
            (&[("image", "x"), ("colour", "red")], "image, port, memory, tier, env.*"),
            (&[("image", "x"), ("env.", "red")], "spec.parameters.env."),
            (&[("image", "x"), ("port", "80a")], "\"80a\" does not match the pattern [0-9]+"),
            (&[("image", "x"), ("tier", "iron")], "use one of: gold, silver"),
            (&[("port", "80")], "spec.parameters.image is missing"),
        ] {
            assert!(refusal(pairs).contains(expected), "{expected} is not in: {}", refusal(pairs));
        }
        let complete = declared.complete("default", &given(&[("image", "x"), ("env.A", "1")])).unwrap();
        assert_eq!(complete, given(&[("image", "x"), ("env.A", "1"), ("memory", "64Mi")]));
    }

    #[test]
    fn all_declarations_of_a_name_hold() {
        let (declared, mistakes) = declared(
            "[{name: '*'}, {name: image, pattern: 'ours/.*'}, {name: port}, {name: 'i*', enum: [ours/a, ours/b]}]",
        );
        assert!(mistakes.is_empty(), "{mistakes:?}");
        let complete = |image: &str| declared.complete("default", &given(&[("image", image)]));
        assert!(complete("ours/a").is_ok());
        assert!(complete("ours/c").is_err() && complete("theirs/a").is_err());
        assert!(declared.complete("default", &given(&[("colour", "red")])).is_ok());
    }

    #[test]
    fn a_declaration_that_contradicts_itself_is_a_mistake() {
        let (_, mistakes) = declared(
            "[{name: a, pattern: '('}, {name: b, default: x, required: true}, {name: c, default: x, enum: [y]}, {name: 'd*e'},
              {name: a}, {name: 'f*', required: true}, {name: 'g*', default: x}, {name: h, enum: [a, b], pattern: '[b-z]'},
              {name: gx, default: y}, {name: 'gx*', pattern: z}, {name: i, default: z}, {name: 'i', pattern: y}]",
        );
        let places = [
            "a.pattern",
            "b: is required",
            "d*e: is not a name",
            "a: is declared twice",
            "f*: stands for many names",
            "g*: stands for many names",
            "i: is declared twice",
            "c.default",
            "h.enum: \"a\" does not match",
            "i.default",
        ];
        assert_eq!(mistakes.len(), places.len(), "{mistakes:?}");
        for (mistake, place) in mistakes.iter().zip(places) {
            assert!(mistake.starts_with(&format!("parameters.default.{place}")), "{mistake}");
        }
    }

    #[test]
    fn a_template_that_reads_an_undeclared_parameter_is_a_mistake() {
        let (_, mistakes) = declared("[{name: image}]");
        assert!(
            matches!(&mistakes[..], [only] if only.starts_with("parameters.default: the template reads parameters.port; declare it")),
            "{mistakes:?}"
        );
    }
}
