//! Work of the kind that hostile input makes, and always the same.

use operator_templates::{Subject, Templates};

/// Renders a template that makes and writes as many values as it may, and then takes as many steps, once.
pub fn work() {
    let template = "{apiVersion: v1, kind: Pod, metadata: {name: {{ suffix }}}, b: {{ [0] * 999999 }}, a: {% for a in range(10000) %}{% for b in \
                    range(10000) %}{{ parameters.team }}{% endfor %}{% endfor %}}";
    let templates = Templates::compile(&[("default".to_owned(), template.to_owned())].into(), "");
    let subject = Subject {
        name: "web",
        namespace: "shop",
        uid: "u",
        labels: None,
        annotations: None,
        parameters: &[("team".to_owned(), "a".to_owned())].into(),
        suffix: "x",
    };
    let rendered = templates.render("default", &subject, &[("v1", "Pod")]);
    let steps_are_over = rendered.as_ref().is_err_and(|error| error.message.contains("fuel"));
    assert!(steps_are_over, "{:?}", rendered.map(|rendered| rendered.hash));
}
