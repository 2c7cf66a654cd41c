//! Templates: of any text, with any parameters.

use std::collections::BTreeMap;

use catena_api::keys::GROUP;
use operator_kit::write::Writer;
use operator_templates::{Subject, Templates};
use operator_watch::{ApiError, Cause, ObjectId, Verb};
use serde_json::Value;

use crate::{parts, sent};

const NAMESPACE: &str = "shop";
const POD: (&str, &str) = ("v1", "Pod");

pub fn read(input: &[u8]) {
    let (source, rest) = parts::first_and_rest(input);
    let templates = Templates::compile(&[("default".to_owned(), source)].into(), GROUP).for_many();
    let parameters: BTreeMap<_, _> = parts::pairs(&rest).collect();
    let subject = Subject {
        name: "web",
        namespace: NAMESPACE,
        uid: "u",
        labels: Some(&parameters),
        annotations: None,
        parameters: &parameters,
        suffix: "x",
    };
    let (version, kind) = POD;
    let _ = templates.problems(&[POD]);
    if let Ok(rendered) = templates.render("default", &subject, &[POD]) {
        let text =
            |pointer: &str| rendered.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        assert_eq!(
            (text("/apiVersion"), text("/kind"), text("/metadata/namespace")),
            (version, kind, NAMESPACE)
        );
        assert!(ObjectId::is_name(text("/metadata/name")), "{}", rendered.object);
        sent::arrives(&rendered.object);
        let mut error = ApiError::new(Verb::Write, (kind, "web"), Cause::Invalid, "Invalid value");
        error.fields = ["spec.containers[0].image", "metadata.labels"].map(str::to_owned).to_vec();
        let _ = Writer::with_source(error, &templates, "default", &subject, POD);
    }
    let object = serde_json::json!({"metadata": {"name": "web"}, "spec": parameters});
    let _ = templates.render_with("default", &subject, &[("object", &object)], &[POD]);
}
