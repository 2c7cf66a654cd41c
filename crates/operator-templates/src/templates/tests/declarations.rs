//! Declared parameters, and those that a template does not read.

use super::*;

#[test]
fn a_declared_template_refuses_other_parameters_and_reads_defaults() {
    let text = "{apiVersion: v1, kind: Pod, metadata: {name: {{ name ~ suffix }}}, spec: {x: {{ parameters.size }}}}";
    let mut templates = templates(&[("default", text), ("other", POD)]);
    let declarations = "{default: [{name: size, default: small}], lost: []}";
    let mistakes = templates.declare(serde_saphyr::from_str(declarations).unwrap());
    assert!(matches!(&mistakes[..], [only] if only.starts_with("parameters.lost: there is no template")));
    let rendered =
        |given: &[(&str, &str)]| templates.render("default", &subject(&parameters(given), "x"), &[KIND]);
    assert_eq!(rendered(&[]).unwrap().object["spec"]["x"], "small");
    assert_eq!(rendered(&[("size", "big")]).unwrap().object["spec"]["x"], "big");
    let refused = rendered(&[("szie", "big")]).unwrap_err();
    assert_eq!(refused.reason, "ParameterUnknown");
    assert!(
        refused.to_string().contains("spec.parameters.szie")
            && refused.to_string().contains("did you mean size?")
    );
}

#[test]
fn parameters_that_a_template_does_not_read_are_named_with_what_was_meant() {
    let own = r"
apiVersion: v1
kind: Pod
metadata: {name: {{ name ~ suffix }}}
spec:
  image: {{ parameters.image }}
  {%- if parameters.port is defined %}
  port: {{ parameters.port | int }}
  {%- if parameters.tls is defined %}
  certificate: {{ parameters.certificate }}
  {%- endif %}
  {%- endif %}
  env:
    {%- for key in parameters if key is startingwith('env.') %}
    - {{ parameters[key] }}
    {%- endfor %}
";
    let whole = "{apiVersion: v1, kind: Pod, metadata: {name: {{ name }}}, spec: {{ parameters }}}";
    let templates = templates(&[("own", own), ("whole", whole)]);
    let given = parameters(&[
        ("image", "x"),
        ("prot", "80"),
        ("certificate", "y"),
        ("env.A", "1"),
        ("colour", "red"),
    ]);
    let unread = |name: &str| templates.unread(name, &subject(&given, "x"));
    assert_eq!(unread("own"), ["spec.parameters.colour", "spec.parameters.prot (did you mean port?)"]);
    assert_eq!(unread("whole"), [""; 0]);
    assert_eq!(templates.referenced("own"), ["certificate", "image", "port", "tls"]);
}
