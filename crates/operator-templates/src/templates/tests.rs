mod declarations;
mod marks;
mod values;

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// What all templates here render.
const KIND: (&str, &str) = ("v1", "Pod");

const POD: &str = r"
apiVersion: v1
kind: Pod
metadata:
  name: {{ name ~ '-' ~ suffix }}
  labels: {app: {{ name }}}
spec:
  containers:
    - name: main
      image: {{ parameters.image }}
      env:
        {%- for key in parameters %}
        - {name: {{ key }}, value: {{ parameters[key] }}}
        {%- endfor %}
";

fn templates(entries: &[(&str, &str)]) -> Templates {
    let entries = entries.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    Templates::compile(&entries.collect(), "catena.dev")
}

fn parameters(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn subject<'s>(parameters: &'s BTreeMap<String, String>, suffix: &'s str) -> Subject<'s> {
    Subject { name: "web", namespace: "shop", uid: "u1", labels: None, annotations: None, parameters, suffix }
}

fn render(template: &str, given: &[(&str, &str)]) -> Result<Rendered, TemplateError> {
    templates(&[("default", template)]).render("default", &subject(&parameters(given), "x"), &[KIND])
}

#[test]
fn a_template_gives_an_object_in_its_owners_namespace() {
    let rendered = render(POD, &[("image", "nginx:1")]).unwrap();
    assert_eq!(
        rendered.object["metadata"],
        json!({"name": "web-x", "namespace": "shop", "labels": {"app": "web"}})
    );
    assert_eq!(rendered.object["spec"]["containers"][0]["image"], "nginx:1");
}

#[test]
fn objects_of_one_rendering_have_one_hash_and_other_parameters_another() {
    let templates = templates(&[("default", POD)]);
    let hash = |image: &str, suffix: &str| {
        templates.render("default", &subject(&parameters(&[("image", image)]), suffix), &[KIND]).unwrap().hash
    };
    assert_eq!(hash("a", "x"), hash("a", "y"));
    assert_eq!(hash("a", ""), hash("a", "y"));
    assert_ne!(hash("a", "x"), hash("b", "x"));
}

#[test]
fn a_missing_parameter_is_named() {
    let error = render(POD, &[("imag", "typo")]).unwrap_err();
    assert_eq!(error, TemplateError::missing("default", "image"));
    assert!(error.to_string().starts_with("spec.parameters.image is missing"));
}

#[test]
fn an_optional_parameter_may_be_left_out() {
    let template = "{apiVersion: v1, kind: Pod, metadata: {name: {{ name }}}, spec: {image: {{ parameters.image | default('nginx') }}}}";
    assert_eq!(render(template, &[]).unwrap().object["spec"]["image"], "nginx");
}

#[test]
fn an_unknown_template_lists_the_known_ones() {
    let given = BTreeMap::new();
    let error = templates(&[("small", POD), ("large", POD)])
        .render("smal", &subject(&given, ""), &[KIND])
        .unwrap_err();
    assert!(error.to_string().contains("large, small"), "{error}");
}

#[test]
fn a_broken_template_takes_no_other_down() {
    let templates = templates(&[("broken", "{{ oops"), ("good", POD)]);
    let given = parameters(&[("image", "nginx")]);
    let broken = templates.render("broken", &subject(&given, ""), &[KIND]).unwrap_err().to_string();
    assert!(broken.starts_with("the template \"broken\" is broken: "), "{broken}");
    assert!(templates.render("good", &subject(&given, ""), &[KIND]).is_ok());
    assert_eq!(templates.problems(&[KIND]).len(), 1);
}

#[test]
fn problems_are_found_without_knowing_the_parameters() {
    let wrong_kind = "{apiVersion: v1, kind: Secret, metadata: {name: {{ name }}}}";
    let unnamed = "{apiVersion: v1, kind: Pod, metadata: {labels: {}}}";
    for (template, expected) in [(wrong_kind, "Secret"), (unnamed, "metadata.name")] {
        let problems = templates(&[("t", template)]).problems(&[KIND]);
        assert!(problems[0].to_string().contains(expected), "{problems:?}");
    }
    assert!(templates(&[("t", POD)]).problems(&[KIND]).is_empty());
}

#[test]
fn labels_that_a_parameter_makes_a_text_are_refused() {
    let template =
        "{apiVersion: v1, kind: Pod, metadata: {name: {{ name }}, labels: {{ parameters.labels }}}}";
    let error = render(template, &[("labels", "a: b")]).unwrap_err().to_string();
    assert!(error.contains("renders metadata.labels that is not a map"), "{error}");
}

#[test]
fn another_namespace_is_refused() {
    let template = "{apiVersion: v1, kind: Pod, metadata: {name: {{ name }}, namespace: kube-system}}";
    let error = render(template, &[]).unwrap_err().to_string();
    assert!(error.contains("sets metadata.namespace to \"kube-system\""), "{error}");
}

#[test]
fn a_loop_without_an_end_is_stopped() {
    let template = "{% for a in range(10000) %}{% for b in range(10000) %}x{% endfor %}{% endfor %}";
    let error = render(template, &[]).unwrap_err().to_string();
    assert!(error.contains("cannot be rendered"), "{error}");
}

#[test]
fn a_text_that_is_too_long_is_given_up_before_it_is_whole() {
    let template = format!("{{% for n in range(parameters.n | int) %}}{}{{% endfor %}}", "x".repeat(1024));
    for (n, expected) in
        [("3072", "a single value"), ("3073", "more than 3 MiB"), ("100000", "more than 3 MiB")]
    {
        // If the last one were rendered to its end, its steps would run out.
        let error = render(&template, &[("n", n)]).unwrap_err().to_string();
        assert!(error.contains(expected), "{n}: {error}");
    }
}

/// In a build where another crate adds macros to the engine, these would otherwise be compiled.
#[test]
fn a_template_that_reads_its_own_output_is_refused() {
    for template in [
        "{% set x %}{{ parameters.image }}{% endset %}{{ x }}",
        "{% filter upper %}{{ parameters.image }}{% endfilter %}",
        "{% macro m() %}{{ parameters.image }}{% endmacro %}{{ m() }}",
        "{% for a in [1] recursive %}{{ loop([]) }}{% endfor %}",
    ] {
        let error = render(template, &[("image", "x")]).unwrap_err();
        assert_eq!(error.reason, "TemplateFailed", "{error}");
        assert!(error.to_string().contains("would read the template's own output"), "{error}");
    }
    assert!(render("a: \u{e000}@0\u{e001}", &[]).unwrap_err().to_string().contains("U+E000"));
    let error = render(POD, &[("image", "\u{e000}@0\u{e001}")]).unwrap_err().to_string();
    assert!(error.contains("cannot be a part of a value"), "{error}");
}

proptest! {
    /// Any text in a parameter stays one string in one place, and changes nothing else. The kubelet reads `$$` as `$`.
    #[test]
    fn a_parameter_never_changes_the_structure(value in any::<String>()) {
        let rendered = render(POD, &[("image", &value)]).unwrap();
        let expected = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "web-x", "namespace": "shop", "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": value, "env": [{"name": "image", "value": value.replace('$', "$$")}]}]},
        });
        prop_assert_eq!(rendered.object, expected);
    }

    /// The same with text that attempts to break out, and with characters that YAML rejects or reads as line breaks.
    #[test]
    fn a_parameter_made_of_yaml_stays_a_string(
        before in r#"["'{}\[\]:,\n\r\t#&*!|>%@`\\ -]{0,20}(kind: Secret)?\n?(---)?"#,
        odd in proptest::sample::select(vec!['\u{85}', '\u{2028}', '\u{2029}', '\u{feff}', '\u{7f}', '\u{9f}', '\u{fffe}', '\u{0}', 'x']),
        after in r"[ \n]{0,3}(--- y|\.\.\.|[a-z]{0,5})",
    ) {
        let value = format!("{before}{odd}{after}");
        let rendered = render(POD, &[("image", &value)]).unwrap();
        prop_assert_eq!(rendered.object.pointer("/spec/containers/0/image").unwrap(), &json!(value));
        prop_assert_eq!(&rendered.object["kind"], "Pod");
    }
}

#[test]
fn a_whole_map_of_parameters_is_handed_on_as_it_is() {
    let template = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ name }}\nspec:\n  template: default\n  parameters: {{ parameters }}\n";
    let odd = "\u{2028}\u{85}\u{feff}\u{1}end \u{2029} x \u{85} y";
    let rendered = render(template, &[("env.ODD", odd), ("plain", "x")]).unwrap();
    assert_eq!(rendered.object["spec"]["parameters"], json!({"env.ODD": odd, "plain": "x"}));
}

#[test]
fn names_of_many_objects_have_to_hold_the_suffix_and_only_the_template_without_it_is_refused() {
    let fixed = POD.replace("{{ name ~ '-' ~ suffix }}", "{{ name }}");
    let short = POD.replace("~ suffix }}", "~ suffix[:3] }}");
    let templates = templates(&[("default", POD), ("fixed", &fixed), ("short", &short)]);
    assert!(templates.problems(&[KIND]).is_empty(), "for one object it will do");
    let templates = templates.for_many();
    let problems = templates.problems(&[KIND]);
    assert!(matches!(&problems[..], [TemplateError { reason: "NotUnique", .. }]), "{problems:?}");
    assert!(problems[0].message.starts_with("the template \"fixed\" renders the name"), "{problems:?}");
    let given = parameters(&[("image", "nginx:1")]);
    let render = |name| templates.render(name, &subject(&given, "bcdfg"), &[KIND]);
    assert!(render("default").is_ok() && render("short").is_ok());
    let error = render("fixed").unwrap_err();
    assert_eq!(error.reason, "NotUnique");
}

#[test]
fn a_parameter_cannot_make_another_request_of_a_name() {
    let named = POD.replace("{{ name ~ '-' ~ suffix }}", "{{ parameters.name }}");
    let templates = templates(&[("named", &named)]);
    let render = |name: &str| {
        let given = parameters(&[("image", "nginx:1"), ("name", name)]);
        templates.render("named", &subject(&given, ""), &[KIND])
    };
    assert!(render("web").is_ok());
    for name in ["?watch=true", "shared?dryRun=All", "x#y", "a/b", "..", "%2e%2e", "shared "] {
        let error = render(name).unwrap_err();
        assert!(error.to_string().contains(&format!("renders the metadata.name {name:?}")), "{error}");
    }
}

#[test]
fn a_template_is_tried_with_and_without_the_parameters_that_it_can_do_without() {
    let template = "{apiVersion: v1, kind: Pod, metadata: {name: {{ name ~ '-' ~ suffix }}}, a: {{ parameters.a }}{% if parameters.b is defined %}, b: {{ parameters.b }}{% endif %}}";
    let all = templates(&[("t", template)]);
    let samples =
        |given: &[(&str, &str)]| all.samples("t", &parameters(given), &[], &[("v1", "Pod")]).unwrap();
    let [probe] = &samples(&[])[..] else { panic!("it needs a") };
    assert_eq!((&probe["a"], &probe["b"]), (&json!("1"), &json!("1")));
    let [probe, alone] = &samples(&[("a", "x")])[..] else { panic!("they differ by b") };
    assert_eq!((&probe["a"], &probe["b"]), (&json!("x"), &json!("1")));
    assert_eq!((&alone["a"], alone.get("b")), (&json!("x"), None));
    assert_eq!(samples(&[("a", "x"), ("b", "y")]).len(), 1);
}

#[test]
fn a_field_that_a_template_sets_twice_is_no_yaml() {
    let twice = "{apiVersion: v1, kind: Pod, metadata: {name: {{ name }}}, spec: {a: 1, a: 2}}";
    let error = render(twice, &[]).unwrap_err().to_string();
    assert!(error.contains("does not render to YAML") && error.contains("duplicate"), "{error}");
}

#[test]
fn a_template_that_renders_anything_but_one_object_is_told_what_it_renders() {
    let one = "{apiVersion: v1, kind: Pod, metadata: {name: a}}";
    for (template, found) in [
        ("", "nothing"),
        ("{% if parameters.on is defined %}x{% endif %}", "nothing"),
        ("# only a comment", "nothing"),
        (&*format!("[{one}]"), "a list"),
        ("text", "a single value"),
        ("{kind: Pod, metadata: {name: a}}", "an object without apiVersion"),
        ("{apiVersion: v1, metadata: {name: a}}", "an object without kind"),
        (&*format!("{one}\n---\n{one}"), "several YAML documents"),
    ] {
        let error = render(template, &[]).unwrap_err();
        assert_eq!(error.reason, "TemplateFailed");
        let told = error.to_string();
        assert!(told.contains(&format!("renders {found}, but must render one object")), "{template}: {told}");
    }
}

#[test]
fn what_cannot_be_filled_in_is_named_with_the_only_parameter_that_it_reads() {
    let template = "{apiVersion: v1, kind: Pod, metadata: {name: {{ name }}}, a: {{ parameters.por | int }}, b: {{ parameters.port | int }}}";
    let said = render(template, &[("por", "1"), ("port", "abc")]).unwrap_err().to_string();
    assert!(
        said.contains("parameters.port | int") && said.contains("spec.parameters.port is \"abc\""),
        "{said}"
    );
    let two = "{apiVersion: v1, kind: Pod, metadata: {name: {{ name }}}, a: {{ parameters.a | int + parameters.b | int }}}";
    let said = render(two, &[("a", "x"), ("b", "y")]).unwrap_err().to_string();
    assert!(said.contains("parameters.a | int") && !said.contains("spec.parameters.a is"), "{said}");
}

#[test]
fn a_field_that_an_object_lacks_is_named_with_its_path() {
    let template = "{apiVersion: v1, kind: Pod, metadata: {name: {{ name }}}, size: {{ parameters.tier | default('a') }}, of: {{ object.spec.size }}}";
    let given = parameters(&[]);
    let render = |object| {
        let object: Value = object;
        let more = [("object", &object)];
        let all = templates(&[("t", template)]);
        all.render_with("t", &subject(&given, ""), &more, &[KIND]).unwrap_err().to_string()
    };
    for object in [json!({"spec": {}}), json!({})] {
        let said = render(object);
        assert!(said.contains("object.spec") && !said.contains("spec.parameters.tier"), "{said}");
    }
    assert!(render(json!({"spec": {}})).contains("object.spec.size"));
}

/// Each quote is two characters in the manifest, and four in the text.
#[test]
fn a_manifest_full_of_quotes_is_rendered_whole() {
    let all = templates(&[(
        "t",
        "{apiVersion: v1, kind: Pod, metadata: {name: x}, data: {manifest: {{ manifest }}}}",
    )]);
    let manifest = json!({"data": {"quotes": "\"".repeat(300_000)}}).to_string();
    let given = parameters(&[]);
    let more = [("manifest", &Value::from(manifest.clone()))];
    let object = all.render_with("t", &subject(&given, ""), &more, &[KIND]).unwrap();
    assert!(object["data"]["manifest"] == *manifest);
}

#[test]
fn values_that_are_put_in_again_and_again_are_given_up_before_they_fill_the_memory() {
    let twice =
        "{% for a in parameters %}{% for b in parameters %}{{ parameters.image }}{% endfor %}{% endfor %}";
    let listed = "{{ [parameters.image] * 99999999 }}";
    let looked_through = "{{ ('a' * 9999) | list | map('replace', 'b', parameters.image) | list | length }}";
    let looked_at = "{{ range(9999) | list | select('in', range(999) | list) | list | length }}";
    let image = "x".repeat(30_000);
    let names: Vec<_> = (0..99).map(|number| format!("k{number}")).collect();
    let mut given: Vec<_> = names.iter().map(|name| (&**name, "")).collect();
    given.push(("image", &image));
    for (template, expected) in [
        (twice, "its values together"),
        (listed, "more than 1000000 parts"),
        (looked_through, "its filters together read more than 100663296 bytes"),
        (looked_at, "its filters together read more than 4000000 parts"),
    ] {
        let error = render(template, &given).unwrap_err();
        assert!(error.to_string().contains(expected), "{template}: {error}");
    }
}
