//! Trial renderings with sample values, which find mistakes before a template is used.

use std::{collections::BTreeMap, fmt, sync::Arc};

use minijinja::{
    Value as TemplateValue, context,
    value::{Enumerator, Object, ObjectRepr},
};
use serde_json::Value;

use super::{Input, Parameters, Subject, TemplateError, Templates};

/// The suffix for trying out templates.
const PROBE: &str = "suffix";

impl Templates {
    /// The mistakes in the templates, each of which renders an object of any of these kinds, that can be found before their
    /// use: each template is tried with every parameter set to `1`.
    #[must_use]
    pub fn problems(&self, kinds: &[(&str, &str)]) -> Vec<TemplateError> {
        let tried = |name: &String| self.samples(name, &BTreeMap::new(), &[], kinds).err();
        self.names.iter().filter_map(tried).collect()
    }

    /// Trial renderings of one template: with `given`, the value `1` for all other parameters, and values that have every field
    /// for the names in `extra`; and, if that differs and can be rendered, with `given` alone, because a template can depend on
    /// whether a parameter is set.
    ///
    /// # Errors
    /// As [`Templates::render`].
    pub fn samples(
        &self,
        name: &str,
        given: &BTreeMap<String, String>,
        extra: &[&str],
        kinds: &[(&str, &str)],
    ) -> Result<Vec<Value>, TemplateError> {
        let subject = Subject {
            name: "name",
            namespace: "namespace",
            uid: "00000000-0000-0000-0000-000000000000",
            labels: None,
            annotations: None,
            parameters: &BTreeMap::new(),
            suffix: PROBE,
        };
        let extra: TemplateValue =
            extra.iter().map(|name| (*name, TemplateValue::from_object(SampleValue))).collect();
        let others = context! { ..self.others(&subject), ..extra };
        let input = |is_probe| {
            let parameters = Parameters::new(given.clone(), is_probe);
            Input { given, parameters, others: others.clone(), has_objects: false }
        };
        let mut samples = vec![self.object(name, &input(true), kinds)?];
        if self.are_many {
            self.without_suffix(name, input(true), &samples[0])?;
        }
        samples.extend(self.object(name, &input(false), kinds).ok());
        samples.dedup();
        Ok(samples)
    }
}

/// A value for trying out templates: it renders as `1`, and each of its fields is such a value again.
#[derive(Debug)]
struct SampleValue;

impl Object for SampleValue {
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
