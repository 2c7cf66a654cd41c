//! A value is itself wherever a template puts it, and the same whether the text around it was parsed before or not.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::*;

fn pod(line: &str) -> String {
    format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec:\n  {line}\n")
}

fn spec(line: &str, team: &str) -> Result<Value, String> {
    let rendered = render(&pod(line), &[("team", team)]);
    rendered.map(|rendered| rendered.object["spec"].clone()).map_err(|error| error.to_string())
}

/// Values that would be structure in the middle of a text.
const HOSTILE: [&str; 14] = [
    "a], privileged: true, args: [b",
    "a, x: y",
    "', x: '",
    "\", x: \"",
    "a: b",
    "a #",
    "a}, spec: {x: y",
    "line\nhostNetwork: true",
    "\"quoted\", and more",
    "\t- a",
    "&a *a !!int 1",
    "|\n  x",
    "\u{e001}@0",
    "",
];

proptest! {
    /// As a whole, in quotes, in a block of text, in a list, as a key, in the middle of a text, and in a comment.
    #[test]
    fn any_text_is_itself_in_every_place(value in prop_oneof![any::<String>(), prop::sample::select(&HOSTILE[..]).prop_map(str::to_owned)]) {
        prop_assume!(!value.contains("\u{e000}@") && value != "key");
        let places = "
  whole: {{ parameters.team }}
  single: '{{ parameters.team }}'
  double: \"{{ parameters.team }}\"
  block: |
    echo {{ parameters.team }}
    {{ parameters.team }}
  folded: >-
    {{ parameters.team }}
  flow: [{{ parameters.team }}, {a: {{ parameters.team }}}]
  {{ parameters.team }}x: key
  middle: for {{ parameters.team }}:{{ name }}
  twice: {{ parameters.team }}{{ parameters.team }}
  # {{ parameters.team }}
  tagged: !!str {{ parameters.team }}
  alias: &a {{ parameters.team }}
  again: *a
  end: end
";
        prop_assume!(!["whole", "single", "double", "block", "folded", "flow", "middle", "twice", "tagged", "alias", "again", "end"].contains(&&*format!("{value}x")));
        let mut expected = json!({
            "whole": value, "single": value, "double": value, "block": format!("echo {value}\n{value}\n"), "folded": value,
            "flow": [value, {"a": value}], "middle": format!("for {value}:web"), "twice": format!("{value}{value}"),
            "tagged": value, "alias": value, "again": value, "end": "end",
        });
        expected[format!("{value}x")] = json!("key");
        let template = format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec:{places}");
        let all = templates(&[("default", &template)]);
        for team in ["first", &*value, &*value] {
            let given = parameters(&[("team", team)]);
            let object = all.render_object("default", &subject(&given, ""), &[KIND]);
            if team == value {
                prop_assert_eq!(&object.unwrap()["spec"], &expected);
            }
        }
    }
}

#[test]
fn the_type_of_a_whole_node_is_that_of_its_value_unless_it_is_written_as_a_text() {
    for (line, expected) in [
        ("a: {{ 8080 }}", json!({"a": 8080})),
        ("a: '{{ 8080 }}'", json!({"a": "8080"})),
        ("a: \"{{ true }}\"", json!({"a": "true"})),
        ("a: |-\n    {{ 1 }}", json!({"a": "1"})),
        ("a: !!str {{ 1 }}", json!({"a": "1"})),
        ("a: {{ parameters }}", json!({"a": {"team": "x"}})),
        ("a: {{ [1, parameters.team] }}", json!({"a": [1, "x"]})),
        ("a: {{ none }}", json!({"a": null})),
        // As the text 2.0 is: the API server takes it for an integer.
        ("a: {{ 4 / 2 }}", json!({"a": 2})),
        ("a: {{ [2.0, {'b': 1.5}] }}", json!({"a": [2, {"b": 1.5}]})),
        ("a: '{{ 4 / 2 }}'", json!({"a": "2.0"})),
        ("a: [{{ 'x' if false }}, b]", json!({"a": [null, "b"]})),
        ("a: {{ 1 }}0", json!({"a": "10"})),
        ("a: {{ {'k': 1} }}!", json!({"a": "{\"k\":1}!"})),
        ("{{ 1 }}: {{ 2 }}", json!({"1": 2})),
        ("a: repo/{{ parameters.team }}:{{ 1.5 }}", json!({"a": "repo/x:1.5"})),
        (
            "a: [{% for x in [1, 2] %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}]",
            json!({"a": [1, 2]}),
        ),
        ("a: [{% for x in [1, 2] %}{{ x }}{{ ', ' if not loop.last }}{% endfor %}]", json!({"a": ["1, 2"]})),
    ] {
        assert_eq!(spec(line, "x"), Ok(expected), "{line}");
    }
}

#[test]
fn a_mistake_is_told_with_the_values_and_not_with_what_stands_for_them() {
    for line in [
        "{{ parameters.team }}: 1\n  hero: 2",
        "a: *{{ parameters.team }}",
        "a: [{{ parameters.team }}",
        "a: 08 # {{ parameters.team }}",
    ] {
        let error = spec(line, "hero").unwrap_err();
        assert!(
            error.contains("does not render to YAML") && !error.contains(['\u{e000}', '\u{e001}']),
            "{line}: {error}"
        );
    }
    let twice = spec("{{ parameters.team }}: 1\n  hero: 2", "hero").unwrap_err();
    assert!(twice.contains("the key \"hero\" is there twice"), "{twice}");
    let line = spec("a: 1\n  b: 08", "x").unwrap_err();
    assert!(line.contains("line 6: ") && line.contains("without a leading 0"), "{line}");
}

#[test]
fn a_mode_with_a_leading_zero_is_read_as_kubectl_reads_it() {
    assert_eq!(spec("defaultMode: 0400", ""), Ok(json!({"defaultMode": 256})));
    assert_eq!(spec("mode: {{ '0400' | int }}", ""), Ok(json!({"mode": 400})), "a value is no YAML");
}

#[test]
fn values_that_an_alias_repeats_take_limited_memory() {
    let long = "x".repeat(900_000);
    let repeated = (0..17).map(|number| format!("\n  b{number}: *a")).collect::<Vec<_>>().concat();
    let error = spec(&format!("a: &a {{{{ parameters.team }}}}{repeated}"), &long).unwrap_err();
    assert!(error.contains("3 MiB"), "{error}");
}

/// All controllers have one thread. Ten times as many values take about ten times as long, and not a hundred times.
#[test]
fn many_values_in_one_text_are_filled_in_in_a_time_that_grows_as_they_do() {
    let line = "script: |\n    {% for t in parameters.team | list %}echo {{ t ~ ',' }} {% endfor %}\n";
    // Others may have the processor meanwhile.
    let processor_time = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    let time = |count| {
        let (begun, given) = (processor_time(), "a".repeat(count));
        let script = spec(line, &given).unwrap()["script"].clone();
        assert_eq!(script.as_str().unwrap().matches("a,").count(), count);
        processor_time().saturating_sub(begun)
    };
    let [few, many] = [1_000, 10_000].map(|count| time(count).min(time(count)));
    assert!(many < 30 * few, "{few:?} for a thousand, {many:?} for ten thousand");
}

#[test]
fn objects_that_differ_only_in_values_are_parsed_once() {
    let all = templates(&[("default", &pod("a: 'for {{ parameters.team }}' # {{ name }}"))]);
    for team in HOSTILE {
        let given = parameters(&[("team", team)]);
        all.render_object("default", &subject(&given, ""), &[KIND]).unwrap();
    }
    assert_eq!(all.trees.lengths().len(), 1);
}

#[test]
fn parsed_texts_that_never_come_again_take_limited_memory() {
    let all = templates(&[(
        "default",
        &pod("a: [{% for n in range(parameters.team | int) %}{{ n }}, {% endfor %}]"),
    )]);
    for number in 0..500 {
        let number = number.to_string();
        let given = parameters(&[("team", &*number)]);
        all.render_object("default", &subject(&given, ""), &[KIND]).unwrap();
    }
    assert!(all.trees.lengths().iter().sum::<usize>() <= 128 * 1024);
}

fn hash(template: &str) -> String {
    render(template, &[("image", "nginx")]).unwrap().hash
}

#[test]
fn the_hash_is_that_of_the_object_however_it_is_written() {
    let written = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {args: [a], image: {{ parameters.image }}}\n";
    let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"args": ["a"], "image": "nginx"}});
    // A fixed one: a dependency that makes serde_json keep the order of keys would roll every pod.
    assert_eq!(hash(written), "818ac53feeb05293fe759b504f3461f5a4c669935cd2e96c4adf8ff3a1638914");
    assert_eq!(hash(written), Digest::sha256(&object.to_string()));
    for same in [
        "# a comment\napiVersion: v1\nkind:   Pod\n\nmetadata: {name: web}\nspec: {args: [a], image: {{ parameters.image }}}\n",
        "kind: Pod\nspec: {image: {{ parameters.image }}, args: [a]}\nmetadata: {name: web}\napiVersion: v1\n",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  args: [\"a\"]\n  image: '{{ parameters.image }}'\n",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  args:\n    - a {# here #}\n  image: {{ parameters['image'] }}\n",
    ] {
        assert_eq!(hash(same), hash(written), "{same}");
    }
    for other in [
        written.replace("[a]", "[b]"),
        written.replace("args: [a]", "args: [a], hostNetwork: false"),
        written.replace("[a]", "[1]"),
    ] {
        assert_ne!(hash(&other), hash(written), "{other}");
    }
}

/// Without the suffix, a template may render anything: the rules hold for the object with it.
#[test]
fn a_hash_without_a_suffix_needs_no_object() {
    let template =
        "{% if suffix %}{apiVersion: v1, kind: Pod, metadata: {name: {{ suffix }}}}{% else %}[1]{% endif %}";
    assert!(render(template, &[]).is_ok());
    for rest in ["text", "1", "{metadata: 1}", ""] {
        assert!(render(&template.replace("[1]", rest), &[]).is_ok(), "{rest}");
    }
}

#[test]
fn the_kubelet_expands_nothing_that_comes_from_a_value() {
    let template = "
apiVersion: v1
kind: Pod
metadata: {name: web, annotations: {a: {{ parameters.x }}}}
spec:
  initContainers:
    - args: {{ [parameters.x, '$'] }}
      command: [cost=${{ parameters.x }}, '$${{ parameters.x }}', '${{ parameters.x[1:] }}', '${{ '' }}(OWN)']
  containers:
    - image: {{ parameters.x }}
      command: [sh, -c, 'echo $(OWN) $$ {{ parameters.x }}']
      env:
        - {name: A, value: {{ parameters.x }}}
        - {name: {{ parameters.x }}, value: '$(A)-{{ parameters.x }}'}
      volumeMounts: [{mountPath: {{ parameters.x }}, subPathExpr: $(A)/{{ parameters.x }}}]
      lifecycle: {preStop: {exec: {command: [{{ parameters.x }}]}}}
      livenessProbe: {exec: {command: [{{ parameters.x }}, 'echo $(OWN) {{ parameters.x }}']}}
      readinessProbe: {httpGet: {path: {{ parameters.x }}}}
      startupProbe: {{ {'exec': {'command': [parameters.x]}} }}
  template: {{ {'spec': {'containers': [{'args': [parameters.x], 'name': parameters.x}]}} }}
";
    let object = render(template, &[("x", "$(A)$")]).unwrap().object;
    let value =
        |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    for (pointer, expected) in [
        ("/metadata/annotations/a", "$(A)$"),
        ("/spec/initContainers/0/args/0", "$$(A)$$"),
        ("/spec/initContainers/0/args/1", "$$"),
        // A dollar of the template's own stays one, and does not begin a name with the value after it.
        ("/spec/initContainers/0/command/0", "cost=$$$$(A)$$"),
        ("/spec/initContainers/0/command/1", "$$$$(A)$$"),
        ("/spec/initContainers/0/command/2", "$$(A)$$"),
        ("/spec/initContainers/0/command/3", "$(OWN)"),
        ("/spec/containers/0/image", "$(A)$"),
        ("/spec/containers/0/command/2", "echo $(OWN) $$ $$(A)$$"),
        ("/spec/containers/0/env/0/value", "$$(A)$$"),
        ("/spec/containers/0/env/1/name", "$(A)$"),
        ("/spec/containers/0/env/1/value", "$(A)-$$(A)$$"),
        ("/spec/containers/0/volumeMounts/0/mountPath", "$(A)$"),
        ("/spec/containers/0/volumeMounts/0/subPathExpr", "$(A)/$$(A)$$"),
        ("/spec/containers/0/lifecycle/preStop/exec/command/0", "$(A)$"),
        ("/spec/containers/0/livenessProbe/exec/command/0", "$$(A)$$"),
        ("/spec/containers/0/livenessProbe/exec/command/1", "echo $(OWN) $$(A)$$"),
        ("/spec/containers/0/readinessProbe/httpGet/path", "$(A)$"),
        ("/spec/containers/0/startupProbe/exec/command/0", "$$(A)$$"),
        ("/spec/template/spec/containers/0/args/0", "$$(A)$$"),
        ("/spec/template/spec/containers/0/name", "$(A)$"),
    ] {
        assert_eq!(value(pointer), expected, "{pointer}");
    }
}

#[test]
fn a_whole_object_that_is_backed_up_stays_what_it_is() {
    let object = json!({"spec": {"containers": [{"args": ["$(A)"], "env": [{"name": "A", "value": "$"}]}]}});
    let template = "{apiVersion: v1, kind: Pod, metadata: {name: web}, data: {object: {{ object }}}, spec: {containers: [{args: [{{ object.spec.containers[0].args[0] }}]}]}}";
    let (all, none) = (templates(&[("t", template)]), BTreeMap::new());
    let rendered = all.render_with("t", &subject(&none, ""), &[("object", &object)], &[KIND]).unwrap();
    assert_eq!(rendered["data"]["object"], object);
    assert_eq!(rendered["spec"]["containers"][0]["args"], json!(["$$(A)"]));
}
