//! Templates of downstream objects.
//!
//! The engine writes a mark for each value. The marked text is parsed, and the values are put into the parsed tree, so that none
//! can ever change the structure of the rendered object.

mod declared;
mod error;
mod failed;
mod fields;
mod filters;
mod limits;
mod object;
mod parameters;
mod source;
mod tree;
mod trials;
mod unread;
mod values;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use minijinja::{Environment, UndefinedBehavior, Value as TemplateValue, context};
use serde_json::Value;

use declared::Declared;
pub use declared::{Declarations, Parameter};
pub use error::TemplateError;
use object::{check, settle_namespace, unique};
use parameters::Parameters;
use tree::Trees;
use values::Kept;

use crate::sha256;

/// Maximum number of steps of a rendering, which stops endless loops.
const FUEL: u64 = 200_000;
/// Maximum length of a rendered text, in bytes: no API server accepts a longer request.
const LONGEST: usize = 3 * 1024 * 1024;

/// The API version and the kind of an object.
pub type ApiKind<'k> = (&'k str, &'k str);

/// Values for some templates only, by name.
type More<'m> = BTreeMap<&'m str, TemplateValue>;

/// A set of named templates.
pub struct Templates {
    environment: Environment<'static>,
    trees: Trees,
    broken: BTreeMap<String, TemplateError>,
    names: Vec<String>,
    /// Those that read `{{ suffix }}`.
    suffixed: BTreeSet<String>,
    declared: BTreeMap<String, Declared>,
    own_domain: String,
    are_many: bool,
}

/// The values that a template can use.
#[derive(Clone, Copy, Debug)]
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

/// A template, and the values that it can use.
#[derive(Clone, Copy)]
struct Input<'i> {
    /// The name of the template.
    template: &'i str,
    subject: &'i Subject<'i>,
    parameters: &'i Arc<Parameters>,
    more: &'i More<'i>,
    own_domain: &'i str,
}

impl Input<'_> {
    /// All values by their names.
    fn values(self) -> TemplateValue {
        let Self { subject, parameters, more, .. } = self;
        context! {
            name => subject.name,
            namespace => subject.namespace,
            uid => subject.uid,
            labels => self.of_others(subject.labels),
            annotations => self.of_others(subject.annotations),
            parameters => TemplateValue::from_dyn_object(parameters.clone()),
            suffix => subject.suffix,
            ..TemplateValue::from_iter(more.clone())
        }
    }

    /// The labels or annotations whose keys are not the controllers' own: a template that copies all must not copy those.
    fn of_others(self, all: Option<&BTreeMap<String, String>>) -> BTreeMap<&str, &str> {
        let is_own = |key: &str| {
            let domain = key.split_once('/').and_then(|(domain, _)| domain.strip_suffix(self.own_domain));
            domain.is_some_and(|subdomain| subdomain.is_empty() || subdomain.ends_with('.'))
        };
        let all = all.into_iter().flatten().map(|(key, value)| (&**key, &**value));
        all.filter(|(key, _)| !is_own(key)).collect()
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
        environment.set_formatter(values::keep);
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
        let names: Vec<_> = sources.keys().cloned().collect();
        let reads_suffix = |name: &&String| {
            let template = environment.get_template(name);
            template.is_ok_and(|template| template.undeclared_variables(false).contains("suffix"))
        };
        Self {
            suffixed: names.iter().filter(reads_suffix).cloned().collect(),
            environment,
            trees: Trees::default(),
            broken,
            names,
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
    pub fn declare(&mut self, declarations: Declarations) -> Vec<String> {
        let mut mistakes = Vec::new();
        for (template, parameters) in declarations {
            if !self.names.contains(&template) {
                let known = self.names.join(", ");
                mistakes.push(format!(
                    "parameters.{template}: there is no template of this name; use one of those under templates ({known})"
                ));
            }
            let declared = Declared::read(&template, parameters, &self.mentioned(&template), &mut mistakes);
            self.declared.insert(template, declared);
        }
        mistakes
    }

    /// Whether a template reads `{{ suffix }}`.
    #[must_use]
    pub fn reads_suffix(&self, name: &str) -> bool {
        self.suffixed.contains(name)
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
        kinds: &[ApiKind<'_>],
    ) -> Result<Rendered, TemplateError> {
        let (given, more) = (self.given(name, subject)?, More::new());
        let input = self.input(name, subject, &given, &more);
        let mut object = self.object(input, kinds)?;
        let hash = if subject.suffix.is_empty() {
            hash(&object)
        } else {
            let same_for_all = Subject { suffix: "", ..*subject };
            let other = self.fill(Input { subject: &same_for_all, ..input })?;
            if self.are_many {
                unique(name, &object, &other)?;
            }
            hash(&other)
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
        kinds: &[ApiKind<'_>],
    ) -> Result<Value, TemplateError> {
        let (given, more) = (self.given(name, subject)?, More::new());
        let mut object = self.object(self.input(name, subject, &given, &more), kinds)?;
        settle_namespace(name, &mut object, subject.namespace)?;
        Ok(object)
    }

    /// Renders a template that can also use `more`, each value by its name. The caller decides on the namespace of the
    /// result.
    ///
    /// # Errors
    /// As [`Templates::render`].
    pub fn render_with(
        &self,
        name: &str,
        subject: &Subject<'_>,
        more: &[(&str, &Value)],
        kinds: &[ApiKind<'_>],
    ) -> Result<Value, TemplateError> {
        let more = more.iter().map(|(name, value)| (*name, TemplateValue::from_serialize(value))).collect();
        let given = Arc::new(Parameters::given(subject.parameters));
        self.object(self.input(name, subject, &given, &more), kinds)
    }

    fn input<'i>(
        &'i self,
        template: &'i str,
        subject: &'i Subject<'i>,
        parameters: &'i Arc<Parameters>,
        more: &'i More<'i>,
    ) -> Input<'i> {
        Input { template, subject, parameters, more, own_domain: &self.own_domain }
    }

    /// The parameters of a subject, with the declared defaults.
    fn given(&self, name: &str, subject: &Subject<'_>) -> Result<Arc<Parameters>, TemplateError> {
        let completed = self.declared.get(name).map(|declared| declared.complete(name, subject.parameters));
        let completed = completed.transpose()?;
        Ok(Arc::new(Parameters::given(completed.as_ref().unwrap_or(subject.parameters))))
    }

    fn object(&self, input: Input<'_>, kinds: &[ApiKind<'_>]) -> Result<Value, TemplateError> {
        let object = self.fill(input)?;
        check(input.template, &object, kinds)?;
        Ok(object)
    }

    /// What a template renders, whatever that is.
    fn fill(&self, input: Input<'_>) -> Result<Value, TemplateError> {
        self.fill_checked(input, |_| None)
    }

    /// The same, but for the mistake that `check` finds in a value.
    fn fill_checked(
        &self,
        input: Input<'_>,
        check: impl Fn(&Kept) -> Option<&'static str>,
    ) -> Result<Value, TemplateError> {
        let name = input.template;
        if let Some(error) = self.broken.get(name) {
            return Err(error.clone());
        }
        let Ok(template) = self.environment.get_template(name) else {
            return Err(TemplateError::unknown(name, &self.names.join(", ")));
        };
        let rendered = template
            .render_captured(input.values())
            .map_err(|error| failed::failure(&template, input, &error))?;
        if rendered.output().len() > LONGEST {
            return Err(TemplateError::too_long(name));
        }
        let values = values::take(rendered.state());
        if let Some(problem) = values.iter().find_map(check) {
            return Err(TemplateError::refused(name, problem));
        }
        self.trees.fill(name, rendered.output(), &values, !input.more.is_empty())
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
    if source.contains(values::START) {
        return Err("it contains U+E000 before @, which stands for a value; remove that".to_owned());
    }
    compile(source)?;
    compile(&prepared)
        .map_err(|error| format!("what it joins by ~ is not understood ({error}); put it in parentheses"))
}

/// A hash that only depends on what is rendered, and not on how that is written: keys are in order.
fn hash(object: &Value) -> String {
    sha256(&object.to_string())
}

#[cfg(test)]
mod tests;
