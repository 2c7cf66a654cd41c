//! Parameters: each stays a value in its place in the template, whatever its author writes.

use std::{collections::BTreeMap, sync::LazyLock};

use catena_api::keys::GROUP;
use operator_templates::{Rendered, Subject, TemplateError, Templates};
use serde_json::Value;

use crate::{parts, sent};

/// A template, its kind, and the required parameters.
struct Shipped {
    templates: Templates,
    api_version: &'static str,
    kind: &'static str,
}

static SHIPPED: LazyLock<[Shipped; 2]> = LazyLock::new(|| {
    [
        shipped(
            include_str!("../../../charts/basic-deployment-controller/values.yaml"),
            "catena.dev/v1alpha1",
            "BasicReplicaSet",
        ),
        shipped(include_str!("../../../charts/basic-replicaset-controller/values.yaml"), "v1", "Pod"),
    ]
});

fn shipped(values: &str, api_version: &'static str, kind: &'static str) -> Shipped {
    let values: Value = serde_saphyr::from_str(values).unwrap_or_default();
    let templates = values["templates"].as_object().into_iter().flatten();
    let templates =
        templates.map(|(name, text)| (name.clone(), text.as_str().unwrap_or_default().to_owned()));
    Shipped { templates: Templates::compile(&templates.collect(), GROUP), api_version, kind }
}

pub fn read(input: &[u8]) {
    let (image, rest) = parts::first_and_rest(input);
    let mut parameters: BTreeMap<_, _> = parts::pairs(&rest).collect();
    parameters.insert("image".to_owned(), image);
    let plain: BTreeMap<_, _> = parameters.keys().map(|name| (name.clone(), "1".to_owned())).collect();
    for shipped in &*SHIPPED {
        let render = |parameters| shipped.render(parameters, "x");
        let Ok(rendered) = render(&parameters) else { continue };
        let plain = render(&plain).unwrap_or_else(|error| panic!("with plain values: {error}"));
        same_but_for_values(&rendered.object, &plain.object);
        let other = shipped.render(&parameters, "y").unwrap_or_else(|error| panic!("again: {error}"));
        assert_eq!(rendered.hash, other.hash, "all objects of one rendering have one hash");
        sent::arrives(&rendered.object);
    }
}

impl Shipped {
    fn render(&self, parameters: &BTreeMap<String, String>, suffix: &str) -> Result<Rendered, TemplateError> {
        let subject = Subject {
            name: "web",
            namespace: "shop",
            uid: "u",
            labels: None,
            annotations: None,
            parameters,
            suffix,
        };
        self.templates.render("default", &subject, &[(self.api_version, self.kind)])
    }
}

/// The fields are the same, and so are the types of their values.
fn same_but_for_values(left: &Value, right: &Value) {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            assert!(left.keys().eq(right.keys()), "other fields: {left:?}, {right:?}");
            left.iter().for_each(|(name, value)| same_but_for_values(value, &right[name]));
        }
        (Value::Array(left), Value::Array(right)) => {
            assert_eq!(left.len(), right.len(), "another number of items: {left:?}, {right:?}");
            left.iter().zip(right).for_each(|(left, right)| same_but_for_values(left, right));
        }
        (Value::String(_), Value::String(_)) | (Value::Number(_), Value::Number(_)) => {}
        (left, right) => assert_eq!(left, right),
    }
}
