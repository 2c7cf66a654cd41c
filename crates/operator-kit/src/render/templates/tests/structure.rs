//! A value never becomes structure, wherever a template puts it.

use super::{super::structure::unmarked, *};

fn pod(line: &str) -> String {
    format!("{{apiVersion: v1, kind: Pod, metadata: {{name: web}}, spec: {{{line}}}}}")
}

fn spec(line: &str, team: &str) -> Result<Value, TemplateError> {
    render(&pod(line), &[("team", team)]).map(|rendered| rendered.object["spec"].clone())
}

/// Values that would be structure in the middle of a text.
const HOSTILE: [&str; 6] =
    ["a], privileged: true, args: [b", "a, x: y", "', x: '", "a: b", "a #", "a}, spec: {x: y"];

#[test]
fn a_value_in_the_middle_of_a_text_is_refused_where_it_would_be_structure() {
    for line in
        ["command: [sh, -c, exec app --team={{ parameters.team }}]", "note: 'for {{ parameters.team }}'"]
    {
        let harmless = spec(line, "web").unwrap().to_string();
        assert!(harmless.contains("web"), "{line}");
        let changed = |team: &&str| {
            !matches!(spec(line, team), Err(TemplateError::Structure { .. } | TemplateError::NotYaml { .. }))
        };
        let taken: Vec<_> = HOSTILE.into_iter().filter(changed).collect();
        let fields = |team: &str| spec(line, team).unwrap().as_object().unwrap().len();
        assert!(taken.iter().all(|team| fields(team) == 1), "{line}: {taken:?}");
        assert!(taken.len() < HOSTILE.len(), "{line}");
    }
    let injected = spec("command: [sh, -c, exec app --team={{ parameters.team }}]", HOSTILE[0]);
    assert!(matches!(&injected, Err(TemplateError::Structure { .. })), "{injected:?}");
    assert!(injected.unwrap_err().to_string().contains("inside the braces"));
}

#[test]
fn the_only_parameter_that_could_be_structure_is_named() {
    let of = |given: &[(&str, &str)]| {
        let line = "command: [app --team={{ parameters.team }}, --site={{ parameters.site }}], note: {{ parameters.note }}";
        render(&pod(line), given).unwrap_err().to_string()
    };
    let error = of(&[("team", "a, b"), ("site", "s"), ("note", "c")]);
    assert!(error.contains("; spec.parameters.team is \"a, b\"; use another value"), "{error}");
    let error = of(&[("team", "a, b"), ("site", "c, d"), ("note", "")]);
    assert!(error.contains("of the object; use another value"), "{error}");
}

#[test]
fn a_key_in_the_middle_of_a_text_is_no_structure_either() {
    for line in [
        "note: 'for {{ {parameters.team: 1} }}'",
        "note: 'for {{ {parameters.team: 1, 'k': 's'} }}'",
        "note: \"{{ {parameters.team: 1} }}\"",
    ] {
        let fields = |team: &str| spec(line, team).map_or(1, |spec| spec.as_object().unwrap().len());
        for team in HOSTILE.into_iter().chain(["', privileged: true, x: '", ", privileged: true, x: "]) {
            assert_eq!(fields(team), 1, "{line}: {team}");
        }
    }
}

#[test]
fn a_filter_that_takes_the_quotes_away_makes_no_structure_either() {
    let line = "note: {% filter trim('\"') %}{{ parameters.team }}{% endfilter %}";
    assert_eq!(spec(line, "web").unwrap(), json!({"note": "web"}));
    assert_eq!(spec(line, "it's fine").unwrap(), json!({"note": "it's fine"}));
    assert!(spec(line, "a, privileged: true").is_err());
    let list = "args: [{% filter trim('\"') %}{{ parameters.team }}{% endfilter %}]";
    for team in ["a:", "a: b"] {
        assert!(spec(list, team).is_err(), "{team}: {:?}", spec(list, team));
    }
}

#[test]
fn a_text_that_is_captured_first_stays_a_value() {
    let set = "{% set script %}echo {{ parameters.team }}{% endset %}";
    for team in ["web", "it's", "a, b", "x: y"] {
        let text = format!("echo {}", json!(team));
        let given = render(&format!("{set}{}", pod("command: {{ ['sh', script] }}")), &[("team", team)]);
        assert_eq!(given.unwrap().object["spec"]["command"], json!(["sh", text]), "{team}");
    }
}

#[test]
fn a_filter_that_inserts_a_value_into_captured_text_makes_no_structure_either() {
    let set = "{% set s %}exec app --team=TEAM{% endset %}{% set f %}exec app --team=%s{% endset %}";
    for inserted in [
        "{% filter replace('TEAM', parameters.team) %}exec app --team=TEAM{% endfilter %}",
        "{{ s | replace('TEAM', parameters.team) }}",
        "{{ f | format(parameters.team) }}",
    ] {
        let template = format!("{set}{}", pod(&format!("command: [sh, -c, {inserted}]")));
        let command = |team: &str| {
            let rendered = render(&template, &[("team", team)]);
            rendered.map(|rendered| rendered.object["spec"].clone())
        };
        assert_eq!(command("web").unwrap(), json!({"command": ["sh", "-c", "exec app --team=\"web\""]}));
        for team in HOSTILE.into_iter().chain(["a], privileged: true, args: [b"]) {
            let changed = command(team).map_or(1, |spec| spec.as_object().unwrap().len());
            assert_eq!(changed, 1, "{inserted}: {team}");
        }
    }
    for team in HOSTILE.into_iter().chain(["], privileged: true, args: ["]) {
        let template = format!("{set}{}", pod("command: [sh, -c, {{ [s, s] | join(parameters.team) }}]"));
        let changed = render(&template, &[("team", team)])
            .map_or(1, |rendered| rendered.object["spec"].as_object().unwrap().len());
        assert_eq!(changed, 1, "{team}");
    }
}

#[test]
fn a_text_in_a_list_or_a_map_makes_no_structure_either() {
    for line in ["args: [\"for {{ [parameters.team] }}\"]", "args: [\"for {{ {parameters.team: 1} }}\"]"] {
        assert!(spec(line, ":").is_err(), "{line}: {:?}", spec(line, ":"));
    }
}

/// Wherever the whole text is parsed: with an outline that is unusable because of a comment, and without outlines.
#[test]
fn a_value_that_looks_like_a_mark_stands_for_no_other_value() {
    for around in ["# {{ parameters.b }}", "# {{ parameters.a }} import"] {
        let template = format!(
            "{around}\napiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec:\n  a: {{{{ parameters.a }}}}\n  b: {{{{ parameters.b }}}}\n"
        );
        for mark in ["x@value0@", "x@value1@", "x@string0@"] {
            let (a, b) = ("[".repeat(1_000), mark.repeat(1_000));
            for _ in 0..3 {
                let object = render(&template, &[("a", &a), ("b", &b)]).unwrap().object;
                assert_eq!(object["spec"], json!({"a": a, "b": b}), "{around}");
            }
        }
    }
}

#[test]
fn values_that_are_inserted_again_and_again_take_limited_memory() {
    let marks =
        |count| serde_json::from_str(&format!("[{}]", vec![marks::mark(0); count].join(","))).unwrap();
    let values = [json!("a, b".repeat(100_000)).to_string()];
    let length = |count| unmarked(marks(count), &values).map(|list| list.to_string().len());
    assert!(length(10).is_some_and(|length| length > 4_000_000));
    assert_eq!(length(100), None);
    let text = marks::mark(0).trim_matches('"').repeat(100);
    assert_eq!(unmarked(text.into(), &values), None);
}

/// All controllers have one thread. Ten times as many values take about ten times as long, and not a hundred times.
#[test]
fn many_values_in_one_text_are_proved_in_a_time_that_grows_as_they_do() {
    let template = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  script: |\n    {% for t in parameters.team | list %}echo {{ t ~ ',' }} {% endfor %}\n";
    let time = |count| {
        let (begun, given) = (std::time::Instant::now(), "a".repeat(count));
        let script = render(template, &[("team", &given)]).unwrap().object["spec"]["script"].clone();
        assert_eq!(script.as_str().unwrap().matches("a,").count(), count);
        begun.elapsed()
    };
    // The shorter of two, because others may have had the processor meanwhile.
    let [few, many] = [1_000, 10_000].map(|count| time(count).min(time(count)));
    assert!(many < 30 * few, "{few:?} for a thousand, {many:?} for ten thousand");
}

#[test]
fn any_value_may_stand_as_a_whole_or_in_a_block_of_text() {
    for team in HOSTILE.into_iter().chain([
        "x@value0@",
        "x@string0@",
        "@value0@",
        "\"quoted\", and more",
        "[1, 2]",
        "line\nline: #",
    ]) {
        assert_eq!(spec("a: {{ parameters.team }}", team).unwrap(), json!({"a": team}));
        assert_eq!(
            spec("a: {{ 'team ' ~ parameters.team }}", team).unwrap(),
            json!({"a": format!("team {team}")})
        );
        assert_eq!(spec("a: {{ parameters }}", team).unwrap(), json!({"a": {"team": team}}));
        assert_eq!(spec("a: {{ [parameters.team, 1] }}", team).unwrap(), json!({"a": [team, 1]}));
        assert_eq!(spec("a: 1, {{ parameters.team }}: 2", team).unwrap(), json!({"a": 1, team: 2}));
        let block = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  script: |\n    echo {{ parameters.team }} > x\n";
        let script = render(block, &[("team", team)]).unwrap().object["spec"]["script"].clone();
        assert_eq!(script, format!("echo {} > x\n", json!(team)));
    }
}
