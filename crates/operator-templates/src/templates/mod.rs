//! Templates of downstream objects.
//!
//! The engine writes a mark for each value. The marked text is parsed, and the values are put into the parsed tree, so that none
//! can ever change the structure of the rendered object.

mod error;
mod fields;
mod filters;
mod object;
mod parameters;
mod source;
mod tree;
mod trials;

use std::{collections::BTreeMap, io, sync::Arc};

use minijinja::{Environment, UndefinedBehavior, Value as TemplateValue, context};
use serde_json::Value;

pub use error::TemplateError;
use object::{check, settle_namespace, unique};
pub use parameters::ParameterSpec;
use parameters::{Declared, Parameters};
use tree::{Kept, Trees};

use crate::Digest;

/// Maximum number of steps of a rendering, which stops endless loops.
const FUEL: u64 = 200_000;
/// Maximum length of a rendered text, in bytes: no API server accepts a longer request.
const LONGEST: usize = 3 * 1024 * 1024;

/// A set of named templates.
pub struct Templates {
    environment: Environment<'static>,
    trees: Trees,
    broken: BTreeMap<String, TemplateError>,
    names: Vec<String>,
    declared: BTreeMap<String, Declared>,
    referenced: BTreeMap<String, Referenced>,
    own_domain: String,
    are_many: bool,
}

/// What a template references. It may read more.
#[derive(Default)]
struct Referenced {
    has_suffix: bool,
    /// The names of parameters, in order.
    parameters: Vec<String>,
}

/// The values that a template can use.
#[derive(Clone, Copy, Debug, Hash)]
pub struct Subject<'s> {
    /// `{{ name }}`: the name of the object that the template is rendered for.
    pub name: &'s str,
    /// `{{ namespace }}`: its namespace.
    pub namespace: &'s str,
    /// `{{ uid }}`: its uid.
    pub uid: &'s str,
    /// `{{ labels }}`: its labels, without those of the controllers.
    pub labels: Option<&'s BTreeMap<String, String>>,
    /// `{{ annotations }}`: its annotations, without those of the controllers.
    pub annotations: Option<&'s BTreeMap<String, String>>,
    /// `{{ parameters }}`: the values that the author of the object sets.
    pub parameters: &'s BTreeMap<String, String>,
    /// `{{ suffix }}`: keeps the names of several objects of one rendering apart. The hash is computed with an empty
    /// suffix, so that all of them have the same hash.
    pub suffix: &'s str,
}

/// The values that one rendering can use.
#[derive(Clone)]
struct Input<'i> {
    /// The parameters that the author of the object sets.
    given: &'i BTreeMap<String, String>,
    /// `{{ parameters }}`: these, and the defaults of others.
    parameters: Arc<Parameters>,
    /// All other values, by name.
    others: TemplateValue,
    /// Whether some of them are whole objects that somebody else wrote.
    has_objects: bool,
}

impl Input<'_> {
    /// All values by their names.
    fn values(&self) -> TemplateValue {
        context! { parameters => TemplateValue::from_dyn_object(self.parameters.clone()), ..self.others.clone() }
    }
}

/// A rendered template.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// The object.
    pub object: Value,
    /// sha256 of the object as JSON with its keys in order.
    pub hash: String,
}

impl Templates {
    /// Compiles templates. A broken one is reported by [`Templates::problems`] and whenever it is used, and does not
    /// affect the others. Labels and annotations whose keys are of the domain of the controllers, such as `example.com`, are not
    /// shown to templates.
    #[must_use]
    pub fn compile(sources: &BTreeMap<String, String>, own_domain: &str) -> Self {
        let mut environment = Environment::empty();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_formatter(tree::keep);
        environment.set_fuel(Some(FUEL));
        environment.set_debug(false);
        filters::add_to(&mut environment);
        let mut broken = BTreeMap::new();
        for (name, source) in sources {
            if let Err(problem) = add(&mut environment, name, source) {
                let problem = format!("is broken: {problem}; fix it in the controller's templates");
                broken.insert(name.clone(), TemplateError::refused(name, problem));
            }
        }
        let referenced = environment.templates().map(|(name, template)| {
            let variables = template.undeclared_variables(true);
            let parameters = variables.iter().filter_map(|variable| variable.strip_prefix("parameters."));
            let mut parameters: Vec<String> = parameters.map(str::to_owned).collect();
            parameters.sort_unstable();
            let has_suffix = template.undeclared_variables(false).contains("suffix");
            (name.to_owned(), Referenced { has_suffix, parameters })
        });
        Self {
            referenced: referenced.collect(),
            environment,
            trees: Trees::default(),
            broken,
            names: sources.keys().cloned().collect(),
            declared: BTreeMap::new(),
            own_domain: own_domain.to_owned(),
            are_many: false,
        }
    }

    /// The same templates, for many objects of each subject: their names have to differ by the suffix.
    #[must_use]
    pub fn for_many(self) -> Self {
        Self { are_many: true, ..self }
    }

    /// Declares the parameters of templates: others are refused, and defaults are filled in. Returns the mistakes in the
    /// declarations.
    pub fn declare(&mut self, declarations: BTreeMap<String, Vec<ParameterSpec>>) -> Vec<String> {
        let mut mistakes = Vec::new();
        for (template, parameters) in declarations {
            if !self.names.contains(&template) {
                let known = self.names.join(", ");
                mistakes.push(format!(
                    "parameters.{template}: there is no template of this name; use one of those under templates ({known})"
                ));
            }
            let declared = Declared::read(&template, parameters, self.referenced(&template), &mut mistakes);
            self.declared.insert(template, declared);
        }
        mistakes
    }

    /// Whether a template reads `{{ suffix }}`.
    #[must_use]
    pub fn reads_suffix(&self, name: &str) -> bool {
        self.referenced.get(name).is_some_and(|referenced| referenced.has_suffix)
    }

    /// The names of the parameters that a template references.
    fn referenced(&self, name: &str) -> &[String] {
        self.referenced.get(name).map_or(&[], |referenced| &referenced.parameters)
    }

    /// The names of all templates.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Renders a template, whose object may be of any of these kinds, in the namespace of its subject.
    ///
    /// # Errors
    /// When the template is missing or broken, when a parameter is missing, or when the result is not one object of the
    /// given kinds; with the reason `NotUnique` when one of many has a name that does not differ by the suffix.
    pub fn render(
        &self,
        name: &str,
        subject: &Subject<'_>,
        kinds: &[(&str, &str)],
    ) -> Result<Rendered, TemplateError> {
        let input = self.input(name, subject)?;
        let mut object = self.object(name, &input, kinds)?;
        let hash = if subject.suffix.is_empty() {
            hash(&object)
        } else {
            hash(&self.without_suffix(name, input, &object)?)
        };
        settle_namespace(name, &mut object, subject.namespace)?;
        Ok(Rendered { object, hash })
    }

    /// Renders a template whose hash is known.
    ///
    /// # Errors
    /// As [`Templates::render`].
    pub fn render_object(
        &self,
        name: &str,
        subject: &Subject<'_>,
        kinds: &[(&str, &str)],
    ) -> Result<Value, TemplateError> {
        let mut object = self.object(name, &self.input(name, subject)?, kinds)?;
        settle_namespace(name, &mut object, subject.namespace)?;
        Ok(object)
    }

    /// Renders a template that can also use `extra`, each value by its name. The caller decides on the namespace of the
    /// result.
    ///
    /// # Errors
    /// As [`Templates::render`].
    pub fn render_with(
        &self,
        name: &str,
        subject: &Subject<'_>,
        extra: &[(&str, &Value)],
        kinds: &[(&str, &str)],
    ) -> Result<Value, TemplateError> {
        let input = self.input(name, subject)?;
        let extra: TemplateValue =
            extra.iter().map(|(name, value)| (*name, TemplateValue::from_serialize(value))).collect();
        let others = context! { ..input.others, ..extra };
        self.object(name, &Input { others, has_objects: true, ..input }, kinds)
    }

    /// The values of a subject, with the declared defaults.
    fn input<'i>(&self, name: &str, subject: &Subject<'i>) -> Result<Input<'i>, TemplateError> {
        let given = subject.parameters;
        let declared = self.declared.get(name);
        let complete =
            declared.map_or_else(|| Ok(given.clone()), |declared| declared.complete(name, given))?;
        Ok(Input {
            given,
            parameters: Parameters::new(complete, false),
            others: self.others(subject),
            has_objects: false,
        })
    }

    /// The values of a subject but for its parameters. Labels and annotations whose keys are the controllers' own are not among
    /// them: a template that copies all must not copy those.
    fn others(&self, subject: &Subject<'_>) -> TemplateValue {
        let is_own = |key: &str| {
            let domain = key.split_once('/').and_then(|(domain, _)| domain.strip_suffix(&self.own_domain));
            domain.is_some_and(|subdomain| subdomain.is_empty() || subdomain.ends_with('.'))
        };
        let of_others = |texts: Option<&BTreeMap<String, String>>| -> TemplateValue {
            let texts = texts.into_iter().flatten().filter(|(key, _)| !is_own(key));
            texts.map(|(key, value)| (key.as_str(), value.as_str())).collect()
        };
        context! {
            name => subject.name,
            namespace => subject.namespace,
            uid => subject.uid,
            labels => of_others(subject.labels),
            annotations => of_others(subject.annotations),
            suffix => subject.suffix,
        }
    }

    fn object(&self, name: &str, input: &Input<'_>, kinds: &[(&str, &str)]) -> Result<Value, TemplateError> {
        let object = self.fill(name, input)?;
        check(name, &object, kinds)?;
        Ok(object)
    }

    /// What is the same for all objects of a rendering, of which this is one.
    fn without_suffix(&self, name: &str, input: Input<'_>, object: &Value) -> Result<Value, TemplateError> {
        let others = context! { suffix => "", ..input.others };
        let same_for_all = self.fill(name, &Input { others, ..input })?;
        if self.are_many {
            unique(name, object, &same_for_all)?;
        }
        Ok(same_for_all)
    }

    /// What a template renders, whatever that is.
    fn fill(&self, name: &str, input: &Input<'_>) -> Result<Value, TemplateError> {
        self.fill_checked(name, input, |_| None)
    }

    /// The same, but for the mistake that `check` finds in a value.
    fn fill_checked(
        &self,
        name: &str,
        input: &Input<'_>,
        check: impl Fn(&Kept) -> Option<&'static str>,
    ) -> Result<Value, TemplateError> {
        if let Some(error) = self.broken.get(name) {
            return Err(error.clone());
        }
        let Ok(template) = self.environment.get_template(name) else {
            return Err(TemplateError::unknown(name, &self.names.join(", ")));
        };
        let mut text = Text::default();
        let rendered = template.render_captured_to(input.values(), &mut text);
        let rendered = rendered.map_err(|error| error::failure(&template, input, &error))?;
        let values = tree::take(rendered.state());
        if let Some(problem) = values.iter().find_map(check) {
            return Err(TemplateError::refused(name, problem));
        }
        self.trees.fill(name, &String::from_utf8_lossy(&text.0), &values, input.has_objects)
    }
}

/// A rendered text, which takes nothing beyond its maximum length: many turns of a loop can write more than fits into memory.
#[derive(Default)]
struct Text(Vec<u8>);

impl io::Write for Text {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        if self.0.len() + part.len() > LONGEST { Ok(0) } else { self.0.write(part) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Adds a template to the engine.
///
/// # Errors
/// With the mistake in it.
fn add(environment: &mut Environment<'static>, name: &str, source: &str) -> Result<(), String> {
    let prepared = source::prepare(source)?;
    let mut compile = |source: &str| {
        let compiled = environment.add_template_owned(name.to_owned(), source.to_owned());
        compiled.map_err(|error| error.to_string())
    };
    if source.contains(tree::START) {
        return Err("it contains U+E000 before @, which stands for a value; remove that".to_owned());
    }
    compile(source)?;
    compile(&prepared).map_err(|error| {
        format!("what it joins by ~, + or * is not understood ({error}); put it in parentheses")
    })
}

/// A hash that only depends on what is rendered, and not on how that is written: keys are in order.
fn hash(object: &Value) -> String {
    Digest::sha256(&object.to_string())
}

#[cfg(test)]
mod tests;
