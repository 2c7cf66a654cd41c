//! Templates of downstream objects: rendered, then parsed, then hashed.
//!
//! Every inserted value is written as JSON, which is also YAML, and it is proved that it has stayed a value, so that it can
//! never change the structure of the rendered object.

mod captured;
mod declared;
mod error;
mod failed;
mod growth;
mod marks;
mod missing;
mod object;
mod outline;
mod outlines;
mod parameters;
mod quoting;
mod strings;
mod structure;
mod trials;
mod unread;

use std::{
    collections::{BTreeMap, BTreeSet},
    mem::take,
    sync::Arc,
};

use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value as TemplateValue, context};
use serde_json::Value;

use declared::Declared;
pub use declared::{Declarations, Parameter};
pub use error::TemplateError;
use object::{check, parse, settle_namespace, unique};
use outline::{Outline, has_outline};
use outlines::Outlines;
use parameters::Parameters;

use crate::render::sha256;

/// Maximum number of steps of a rendering, which stops endless loops.
const FUEL: u64 = 200_000;
/// Maximum length of a rendered text, in bytes: no API server accepts a longer request. An object that it stores fits,
/// also with every quote escaped twice.
const LONGEST: usize = 3 * 1024 * 1024;

/// The API version and the kind of an object.
pub type ApiKind<'k> = (&'k str, &'k str);

/// Values for some templates only, by name.
type More<'m> = BTreeMap<&'m str, TemplateValue>;

/// A set of named templates.
pub struct Templates {
    environment: Environment<'static>,
    /// The same templates, which mark the values that could be structure.
    marking: Environment<'static>,
    /// The same templates, which set the strings of their values aside, if they can.
    outlining: Option<Environment<'static>>,
    outlines: Outlines,
    broken: BTreeMap<String, TemplateError>,
    names: Vec<String>,
    /// Those that read `{{ suffix }}`.
    suffixed: BTreeSet<String>,
    declared: BTreeMap<String, Declared>,
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
    /// `{{ labels }}`: its labels.
    pub labels: Option<&'s BTreeMap<String, String>>,
    /// `{{ annotations }}`: its annotations.
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
}

impl Input<'_> {
    /// All values by their names.
    fn values(self) -> TemplateValue {
        let Self { subject, parameters, more, .. } = self;
        context! {
            name => subject.name,
            namespace => subject.namespace,
            uid => subject.uid,
            labels => subject.labels.cloned().unwrap_or_default(),
            annotations => subject.annotations.cloned().unwrap_or_default(),
            parameters => TemplateValue::from_dyn_object(parameters.clone()),
            suffix => subject.suffix,
            ..TemplateValue::from_iter(more.clone())
        }
    }
}

/// A rendered template.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// The object.
    pub object: Value,
    /// sha256 of the text.
    pub hash: String,
}

impl Templates {
    /// Compiles templates. A broken one is reported by [`Templates::problems`] and whenever it is used, and does not
    /// affect the others.
    #[must_use]
    pub fn compile(sources: &BTreeMap<String, String>) -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::Json);
        environment.set_formatter(quoting::format);
        // Every value is quoted anyway, and the filter of the engine would quote it differently.
        environment.add_filter("tojson", |value: TemplateValue| value);
        environment.set_fuel(Some(FUEL));
        environment.set_debug(false);
        // Both ways to insert a value without quoting would let it change the structure.
        environment.remove_filter("safe");
        captured::write_in(&mut environment);
        growth::limit_in(&mut environment);
        missing::refuse_in(&mut environment);
        let mut broken = BTreeMap::new();
        for (name, source) in sources {
            let compiled = if source.contains("autoescape") {
                Err(TemplateError::broken(
                    name,
                    "it switches autoescape, which would let a parameter change the structure; remove that",
                ))
            } else {
                environment
                    .add_template_owned(name.clone(), source.clone())
                    .map_err(|error| TemplateError::broken(name, &error.to_string()))
            };
            if let Err(error) = compiled {
                broken.insert(name.clone(), error);
            }
        }
        let mut marking = environment.clone();
        marking.set_formatter(quoting::mark);
        let outlining = has_outline(sources.values()).then(|| {
            let mut outlining = environment.clone();
            outlining.set_formatter(quoting::set_aside);
            outlining
        });
        let names: Vec<_> = sources.keys().cloned().collect();
        let reads_suffix = |name: &&String| {
            let template = environment.get_template(name);
            template.is_ok_and(|template| template.undeclared_variables(false).contains("suffix"))
        };
        let suffixed = names.iter().filter(reads_suffix).cloned().collect();
        Self {
            environment,
            marking,
            outlining,
            outlines: Outlines::default(),
            broken,
            names,
            suffixed,
            declared: BTreeMap::new(),
        }
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
            let declared = Declared::read(&template, parameters, &mut mistakes);
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

    /// Renders a template.
    ///
    /// # Errors
    /// When the template is missing or broken, when a parameter is missing, or when the result is not one object of the
    /// given kind.
    pub fn render(
        &self,
        name: &str,
        subject: &Subject<'_>,
        api_version: &str,
        kind: &str,
    ) -> Result<Rendered, TemplateError> {
        self.render_any(name, subject, &[(api_version, kind)])
    }

    /// Renders a template whose object may be of any of these kinds.
    ///
    /// # Errors
    /// As [`Templates::render`].
    pub fn render_any(
        &self,
        name: &str,
        subject: &Subject<'_>,
        kinds: &[ApiKind<'_>],
    ) -> Result<Rendered, TemplateError> {
        let given = self.given(name, subject)?;
        let input = Input { template: name, subject, parameters: &given, more: &More::new() };
        let (object, text) = self.object_in_its_namespace(input, kinds)?;
        let hash = if subject.suffix.is_empty() {
            sha256(&text)
        } else {
            let same_for_all = Subject { suffix: "", ..*subject };
            sha256(&self.fill(Input { subject: &same_for_all, ..input })?.0)
        };
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
        api_version: &str,
        kind: &str,
    ) -> Result<Value, TemplateError> {
        let given = self.given(name, subject)?;
        let input = Input { template: name, subject, parameters: &given, more: &More::new() };
        Ok(self.object_in_its_namespace(input, &[(api_version, kind)])?.0)
    }

    /// Renders a template for one of the many objects of its subject.
    ///
    /// # Errors
    /// As [`Templates::render`], and [`TemplateError::NotUnique`] when the name does not differ by the suffix.
    pub fn render_one_of_many(
        &self,
        name: &str,
        subject: &Subject<'_>,
        api_version: &str,
        kind: &str,
    ) -> Result<Rendered, TemplateError> {
        let (given, more, kinds) = (self.given(name, subject)?, More::new(), [(api_version, kind)]);
        let input = Input { template: name, subject, parameters: &given, more: &more };
        let (object, _) = self.object_in_its_namespace(input, &kinds)?;
        let same_for_all = Subject { suffix: "", ..*subject };
        let (other, text) =
            self.object_in_its_namespace(Input { subject: &same_for_all, ..input }, &kinds)?;
        unique(name, &object, &other)?;
        Ok(Rendered { object, hash: sha256(&text) })
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
        api_version: &str,
        kind: &str,
    ) -> Result<Value, TemplateError> {
        let more = more.iter().map(|(name, value)| (*name, TemplateValue::from_serialize(value))).collect();
        let given = Arc::new(Parameters::given(subject.parameters));
        let input = Input { template: name, subject, parameters: &given, more: &more };
        self.object(input, &[(api_version, kind)]).map(|(object, _)| object)
    }

    /// The parameters of a subject, with the declared defaults.
    fn given(&self, name: &str, subject: &Subject<'_>) -> Result<Arc<Parameters>, TemplateError> {
        let completed = self.declared.get(name).map(|declared| declared.complete(name, subject.parameters));
        let completed = completed.transpose()?;
        Ok(Arc::new(Parameters::given(completed.as_ref().unwrap_or(subject.parameters))))
    }

    /// The rendered object in the namespace of its subject, and its text.
    fn object_in_its_namespace(
        &self,
        input: Input<'_>,
        kinds: &[ApiKind<'_>],
    ) -> Result<(Value, String), TemplateError> {
        let (mut object, text) = self.object(input, kinds)?;
        settle_namespace(input.template, &mut object, input.subject.namespace)?;
        Ok((object, text))
    }

    /// The rendered object, and its text.
    fn object(&self, input: Input<'_>, kinds: &[ApiKind<'_>]) -> Result<(Value, String), TemplateError> {
        self.proved(input, kinds)?.ok_or_else(|| failed::value_as_structure(input))
    }

    /// The rendered object, and its text; `None` if a value is structure in it.
    fn proved(
        &self,
        input: Input<'_>,
        kinds: &[ApiKind<'_>],
    ) -> Result<Option<(Value, String)>, TemplateError> {
        let mut outline = self.outline(input);
        if let Some(outline) = &mut outline
            && let Some(object) = self.outlines.object(outline)
        {
            check(input.template, &object, kinds)?;
            return Ok(Some((object, take(&mut outline.whole))));
        }
        let (text, has_risky_values) = self.fill(input)?;
        let object = parse(input.template, &text)?;
        check(input.template, &object, kinds)?;
        let is_outlined = outline.is_some_and(|outline| {
            outline.whole == text && self.outlines.learn(&outline, &object, has_risky_values)
        });
        let is_proved = !has_risky_values
            || is_outlined
            || self.structure(input).is_some_and(|structure| structure == object);
        Ok(is_proved.then_some((object, text)))
    }

    /// The outline, if nothing in it could be structure.
    fn outline(&self, input: Input<'_>) -> Option<Outline> {
        let template = self.outlining.as_ref()?.get_template(input.template).ok()?;
        let rendered = template.render_captured(input.values()).ok()?;
        if structure::has_risky_values(rendered.state()) {
            return None;
        }
        Outline::of(rendered).filter(|outline| outline.whole.len() <= LONGEST)
    }

    /// The object in whose structure no value takes part.
    fn structure(&self, input: Input<'_>) -> Option<Value> {
        let rendered =
            self.marking.get_template(input.template).ok()?.render_captured(input.values()).ok()?;
        let values = structure::values(rendered.state());
        structure::unmarked(serde_saphyr::from_str(rendered.output()).ok()?, &values)
    }

    /// The text, and whether a value in it could be structure.
    fn fill(&self, input: Input<'_>) -> Result<(String, bool), TemplateError> {
        let name = input.template;
        if let Some(error) = self.broken.get(name) {
            return Err(error.clone());
        }
        let Ok(template) = self.environment.get_template(name) else {
            return Err(TemplateError::Unknown { template: name.to_owned(), known: self.names.join(", ") });
        };
        let rendered = template
            .render_captured(input.values())
            .map_err(|error| failed::failure(&template, input, &error))?;
        if rendered.output().len() > LONGEST {
            return Err(TemplateError::TooLong { template: name.to_owned() });
        }
        let has_risky_values = structure::has_risky_values(rendered.state());
        Ok((rendered.into_output(), has_risky_values))
    }
}

#[cfg(test)]
mod tests;
