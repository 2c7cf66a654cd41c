use proptest::prelude::*;
use serde_json::json;

use super::*;

fn compiled(source: &str) -> Expression {
    Expression::compile("kinds[0].target.name", source, &["object", "now"]).unwrap()
}

fn refused(source: &str) -> String {
    Expression::compile("kinds[0].target.name", source, &["object"]).unwrap_err().to_string()
}

fn task() -> Json {
    json!({
        "metadata": {
            "name": "restart", "labels": {"app.example/target": "shop"}, "finalizers": ["a/b", "percona.com/delete"],
            "creationTimestamp": "2026-03-01T10:00:00Z", "generation": 3,
        },
        "spec": {"datacenter": {"name": "dc1"}, "text": "abc", "nothing": null},
        "status": {"conditions": [
            {"type": "Running", "status": "False"}, {"type": "Complete", "status": "True"},
        ]},
    })
}

fn text(source: &str) -> Result<Option<String>, ExpressionError> {
    compiled(source).optional_text(&[("object", &task())])
}

fn holds(source: &str) -> bool {
    compiled(source).bool(&[("object", &task())]).unwrap()
}

#[test]
fn the_fields_that_it_reads_are_known_however_they_are_named_and_texts_are_none() {
    let reads = |source: &str, field: &str| compiled(source).fields().iter().any(|read| read == field);
    for source in [
        "object.status.hash",
        "has(object.status.hash)",
        "object.status.?hash.orValue('')",
        "object.status['hash']",
        "object.status[?'hash'].hasValue()",
        "object.status.conditions.exists(one, one.hash == now)",
        "string(object.status.hash) == 'a' ? [object.hash] : []",
    ] {
        assert!(reads(source, "hash"), "{source}");
    }
    for source in ["object.status.ready == 'hash'", "object.status['other'] == 'hash'", "['hash']"] {
        assert!(!reads(source, "hash"), "{source}");
    }
}

#[test]
fn text_is_found_wherever_it_stands() {
    let cases = [
        ("object.spec.datacenter.name", Some("dc1")),
        ("object.metadata.labels['app.example/target']", Some("shop")),
        ("has(object.spec.clusterName) ? object.spec.clusterName : object.spec.datacenter.name", Some("dc1")),
        ("object.spec.?datacenter.?name", Some("dc1")),
        ("object.spec.?datacenter.name", Some("dc1")),
        ("object.spec.?cluster.?name", None),
        ("object.spec.?cluster.name", None),
        ("object.?nowhere.?cluster.?name.orValue('x')", Some("x")),
        ("object.metadata.?labels[?'missing']", None),
        ("object.spec.nothing", None),
        ("object.metadata.finalizers.filter(f, f.startsWith('percona'))[0]", Some("percona.com/delete")),
        ("'a,b'.split(',')[1].upperAscii()", Some("B")),
        ("string(object.metadata.generation + 1)", Some("4")),
    ];
    for (source, expected) in cases {
        assert_eq!(text(source).unwrap().as_deref(), expected, "{source}");
    }
}

/// Larger ones would wrap around and compare as small.
#[test]
fn quantities_are_compared_and_none_that_is_too_large() {
    assert!(holds("quantity('2Gi').isGreaterThan(quantity('1Ti')) == false"));
    assert!(holds("quantity('2e9').isGreaterThan(quantity('1Gi'))"));
    assert!(holds("quantity('7E').isGreaterThan(quantity('0.001u'))"));
    assert!(holds("quantity('1.5Ki') == quantity('1536') && quantity('1e3').compareTo(quantity('1k')) == 0"));
    for text in [
        "99999999999999999999E",
        "10000000000000000000E",
        "1e200",
        "1E-200",
        "1e99999999999",
        "100000000000000000000000000000000000000000",
        "-170141183460469231731687303715884105728n",
        "0.1n",
        "1ki",
        "",
    ] {
        let source = format!("quantity('{text}').isGreaterThan(quantity('1Ti'))");
        assert!(compiled(&source).bool(&[("object", &task())]).is_err(), "{text}");
    }
}

#[test]
fn conditions_are_asked_for_as_in_admission_policies() {
    assert!(holds("object.status.conditions.exists(c, c.type == 'Complete' && c.status == 'True')"));
    assert!(!holds("has(object.status.completionTime)"));
    assert!(!holds("object.metadata.finalizers.all(f, f.startsWith('percona'))"));
    assert!(holds("object.metadata.generation == 3 && object.metadata.generation in [1, 3]"));
    assert!(holds("object.spec.datacenter.name.matches('^dc[0-9]+$')"));
    assert!(holds("[1, 2].max() == 2 && ['a'].all(x, x in ['a', 'b'])"));
}

#[test]
fn numbers_are_whole_ones() {
    let object = json!({"ttl": 60, "half": 0.5, "text": "60"});
    let variables = [("object", &object)];
    for (source, expected) in
        [("object.ttl", Some(60)), ("int('7')", Some(7)), ("object.?none", None), ("null", None)]
    {
        assert_eq!(compiled(source).optional_int(&variables).unwrap(), expected, "{source}");
    }
    for source in ["object.half", "object.text", "true"] {
        let error = compiled(source).optional_int(&variables).unwrap_err().to_string();
        assert!(error.contains("must return a whole number"), "{source}: {error}");
    }
}

#[test]
fn times_are_timestamps_or_text() {
    let expected = "2026-03-01T10:00:00Z".parse().unwrap();
    let (object, now) = (task(), json!("2026-03-01T12:00:00Z"));
    let variables = [("object", &object), ("now", &now)];
    for source in ["object.metadata.creationTimestamp", "timestamp(object.metadata.creationTimestamp)"] {
        assert_eq!(compiled(source).optional_timestamp(&variables).unwrap(), Some(expected), "{source}");
    }
    assert_eq!(compiled("object.?status.?endTime").optional_timestamp(&variables).unwrap(), None);
    // The customary "never" is later than any time that can be represented, and the next hour is no time.
    for source in ["'9999-12-31T23:59:59Z'", "timestamp('9999-12-31T23:59:59Z')"] {
        assert_eq!(
            compiled(source).optional_timestamp(&variables).unwrap(),
            Some(Timestamp::MAX),
            "{source}"
        );
    }
    compiled("'9999-12-31T23:59:59-01:00'").optional_timestamp(&variables).unwrap_err();
    assert!(compiled("timestamp('9999-12-31T23:59:59Z') > timestamp(now)").bool(&variables).unwrap());
    let hours = "timestamp(now) - timestamp(object.metadata.creationTimestamp) > duration('1h')";
    assert!(compiled(hours).bool(&variables).unwrap());
    let error = compiled("object.spec.text").optional_timestamp(&variables).unwrap_err().to_string();
    assert!(error.contains("must return a timestamp, but returns the string \"abc\""), "{error}");
}

#[test]
fn what_does_not_compile_is_refused_with_the_settings_field() {
    let cases = [
        ("", "it is empty"),
        ("object.spec.", "does not compile"),
        ("objct.spec.name", "there is no variable objct; existing ones: object"),
        ("object.spec.name.lowerAsci()", "there is no function lowerAsci"),
        ("target.name", "there is no variable target"),
        ("Pod{name: 'a'}", "only maps are supported"),
        ("[1].all(a, [1].all(b, [1].all(c, [1].all(d, true))))", "nested more than 3 levels deep"),
        ("[1].map(a, a).map(a, a).map(a, a).map(a, a)", "nested more than 3 levels deep"),
        (
            "object.metadata.finalizers.exists(f, g == 'x')",
            "there is no variable g; existing ones: object, f",
        ),
        ("_size(object)", "there is no function _size"),
        (".size(object)", "there is no function .size"),
        ("size(object, object)", "there is no function size with 2 arguments"),
        ("math.greatest(1, 2)", "there is no variable math"),
        ("lists.range(99999999999)", "lists. is not read as in the API server; write in, filter, map"),
        ("'%.70000f'.format([1.0])", ".format( is not read as in the API server; write +, substring"),
        ("object.items.all(i, v, i == 0)", "loop with one variable"),
    ];
    for (source, expected) in cases {
        let error = refused(source);
        assert!(error.contains(expected) && error.starts_with("kinds[0].target.name: "), "{source}: {error}");
    }
    assert!(refused(&format!("'{}'", "x".repeat(LONGEST))).contains("at most 2048"));
}

#[test]
fn no_depth_overflows_a_stack() {
    let half = LONGEST / 2 - 1;
    for source in [
        format!("{}1{}", "(".repeat(half), ")".repeat(half)),
        format!("{}1{}", "[".repeat(half), "]".repeat(half)),
        "(".repeat(LONGEST),
        format!("{}1", "-".repeat(LONGEST - 1)),
        format!("{}true", "!".repeat(LONGEST - 5)),
        format!("1{}", "+1".repeat(half)),
        format!("object{}", ".a".repeat(half - 3)),
        format!("object{}", "[0]".repeat(680)),
        format!("{}1", "true?1:".repeat(290)),
        format!("true{}", "&&true".repeat(340)),
        format!("object{}", ".map(x,x)".repeat(225)),
    ] {
        // The outcome does not matter, as long as the process survives.
        if let Ok(expression) = Expression::compile("f", &source, &["object"]) {
            let _ = expression.optional_text(&[("object", &task())]);
        }
    }
}

#[test]
fn a_path_names_a_field_and_does_nothing_with_it() {
    for source in
        ["object", "object.spec.name", "object.metadata.labels['a/b']", "object['spec'][\"name\"].first"]
    {
        assert!(compiled(source).is_path(), "{source}");
    }
    for source in [
        "object.spec.name + ''",
        "object.spec.?name",
        "object.items[0]",
        "has(object.spec.name)",
        "object.spec.name.split('/')[0]",
        "object.metadata.labels[object.spec.name]",
        "'text'",
    ] {
        assert!(!compiled(source).is_path(), "{source}");
    }
}

#[test]
fn a_missing_field_and_a_wrong_type_are_told_apart() {
    assert_eq!(text("object.spec.clusterName").unwrap_err().missing(), Some("clusterName"));
    let number = text("object.metadata.generation").unwrap_err().to_string();
    assert!(number.ends_with("must return a string, but returns the int Int(3)"), "{number}");
    let of_text = text("object.spec.text.name").unwrap_err();
    assert!(matches!(of_text.problem, Problem::Failed(_)), "{of_text}");
    let none = compiled("object.?nothing").bool(&[("object", &task())]).unwrap_err();
    assert!(none.to_string().contains("must return a boolean, but returns nothing"), "{none}");
}

#[test]
fn a_field_that_is_missing_inside_a_function_is_missing_too_and_is_named() {
    for source in [
        "int(object.status.observedGeneration)",
        "string(int(object.status.observedGeneration) + 1)",
        "size(object.status.observedGeneration) > 0",
        "timestamp(object.status.observedGeneration)",
        "[1, object.status.observedGeneration].max()",
        "'a' in object.status.observedGeneration",
        "object.status.observedGeneration.startsWith('x')",
        "'abc'.startsWith(object.status.observedGeneration)",
        "quantity(string(object.status.observedGeneration)).isGreaterThan(quantity('1'))",
        "object.status.conditions.all(c, int(c.observedGeneration) == 3)",
        "has(object.status) && int(object.status.observedGeneration) == 3",
    ] {
        let error = compiled(source).optional_json(&[("object", &task())]).unwrap_err();
        assert_eq!(error.missing(), Some("observedGeneration"), "{source}: {error}");
    }
    let failed = text("string(int(object.spec.text))").unwrap_err();
    assert!(failed.to_string().contains("int is not possible with the string"), "{failed}");
    let nested = "string(size(object.metadata.finalizers) + [size('ab'), size(string(7))].max())";
    assert_eq!(text(nested).unwrap().as_deref(), Some("4"));
    assert!(holds("[2, 1].exists(n, int(string(n)) == 1 && [n, size('abc')].max() == 3)"));
}

#[test]
fn no_evaluation_runs_away() {
    let object = json!({"items": vec!["x"; 3000]});
    for source in [
        "object.items.all(a, object.items.all(b, a == b))",
        "object.items.all(a, a == 'x')",
        "object.items.map(a, a + a).exists(a, a == 'y')",
    ] {
        let error = compiled(source).bool(&[("object", &object)]).unwrap_err();
        assert_eq!(error.problem, Problem::TooCostly, "{source}: {error}");
    }
    let object = json!({"items": vec!["x"; 1000]});
    assert!(compiled("object.items.all(a, a == 'x')").bool(&[("object", &object)]).unwrap());
}

#[test]
fn an_error_does_not_quote_a_large_object() {
    let object = json!({"big": "x".repeat(100_000)});
    let error = compiled("object + 1").optional_text(&[("object", &object)]).unwrap_err().to_string();
    assert!(error.len() < 500, "{} bytes", error.len());
}

proptest! {
    /// A panic ends the process, so no text in an annotation may cause one.
    #[test]
    fn no_text_makes_the_compiler_or_the_interpreter_panic(
        parts in prop::collection::vec(prop::sample::select(vec![
            "object", ".spec", ".?text", "[0]", "['a']", "(", ")", "[", "]", "{", "}", ",", ":", "?", "+", "-", "*",
            "/", "%", "&&", "||", "!", "==", "<", " in ", "1", "-9223372036854775808", "0", "1u", "2.5", "'x'",
            "b'x'", "null", "true", ".map(x, x)", ".all(x, true)", ".exists_one(y, y == 1)", "has(object.spec)",
            "size", "timestamp", "duration", ".`a-b`", ".matches('[')", ".orValue(1)", "optional.none()", "string", "int",
            ".getDayOfYear()", ".substring(9)", "'%d'.format", ".join", ".split('x')", ".replace", ".", "x", "\\", "\"", "\u{0}", "é",
        ]), 0..12),
    ) {
        if let Ok(expression) = Expression::compile("f", &parts.concat(), &["object"]) {
            let _ = expression.optional_text(&[("object", &task())]);
        }
    }
}

/// The parser reads these otherwise than the API server's does.
#[test]
fn what_would_be_misread_is_refused_with_what_to_write() {
    let cases = [
        ("!!true", "!! is not read as in the API server; leave both ! out"),
        ("1 - -1", "write a + b for a - -b"),
        ("-0x10", "write it in decimals"),
        ("true // don't", "write it in YAML"),
        ("'''a'b'''", "the quotes that it does not have"),
        (r#"'a\"b'"#, "the quotes that it does not have"),
        (r"'it\'s'", "the quotes that it does not have"),
        ("7u", "write it without u"),
        ("b'a'", "write a text"),
        (r"'a'.matches('\\d')", "[0-9] for \\d"),
    ];
    for (source, expected) in cases {
        let error = refused(source);
        assert!(error.contains(expected), "{source}: {error}");
    }
    assert!(holds(r#"'--a!!//' == "--a!!//" && "it's" == 'it\x27s'"#));
}

#[test]
fn a_quoted_field_is_the_field_wherever_it_stands() {
    let object = json!({"spec": {"a-b": {"c.d": "shop"}, "in": 1}});
    let variables = [("object", &object)];
    for source in ["object.spec.`a-b`.`c.d`", "object.?spec.?`a-b`.?`c.d`", "object['spec'].`a-b`['c.d']"] {
        assert_eq!(compiled(source).optional_text(&variables).unwrap().as_deref(), Some("shop"), "{source}");
    }
    assert!(compiled("object.spec.`a-b`.`c.d`").is_path());
    for source in ["has(object.spec.`a-b`)", "has(object.spec.`a-b`.`c.d`)", "object.spec.`in` == 1"] {
        assert!(compiled(source).bool(&variables).unwrap(), "{source}");
    }
    assert!(!compiled("has(object.spec.`b-a`)").bool(&variables).unwrap());
    let error = compiled("object.spec.`b-a`").optional_text(&variables).unwrap_err();
    assert_eq!(error.missing(), Some("b-a"));
}

#[test]
fn a_condition_without_a_field_does_not_hide_those_after_it() {
    let object = json!({"conditions": [{"type": "Progressing"}, {"type": "Done", "reason": "Completed"}]});
    let ask = |source: &str| compiled(source).bool(&[("object", &object)]);
    assert_eq!(ask("object.conditions.exists(c, c.reason == 'Completed')"), Ok(true));
    assert_eq!(ask("object.conditions.all(c, c.reason != 'Completed')"), Ok(false));
    for open in
        ["object.conditions.exists(c, c.reason == 'x')", "object.conditions.all(c, c.reason == 'Completed')"]
    {
        assert_eq!(ask(open).unwrap_err().missing(), Some("reason"), "{open}");
    }
}

#[test]
fn equal_is_what_has_the_same_value() {
    for source in [
        "object.metadata.generation == dyn(3.0) && dyn(3.0) in [object.metadata.generation]",
        "object.metadata.?labels[?'app.example/target'] == object.metadata.labels[?'app.example/target']",
        "object.?none == object.?spec.?text.?name && object.?none != object.?spec",
        "size('é') == 1 && string(true) == 'true'",
        "[object.?none.orValue('a'), 'b'] == ['a', 'b'] && {'a': 1} != {'a': 2}",
    ] {
        assert!(holds(source), "{source}");
    }
}

/// The default stack size of a thread, also of tokio's.
const THREAD_STACK: usize = 2 << 20;

/// An expression of so many levels.
type Shape = fn(usize) -> String;

/// The deepest expression of a shape that compiles.
fn deepest(shape: Shape) -> Expression {
    let compiled = (1..100).map_while(|levels| Expression::compile("f", &shape(levels), &["object"]).ok());
    compiled.last().expect("one level compiles")
}

#[test]
fn the_deepest_expressions_that_compile_are_evaluated_on_the_stack_of_a_thread() {
    let shapes: [(&str, Shape); 10] = [
        ("list", |levels| format!("{}1{}", "[".repeat(levels), "]".repeat(levels))),
        ("map", |levels| format!("{}1{}", "{'a':".repeat(levels), "}".repeat(levels))),
        ("sum", |levels| format!("1{}", "+1".repeat(levels))),
        ("nested sum", |levels| format!("{}1{}", "1+(".repeat(levels), ")".repeat(levels))),
        ("not", |levels| format!("{}true", "!".repeat(levels))),
        ("choice", |levels| format!("{}1", "false?1:".repeat(levels))),
        ("and", |levels| format!("{}true{}", "true&&(".repeat(levels), ")".repeat(levels))),
        ("call", |levels| format!("{}'a'{}", "string(".repeat(levels), ")".repeat(levels))),
        ("argument", |levels| format!("{}'b'{}", "['a'].join(".repeat(levels), ")".repeat(levels))),
        ("loop", |levels| format!("[1].map(a,[1].map(b,{}1{}))", "[".repeat(levels), "]".repeat(levels))),
    ];
    for (name, shape) in shapes {
        let expression = deepest(shape);
        // An overflow would end the whole process.
        let run = move || expression.optional_json(&[("object", &Json::Null)]);
        let thread = thread::Builder::new().stack_size(THREAD_STACK).spawn(run).unwrap();
        assert!(thread.join().unwrap().unwrap().is_some(), "{name}");
    }
}
