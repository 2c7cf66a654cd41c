//! An object is the same whether its outline was parsed before or not.

use super::*;

/// Places for a value, each in a line of a template.
const PLACES: &[&str] = &[
    "a: {{ parameters.v }}",
    "a: {{ 'team ' ~ parameters.v }}",
    "a: [{{ parameters.v }}, x, {{ name }}]",
    "a: {b: {{ parameters.v }}, c: x}",
    "a: {b: {{ parameters.v }}x}",
    "a: 'for {{ parameters.v }}'",
    "a: '{{ parameters.v }}'",
    "a: \"{{ parameters.v }}\"",
    "a: for {{ parameters.v }}",
    "a: {{ parameters.v }} for",
    "a: {{ parameters.v }}{{ parameters.v }}",
    "a: {{ parameters.v }}#no comment",
    "a: 1 # {{ parameters.v }}",
    "a: {{ parameters.v }} # {{ name }}",
    "a: 'for {{ {parameters.v: 1} }}'",
    "a: 'for {{ {parameters.v: 1, 'k': 's'} }}'",
    "a: \"{{ {parameters.v: 1} }}\"",
    "a: for {{ {parameters.v: 1} }}",
    "a: {{ {parameters.v: 1} }}",
    "a: &x {{ parameters.v }}\n  *x : b",
    "a: {{ parameters.v ~ parameters.v }}",
    "{{ parameters.v }}: a",
    "? {{ parameters.v }}\n  : a",
    "a: {? {{ parameters.v }} : b}",
    "a: |\n    echo {{ parameters.v }}",
    "a: >-\n    {{ parameters.v }}",
    "a: &x {{ parameters.v }}\n  b: *x",
    "a: &{{ parameters.v }} x",
    "a: !!str {{ parameters.v }}",
    "a: !!int {{ parameters.v }}",
    "a: !{{ parameters.v }} x",
    "<<: {{ parameters }}",
    "a: {{ parameters }}",
    "a: {{ {parameters.v: [parameters.v, 1, none, true, 2.5, {'x@string0@': parameters.v}]} }}",
    "a: {{ parameters.v | length }}",
    "a: {{ parameters.v | length }}0",
    "a: {{ parameters.v | escape }}",
    "a: {% if parameters.v == 'a' %}{{ parameters.v }}{% else %}[{{ parameters.v }}]{% endif %}",
    "a: {% for c in parameters.v | list %}\n  - {{ c }}\n  {%- else %} none{% endfor %}",
    "a: x@string0@\n  b: {{ parameters.v }}",
    "a: {{ '\"x@string0@\"' }}\n  b: {{ parameters.v }}",
    "{% import 'part' as p %}a: {{ p ~ p }}\n  b: {{ (p ~ '') | length }}",
    "{% import 'part' as p %}a: {{ (p ~ '') | trim('\"') }}",
    "pad: {{ range(999) | map('string') | list }}\n  {% import 'part' as p %}a: {{ p | trim('\"') }}",
    "a: {% include 'part' %}\n  b: {{ parameters.v }}",
    "{% set c %}{{ parameters.v }}{% endset %}a: {% if c == '\"a\"' %}1{% else %}{{ c }}{% endif %}",
    "{% macro m() %}{{ parameters.v }}{% endmacro %}a: {% if m() == '\"a\"' %}1{% else %}{{ m() | upper }}{% endif %}",
    "a: {% filter upper %}{{ parameters.v }}{% endfilter %}",
];

fn pod(place: &str) -> String {
    format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec:\n  {place}\n  last: {{{{ name }}}}\n")
}

fn rendered(templates: &Templates, value: &str) -> Result<Rendered, String> {
    let rendered = templates.render("default", &subject(&parameters(&[("v", value)]), "x"), "v1", "Pod");
    rendered.map_err(|error| error.to_string())
}

/// Compares what is rendered for values one after the other with what is rendered when no outline is known, and with what is
/// rendered without outlines.
fn compare(place: &str, values: &[&str]) {
    let sources = [("default", &*pod(place)), ("part", "{{ parameters.v }}")];
    let [used, mut unused, mut plain] = [(), (), ()].map(|()| templates(&sources));
    plain.outlining = None;
    for value in values {
        unused.outlines = Outlines::default();
        let object = rendered(&used, value);
        assert_eq!(object, rendered(&unused, value), "{place}: {value:?} of {values:?}");
        // Without outlines, a mark stands for a whole map, and nothing can be merged with a mark.
        if !place.starts_with("<<") {
            assert_eq!(object, rendered(&plain, value), "{place}: {value:?} of {values:?}");
        }
    }
}

#[test]
fn values_are_the_same_in_every_place() {
    let values = [
        "web",
        "a",
        "7",
        "",
        "a: b",
        "a #",
        "a}, b: {",
        "'",
        "\"",
        "x@string0@",
        "line\nline: #",
        "- a",
        "&a",
        "~",
        "\u{85}\u{feff}é",
    ];
    for place in PLACES {
        // An outline is parsed when it comes for the second time.
        for first in ["web", "x@string0@"] {
            compare(place, &[&[first, first], &values[..], &values[..]].concat());
        }
    }
}

proptest! {
    #[test]
    fn any_values_are_the_same_in_every_place(
        place in prop::sample::select(PLACES),
        values in prop::collection::vec(r#"[ab7 :,#\[\]{}'"&*!|>%@\\~\n\u{85}é-]{0,6}"#, 1..6),
    ) {
        let values: Vec<_> = values.iter().map(String::as_str).collect();
        compare(place, &values);
    }
}

fn outline(templates: &Templates, value: &str) -> Option<Outline> {
    let given = parameters(&[("v", value)]);
    let (subject, parameters) = (subject(&given, ""), Arc::new(Parameters::given(&given)));
    templates.outline(Input {
        template: "default",
        subject: &subject,
        parameters: &parameters,
        more: &More::new(),
    })
}

/// Whether the text of another object need not be parsed, after two of the same template.
fn is_known(place: &str) -> bool {
    let templates = templates(&[("default", &pod(place))]);
    for value in ["one", "two"] {
        let _ = rendered(&templates, value);
    }
    outline(&templates, "three").is_some_and(|outline| templates.outlines.object(&outline).is_some())
}

#[test]
fn objects_that_differ_only_in_whole_values_are_parsed_once() {
    for place in [
        "a: {{ parameters.v }}",
        "a: [{{ parameters.v }}, x, {{ name }}]",
        "a: {{ parameters }}",
        "a: {{ parameters.v }}\n  b: {{ [1, none, true, 2.5] }}",
        "a: {% if parameters.v == 'a' %}{{ parameters.v }}{% else %}[{{ parameters.v }}]{% endif %}",
    ] {
        assert!(is_known(place), "{place}");
    }
    for place in [
        "a: 'for {{ parameters.v }}'",
        "a: 1 # {{ parameters.v }}",
        "{{ parameters.v }}: a",
        "a: |\n    echo {{ parameters.v }}",
        "a: &x {{ parameters.v }}\n  b: [*x, *x]",
        "a: {{ {parameters.v: 1} }}",
        "{% set c %}{{ parameters.v }}{% endset %}a: {{ c }}",
    ] {
        assert!(!is_known(place), "{place}");
    }
}

#[test]
fn a_word_that_only_contains_a_keyword_costs_no_outline() {
    assert!(is_known("a: {{ parameters.v }} # important, for all {{ namespace | length }} extendsions"));
    assert!(!is_known("a: {{ parameters.v }}{%import 'default' as p%}"));
    for reads_back in ["a: {{ parameters.v }} # import", "a: {{ parameters.v }}{%-endset-%}"] {
        assert!(templates(&[("default", "a: 1"), ("other", reads_back)]).outlining.is_none(), "{reads_back}");
    }
}

#[test]
fn outlines_that_never_come_again_take_limited_memory() {
    let templates = templates(&[("default", &pod("a: {{ range(parameters.v | int) | list }}"))]);
    for number in 0..500 {
        assert!(rendered(&templates, &number.to_string()).is_ok());
    }
    assert!(templates.outlines.length() <= 128 * 1024, "{} bytes", templates.outlines.length());
}

#[test]
fn strings_beyond_a_limit_are_not_set_aside() {
    let templates = templates(&[("default", &pod("a: {{ parameters.v | list }}"))]);
    let outline = outline(&templates, &"x".repeat(5_000)).unwrap();
    let kept = |text: &str| text.matches("\"x\"").count();
    assert_eq!(kept(&outline.whole), 5_000);
    assert!(kept(&outline.text) >= 4_000, "{}", kept(&outline.text));
}
