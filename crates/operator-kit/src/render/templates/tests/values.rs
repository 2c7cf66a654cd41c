//! The values that a template inserts, as docs/templates.md describes them.

use super::*;

#[test]
fn a_missing_value_is_an_error_wherever_it_is_used() {
    let given = |used: &str| {
        let template = format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: web, labels: {{a: {used}}}}}\n");
        let object = json!({"there": ["x"]});
        let templates = templates(&[("default", &template)]);
        let none = BTreeMap::new();
        templates.render_with("default", &subject(&none, ""), &[("object", &object)], "v1", "Pod")
    };
    for filter in [
        "join",
        "join(',')",
        "groupby('a')",
        "chain([1])",
        "zip([1])",
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
        "batch(2)",
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
        "{{ object.there | zip(object.gone) | list }}",
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
        ("{{ object.there | chain(['y']) | join(',') }}", json!("x,y")),
    ] {
        assert_eq!(given(used).unwrap()["metadata"]["labels"]["a"], expected, "{used}");
    }
}

/// The names in the page's list of this kind.
fn documented(kind: &str) -> Vec<String> {
    let page = include_str!("../../../../../../docs/templates.md");
    let list = page.split_once(&format!("- {kind}: ")).unwrap().1.split_once(".\n").unwrap().0;
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_page_lists_the_filters_tests_and_functions_of_the_engine() {
    let environment = templates(&[]).environment;
    let names = |all: &mut dyn Iterator<Item = String>| {
        let is_word = |name: &String| name.chars().all(|c| c.is_ascii_lowercase());
        all.filter(is_word).collect::<BTreeSet<_>>()
    };
    for (kind, source) in
        [("Filters", "{{ 1 | NAME }}"), ("Tests", "{{ 1 is NAME }}"), ("Functions", "{{ NAME() }}")]
    {
        let listed = names(&mut documented(kind).into_iter());
        assert_eq!(listed.len(), documented(kind).len(), "{kind}");
        for name in &listed {
            let error = environment.render_str(&source.replace("NAME", name), ()).err();
            let text = error.map(|error| format!("{error:#}")).unwrap_or_default();
            assert!(!text.contains("unknown"), "{kind}: {name}: {text}");
        }
    }
    for removed in ["safe", "escape", "e", "pprint"] {
        assert!(environment.render_str(&format!("{{{{ 1 | {removed} }}}}"), ()).is_err(), "{removed}");
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
        let rendered =
            templates.render_with("default", &subject(&none, ""), &[("object", &object)], "v1", "Pod");
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
fn a_filter_makes_no_value_of_any_size() {
    let long = "x".repeat(100_000);
    let given =
        [("long", &*long), ("large", "1000000000000"), ("format", "%1000000000000s"), ("one", "%5.2f")];
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
        "parameters.one | indent(parameters.large | int, true)",
        "parameters.one | indent(width=parameters.large | int, first=true)",
        "parameters.one | list | batch(parameters.large | int, '-') | list",
        "parameters.one | list | slice(parameters.large | int) | list",
        "parameters.format | format('a')",
        "'%(a)1000000000000s' | format('a')",
    ] {
        let error = rendered(value).unwrap_err().to_string();
        assert!(error.contains("more than"), "{value}: {error}");
    }
    for (value, length) in [
        ("parameters.long | replace('x', 'ab')", 200_000),
        ("'a b' | indent(8, true)", 11),
        ("'a b' | indent(width=8, first=true)", 11),
        ("[1, 2, 3] | batch(2, 100000) | list", 2),
        ("[1, 2, 3] | slice(2) | list", 2),
        ("parameters.one | format(3.14159)", 5),
        ("'100000 %s of 100000' | format('a')", 18),
        ("'100%% 100000 %s' | format('a')", 13),
    ] {
        assert_eq!(rendered(value).unwrap(), length, "{value}");
    }
}
