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

/// Everything in a template that makes something large of something small, at a length that the bounds allow and at one that they
/// do not: it is not made, so that the process never holds it.
#[test]
fn nothing_makes_a_value_of_any_size() {
    let long = "x".repeat(100_000);
    let given = [("long", &*long), ("large", "1000000000000"), ("many", "999999"), ("few", "3")];
    let rendered = |template: &str| {
        let template = format!("{template}\napiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\n");
        render(&template, &given).map(|rendered| rendered.object["a"].clone())
    };
    let of = |value: &str| rendered(&format!("a: {{{{ ({value}) | length }}}}"));
    let double = |operator: &str| {
        let doubled = format!("{{% set x = x {operator} x %}}").repeat(40);
        rendered(&format!("{{% set x = parameters.long %}}{doubled}a: {{{{ x | length }}}}"))
    };
    for value in [
        "parameters.long | replace('x', parameters.long)",
        "parameters.long | replace('', parameters.long)",
        "parameters.long | list | join(parameters.long)",
        "([parameters.long] * (parameters.large | int)) | join",
        "([1] * (parameters.large | int)) | list",
        "(([1] * (parameters.large | int))[1:]) | map('string')",
        "([[1] * (parameters.large | int)] | string)",
        "[] * (parameters.large | int)",
        "(parameters.long * 900 ~ 'a')",
        "range(parameters.large | int)",
        // The engine itself would repeat it to 100,000,000 bytes.
        "parameters.long * (parameters.many | int)",
        "(parameters.many | int) * 'ab' * (parameters.few | int) * (parameters.few | int)",
        "[parameters.long] * (parameters.many | int) * (parameters.few | int)",
        "[1] * (parameters.many | int) + [1] * (parameters.many | int)",
        "(parameters.long * 50) | list",
        "(parameters.long * 50) | split('x')",
        "([parameters.long] * 20) | map('replace', 'x', 'xxxxxxxxxxxxxxxxxxxx')",
        "([parameters.long] * 20) | map('list')",
    ] {
        let error = of(value).unwrap_err().to_string();
        assert!(error.contains("more than"), "{value}: {error}");
    }
    for operator in ["+", "~"] {
        let error = double(operator).unwrap_err().to_string();
        assert!(error.contains("more than"), "{operator}: {error}");
    }
    for (part, times) in [(" + x", 60), (" ~ x", 60), (", x[1:]", 60)] {
        let parts = part.repeat(times);
        let template = format!("{{% set x = parameters.long * 50 %}}a: {{{{ [x{parts}] | length }}}}");
        let error = rendered(&template).unwrap_err().to_string();
        assert!(error.contains("more than"), "{part}: {error}");
    }
    let lists = format!("{{% set x = [1] %}}{}a: {{{{ x | length }}}}", "{% set x = x + x %}".repeat(60));
    assert!(rendered(&lists).unwrap_err().to_string().contains("more than"));
    let written = "{% set x = [1] * (parameters.many | int) %}a: [{{ x }}, {{ x }}]";
    assert!(rendered(written).unwrap_err().to_string().contains("more than"));
    let maps = "{% set x = [{'b': 1}] * ((parameters.many | int) // 3) %}a: {{ x }}";
    assert!(rendered(maps).unwrap_err().to_string().contains("more than"));
    let aliased = "{% set x = [1] * (parameters.many | int) %}a: [&a {{ x }}, *a]";
    assert!(rendered(aliased).unwrap_err().to_string().contains("more than"));

    for (value, length) in [
        ("parameters.long | replace('x', 'ab')", 200_000),
        ("parameters.long | list", 100_000),
        ("parameters.long * (parameters.few | int)", 300_000),
        ("(parameters.few | int) * parameters.long", 300_000),
        ("[1, 2] * (parameters.few | int) + [3]", 7),
        ("parameters.long + 'a' + 'b'", 100_002),
        ("parameters.long * 0", 0),
        ("[[1] * (2 * (parameters.few | int) + 1)] * 4", 4),
        ("parameters.long[1:] ~ (-1 * -2.5 + 2.0 ** -1 / 4)", 100_004),
    ] {
        assert_eq!(of(value).map_err(|error| error.to_string()), Ok(length.into()), "{value}");
    }
}

/// Those of the engine that would make something large are not there.
#[test]
fn what_is_not_on_the_page_is_not_there() {
    for (value, kind) in [
        ("'a' | indent(9)", "filter"),
        ("'%99999s' | format(1)", "filter"),
        ("'a' | center(99999)", "filter"),
        ("[1] | batch(99999, 0)", "filter"),
        ("[1] | slice(99999, 0)", "filter"),
        ("[1] | chain([1])", "filter"),
        ("[1] | zip([1])", "filter"),
        ("'a' | urlencode", "filter"),
        ("'a' | pprint", "filter"),
        ("'a'.center(99999)", "method"),
        ("'a'.ljust(99999)", "method"),
        ("'a'.replace('a', 'b')", "method"),
        ("'a'.join([1])", "method"),
        ("'a'.format(1)", "method"),
        ("[1].append(1)", "method"),
        ("debug()", "function"),
    ] {
        let error = render(&format!("a: {{{{ {value} }}}}"), &[]).unwrap_err().to_string();
        assert!(error.contains(&format!("unknown {kind}")), "{value}: {error}");
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
