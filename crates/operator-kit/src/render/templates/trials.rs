//! Trial renderings with sample values, which find mistakes before a template is used.

use std::{collections::BTreeMap, fmt, sync::Arc};

use minijinja::{
    Value as TemplateValue,
    value::{Enumerator, Object, ObjectRepr},
};
use serde_json::Value;

use super::{ApiKind, Input, Subject, TemplateError, Templates, object::unique, parameters::Parameters};

/// The suffix for trying out templates.
const PROBE: &str = "suffix";

impl Templates {
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

    /// The trial rendering of one template: with every parameter set to `1`, and with values that have every field for the
    /// names in `more`.
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
}

/// A value for trying out templates: it renders as `1`, and each of its fields is such a value again.
#[derive(Debug)]
struct Anything;

impl Object for Anything {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, _key: &TemplateValue) -> Option<TemplateValue> {
        Some(TemplateValue::from_object(Self))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Empty
    }

    fn render(self: &Arc<Self>, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("1")
    }
}
