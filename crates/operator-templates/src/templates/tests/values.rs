//! The values that a template inserts, as docs/templates.md describes them.

use super::*;

#[test]
fn a_missing_value_is_an_error_wherever_it_is_used() {
    let given = |used: &str| {
        let template = format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: web, labels: {{a: {used}}}}}\n");
        let object = json!({"there": ["x"]});
        let templates = templates(&[("default", &template)]);
        let none = BTreeMap::new();
        templates.render_with("default", &subject(&none, ""), &[("object", &object)], &[KIND])
    };
    for filter in [
        "join",
        "join(',')",
        "list",
        "length",
        "first",
        "items",
        "string",
        "split",
        "upper",
        "map(attribute='a')",
        "select",
        "unique",
        "sort",
        "dictsort",
        "tojson",
    ] {
        let rendered = given(&format!("{{{{ object.gone | {filter} }}}}"));
        assert!(rendered.is_err(), "{filter}: {rendered:?}");
    }
    for used in [
        "{{ object.gone }}",
        "{{ object.gone.more }}",
        "{{ [object.gone] }}",
        "{{ {'a': object.gone} }}",
        "{{ {'a': [{'b': object.gone}]} }}",
        "{{ [object.gone] | join }}",
        "{{ [object.gone] | tojson }}",
        "{{ 'a' ~ object.gone }}",
        "{{ dict(a=object.gone) }}",
        "{% for x in object.gone %}{{ x }}{% endfor %}",
        "{% set x = [object.gone] %}{{ x }}",
    ] {
        let rendered = given(used);
        assert!(rendered.is_err(), "{used}: {rendered:?}");
    }
    for (used, expected) in [
        ("{{ object.gone | default('none') }}", json!("none")),
        ("{{ object.gone | default([]) | join }}", json!("")),
        ("{{ 'yes' if object.gone is defined else 'no' }}", json!("no")),
        ("{{ object.there | join }}", json!("x")),
    ] {
        assert_eq!(given(used).unwrap()["metadata"]["labels"]["a"], expected, "{used}");
    }
}

/// The names in the page's list of this kind.
fn documented(kind: &str) -> Vec<String> {
    let page = include_str!("../../../../../docs/templates.md");
    let list = page.split_once(&format!("- {kind}: ")).unwrap().1.split_once(".\n").unwrap().0;
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_page_lists_all_filters_tests_and_functions() {
    let names = |all: Vec<(&'static str, TemplateValue)>| {
        let mut names: Vec<_> = all.into_iter().map(|(name, _)| name.to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(documented("Filters"), names(filters::all_filters()));
    assert_eq!(documented("Tests"), names(filters::all_tests()));
    let environment = templates(&[]).environment;
    assert_eq!(
        documented("Functions"),
        environment.globals().map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
    );
}

/// Numbers at which an operation could overflow, texts that could be read as something else, and collections of them.
fn any_value() -> impl Strategy<Value = TemplateValue> {
    let number = prop_oneof![
        prop::sample::select(vec![
            0,
            1,
            -1,
            2,
            i128::from(i64::MIN),
            i128::from(i64::MAX),
            i128::MIN,
            i128::MAX
        ]),
        any::<i128>(),
    ];
    let float = prop_oneof![
        prop::sample::select(vec![0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, 9e15]),
        any::<f64>(),
    ];
    let text = prop::sample::select(vec![
        "",
        "a",
        "ab c",
        "É\u{301}",
        "-1",
        "nan",
        "1e400",
        "a.0.b",
        "length",
        "eq",
        "%",
        "\u{0}",
    ]);
    let leaf = prop_oneof![
        Just(TemplateValue::UNDEFINED),
        Just(TemplateValue::from(())),
        any::<bool>().prop_map(TemplateValue::from),
        number.prop_map(TemplateValue::from),
        float.prop_map(TemplateValue::from),
        text.prop_map(TemplateValue::from),
    ];
    leaf.prop_recursive(3, 60, 30, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..30).prop_map(TemplateValue::from),
            prop::collection::vec((any::<u8>(), inner), 0..8).prop_map(|fields| {
                fields.into_iter().map(|(key, value)| (format!("k{key}"), value)).collect()
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A panic would end the process, because a release is built to abort.
    #[test]
    fn every_filter_test_and_function_ends_for_every_value(a in any_value(), b in any_value(), c in any_value()) {
        let environment = templates(&[]).environment;
        let values = context! { a, b, c };
        let filters = filters::all_filters();
        let tests = filters::all_tests();
        let uses = filters.iter().flat_map(|(name, _)| {
            ["", "(b)", "(b, c)", "(attribute=b)", "(b, reverse=true)"].map(|more| format!("{{{{ a | {name}{more} }}}}"))
        });
        let uses = uses.chain(tests.iter().flat_map(|(name, _)| {
            ["", "(b)", "(b, c)"].map(|more| format!("{{% if a is {name}{more} %}}1{{% endif %}}"))
        }));
        let more = [
            "{{ range(a, b, c) }}", "{{ range(a) }}", "{{ dict(a, x=b) }}", "{{ a ~ b ~ c }}", "{{ a[b:c] }}", "{{ [a, b] | sort }}",
            "{{ ([a, b, c] * 9) | sort | list }}", "{{ a | map('abs') | list }}", "{{ a | select('divisibleby', b) | list }}",
            "{{ a + b - c }}", "{{ a * 3 // b % c }}", "{{ -a ** b }}", "{{ a < b == c }}", "{{ a in b }}", "{{ a[b].c }}",
        ];
        for used in uses.chain(more.map(str::to_owned)) {
            let _ = environment.render_str(&used, &values);
        }
    }
}

#[test]
fn a_value_is_written_as_its_type() {
    let object =
        json!({"number": 3, "yes": true, "none": null, "tags": ["a", "b"], "map": {"a": 1}, "text": "8080"});
    let written = |value: &str| {
        let template = format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec: {{it: {value}}}\n");
        let templates = templates(&[("default", &template)]);
        let none = BTreeMap::new();
        let rendered = templates.render_with("default", &subject(&none, ""), &[("object", &object)], &[KIND]);
        rendered.unwrap()["spec"]["it"].clone()
    };
    for (value, expected) in [
        ("{{ object.text }}", json!("8080")),
        ("{{ object.text | int }}", json!(8080)),
        ("{{ object.number }}", json!(3)),
        ("{{ object.number | string }}", json!("3")),
        ("{{ object.yes }}", json!(true)),
        ("{{ object.none }}", json!(null)),
        ("{{ object.none or '' }}", json!("")),
        ("{{ object.tags }}", json!(["a", "b"])),
        ("{{ object.tags | join(',') }}", json!("a,b")),
        ("{{ object.map }}", json!({"a": 1})),
    ] {
        assert_eq!(written(value), expected, "{value}");
    }
}

#[test]
fn the_type_of_a_value_is_not_for_its_author_to_choose() {
    let key = "$serde_json::private::RawValue";
    let template = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {{ parameters }}\n";
    let error = render(template, &[(key, "[1]")]).unwrap_err().to_string();
    assert!(error.contains("$serde_json::private::"), "{error}");
}

#[test]
fn a_value_in_a_text_is_its_json_and_none_is_refused() {
    let object = json!({"yes": true, "none": null, "tags": ["a", true], "size": 1.5});
    let written = |line: &str| {
        let template = format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec:\n  it: {line}\n");
        let templates = templates(&[("default", &template)]);
        let none = BTreeMap::new();
        let rendered = templates.render_with("default", &subject(&none, ""), &[("object", &object)], &[KIND]);
        rendered.map(|rendered| rendered["spec"]["it"].clone()).map_err(|error| error.to_string())
    };
    for (line, expected) in [
        ("--tls={{ object.yes }}", "--tls=true"),
        ("{{ '--tls=' ~ object.yes }}", "--tls=true"),
        ("{{ '--tls=' ~ (1 == 2) }}", "--tls=false"),
        ("'{{ true }}'", "true"),
        ("{{ object.yes | string }}", "true"),
        ("{{ [true, 1, 'a'] | join('-') }}", "true-1-a"),
        ("{{ 'a-b' | replace('b', object.yes) }}", "a-true"),
        ("{{ object.tags ~ object.size }}", "[\"a\",true]1.5"),
        ("for {{ object.tags }}", "for [\"a\",true]"),
        ("{{ 'x' if object.yes is none }}-", "-"),
        ("{{ ('x' if object.yes is none) ~ 'y' }}", "y"),
    ] {
        assert_eq!(written(line), Ok(json!(expected)), "{line}");
    }
    for line in [
        "a-{{ object.none }}",
        "'{{ object.none }}'",
        "{{ 'a' ~ object.none }}",
        "{{ object.none | string }}",
        "{{ [none] | join }}",
    ] {
        let error = written(line).unwrap_err();
        assert!(error.contains("none") && error.contains("(value or \"\")"), "{line}: {error}");
    }
}

#[test]
fn a_template_that_copies_all_labels_and_annotations_copies_none_of_the_controllers() {
    let template = "{apiVersion: v1, kind: Pod, metadata: {name: {{ name }}, labels: {{ labels }}, annotations: {{ annotations }}}}";
    let all = templates(&[("default", template)]);
    let given = parameters(&[
        ("catena.dev/template-hash", "a"),
        ("contract.catena.dev/replicas", "b"),
        ("mycatena.dev/c", "c"),
        ("catena.dev", "d"),
        ("example.org/catena.dev", "e"),
    ]);
    let none = BTreeMap::new();
    let subject = Subject { labels: Some(&given), annotations: Some(&given), ..subject(&none, "") };
    let object = all.render_object("default", &subject, &[KIND]).unwrap();
    let expected = json!({"mycatena.dev/c": "c", "catena.dev": "d", "example.org/catena.dev": "e"});
    assert_eq!((&object["metadata"]["labels"], &object["metadata"]["annotations"]), (&expected, &expected));
}

#[test]
fn a_filter_makes_no_value_of_any_size() {
    let long = "x".repeat(100_000);
    let given = [("long", &*long), ("large", "1000000000000")];
    let rendered = |value: &str| {
        let template = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec: {{a: {{{{ {value} | length }}}}}}\n"
        );
        render(&template, &given).map(|rendered| rendered.object["spec"]["a"].clone())
    };
    for value in [
        "parameters.long | replace('x', parameters.long)",
        "parameters.long | replace('', parameters.long)",
        "parameters.long | list | join(parameters.long)",
        "([parameters.long] * (parameters.large | int)) | join",
        "([1] * (parameters.large | int)) | list",
        "(([1] * (parameters.large | int))[1:]) | map('string')",
        "([[1] * (parameters.large | int)] | string)",
        "(parameters.long * 900 ~ 'a')",
        "range(parameters.large | int)",
    ] {
        let error = rendered(value).unwrap_err().to_string();
        assert!(error.contains("more than"), "{value}: {error}");
    }
    for (value, length) in
        [("parameters.long | replace('x', 'ab')", 200_000), ("parameters.long | list", 100_000)]
    {
        assert_eq!(rendered(value).unwrap(), length, "{value}");
    }
}

/// Each `[` would be one more frame of the stack.
#[test]
fn a_value_that_is_nested_too_deep_is_refused() {
    let nested: String = (0..120).map(|_| "{% set x = [x] %}").collect();
    let template = format!(
        "{{% set x = 1 %}}{nested}{{apiVersion: v1, kind: Pod, metadata: {{name: web}}, a: {{{{ x }}}}}}"
    );
    let error = render(&template, &[]).unwrap_err().to_string();
    assert!(error.contains("deep"), "{error}");
}
