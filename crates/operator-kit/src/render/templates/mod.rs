//! Templates of downstream objects: rendered, then parsed, then hashed.
//!
//! Every inserted value is written as JSON, which is also YAML, and it is proved that it has stayed a value, so that it can
//! never change the structure of the rendered object.

mod anything;
mod culprit;
mod declared;
mod error;
mod input;
mod missing;
mod object;
mod parameters;
mod quoting;
mod structure;
mod unread;

use std::{collections::BTreeMap, sync::Arc};

use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value as TemplateValue};
use serde_json::Value;

use anything::Anything;
use declared::Declared;
pub use declared::{Declarations, Parameter};
pub use error::TemplateError;
use input::Input;
use object::{parse, settle_namespace, unique};
use parameters::Parameters;

use crate::render::sha256;

/// Maximum number of steps of a rendering, which stops endless loops.
const FUEL: u64 = 200_000;
/// Maximum length of a rendered text, in bytes: no API server accepts a longer request. An object that it stores fits,
/// also with every quote escaped twice.
const LONGEST: usize = 3 * 1024 * 1024;

/// The suffix for trying out templates.
const PROBE: &str = "suffix";

/// The API version and the kind of an object.
pub type ApiKind<'k> = (&'k str, &'k str);

/// Values for some templates only, by name.
type More<'m> = BTreeMap<&'m str, TemplateValue>;

/// A set of named templates.
pub struct Templates {
    environment: Environment<'static>,
    /// The same templates, which mark the values that could be structure.
    marking: Environment<'static>,
    broken: BTreeMap<String, TemplateError>,
    names: Vec<String>,
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
        let names = sources.keys().cloned().collect();
        Self { environment, marking, broken, names, declared: BTreeMap::new() }
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
        let template = self.environment.get_template(name);
        template.is_ok_and(|template| template.undeclared_variables(false).contains("suffix"))
    }

    /// The mistakes in the templates that can be found before their use: each template is tried with every parameter
    /// set to `1`.
    #[must_use]
    pub fn problems(&self, api_version: &str, kind: &str) -> Vec<TemplateError> {
        self.problems_of_any(&[(api_version, kind)])
    }

    /// Like [`Templates::problems`], for templates each of which renders an object of any of these kinds.
    #[must_use]
    pub fn problems_of_any(&self, kinds: &[ApiKind<'_>]) -> Vec<TemplateError> {
        let probe = Arc::new(Parameters::probe(&BTreeMap::new()));
        let problem = |name: &String| self.tried_with(name, PROBE, &probe, &[], kinds).err();
        self.names.iter().filter_map(problem).collect()
    }

    /// Like [`Templates::problems`], for templates that render many objects for each subject, which must have different
    /// names.
    #[must_use]
    pub fn problems_of_many(&self, api_version: &str, kind: &str) -> Vec<TemplateError> {
        let probe = Arc::new(Parameters::probe(&BTreeMap::new()));
        let problem = |name: &String| {
            let tried = |suffix| self.tried_with(name, suffix, &probe, &[], &[(api_version, kind)]);
            tried(PROBE).and_then(|one| unique(name, &one, &tried("")?)).err()
        };
        self.names.iter().filter_map(problem).collect()
    }

    /// The mistake in one template, if one can be found before its use: the template is tried with every parameter set
    /// to `1`, and with values that have every field for the names in `more`.
    #[must_use]
    pub fn problem(&self, name: &str, more: &[&str], api_version: &str, kind: &str) -> Option<TemplateError> {
        self.tried(name, more, api_version, kind).err()
    }

    /// The trial rendering of one template, as in [`Templates::problem`].
    ///
    /// # Errors
    /// As [`Templates::render`].
    pub fn tried(
        &self,
        name: &str,
        more: &[&str],
        api_version: &str,
        kind: &str,
    ) -> Result<Value, TemplateError> {
        let probe = Arc::new(Parameters::probe(&BTreeMap::new()));
        self.tried_with(name, PROBE, &probe, more, &[(api_version, kind)])
    }

    /// Trial renderings of one template: with `given` and the value `1` for all other parameters, and, if that differs
    /// and can be rendered, with `given` alone, because a template can depend on whether a parameter is set. The objects may be of
    /// any of these kinds.
    ///
    /// # Errors
    /// As [`Templates::render`].
    pub fn samples(
        &self,
        name: &str,
        given: &BTreeMap<String, String>,
        more: &[&str],
        kinds: &[ApiKind<'_>],
    ) -> Result<Vec<Value>, TemplateError> {
        let [probe, alone] = [Parameters::probe(given), Parameters::given(given)].map(Arc::new);
        let tried = |parameters| self.tried_with(name, PROBE, parameters, more, kinds);
        let mut samples = vec![tried(&probe)?];
        samples.extend(tried(&alone).ok());
        samples.dedup();
        Ok(samples)
    }

    /// The names of all templates.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    fn tried_with(
        &self,
        name: &str,
        suffix: &str,
        parameters: &Arc<Parameters>,
        more: &[&str],
        kinds: &[ApiKind<'_>],
    ) -> Result<Value, TemplateError> {
        let subject = Subject {
            name: "name",
            namespace: "namespace",
            uid: "00000000-0000-0000-0000-000000000000",
            labels: None,
            annotations: None,
            parameters: &BTreeMap::new(),
            suffix,
        };
        let more = more.iter().map(|name| (*name, TemplateValue::from_object(Anything))).collect();
        let input = Input { template: name, subject: &subject, parameters, more: &more };
        self.object(input, kinds).map(|(object, _)| object)
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
        let completed = self.declared.get(name).map(|declared| declared.complete(name, subject.parameters));
        let completed = completed.transpose()?;
        let given = Arc::new(Parameters::given(completed.as_ref().unwrap_or(subject.parameters)));
        let input = Input { template: name, subject, parameters: &given, more: &More::new() };
        let (mut object, text) = self.object(input, kinds)?;
        settle_namespace(name, &mut object, subject.namespace)?;
        let hash = if subject.suffix.is_empty() {
            sha256(&text)
        } else {
            let same_for_all = Subject { suffix: "", ..*subject };
            sha256(&self.fill(Input { subject: &same_for_all, ..input })?.0)
        };
        Ok(Rendered { object, hash })
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
        let rendered = self.render(name, subject, api_version, kind)?;
        let same_for_all = Subject { suffix: "", ..*subject };
        unique(name, &rendered.object, &self.render(name, &same_for_all, api_version, kind)?.object)?;
        Ok(rendered)
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

    /// The rendered object, and its text.
    fn object(&self, input: Input<'_>, kinds: &[ApiKind<'_>]) -> Result<(Value, String), TemplateError> {
        let (text, has_risky_values) = self.fill(input)?;
        let object = parse(input.template, &text, kinds)?;
        let is_proved =
            !has_risky_values || self.structure(input).is_some_and(|structure| structure == object);
        if is_proved {
            Ok((object, text))
        } else {
            Err(TemplateError::Structure { template: input.template.to_owned() })
        }
    }

    /// The object in whose structure no value takes part.
    fn structure(&self, input: Input<'_>) -> Option<Value> {
        let rendered =
            self.marking.get_template(input.template).ok()?.render_captured(input.values()).ok()?;
        let values = structure::values(rendered.state());
        Some(structure::unmarked(serde_saphyr::from_str(rendered.output()).ok()?, &values))
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
            .map_err(|error| culprit::failure(&template, input, &error))?;
        if rendered.output().len() > LONGEST {
            return Err(TemplateError::TooLong { template: name.to_owned() });
        }
        let has_risky_values = structure::has_risky_values(rendered.state());
        Ok((rendered.into_output(), has_risky_values))
    }
}

#[cfg(test)]
mod tests;
