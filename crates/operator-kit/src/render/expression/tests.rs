use proptest::prelude::*;
use serde_json::json;

use super::*;

fn compiled(source: &str) -> Expression {
    Expression::compile("kinds[0].target.name", source, &["object", "now"]).unwrap()
}

fn refused(source: &str) -> String {
    Expression::compile("kinds[0].target.name", source, &["object"]).unwrap_err().to_string()
}

fn task() -> Value {
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
    assert!(holds("quantity('7E').isGreaterThan(quantity('0.000000001n'))"));
    for text in [
        "99999999999999999999E",
        "10000000000000000000E",
        "1e12",
        "1e200",
        "1E-200",
        "1e99999999999",
        "100000000000000000000000000000000000000000",
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
    assert!(holds("math.greatest(1, 2) == 2 && sets.contains(['a', 'b'], ['a'])"));
}

#[test]
fn numbers_are_whole_ones() {
    let object = json!({"ttl": 60, "half": 0.5, "text": "60"});
    let variables = [("object", &object)];
    for (source, expected) in
        [("object.ttl", Some(60)), ("uint(7)", Some(7)), ("object.?none", None), ("null", None)]
    {
        assert_eq!(compiled(source).optional_int(&variables).unwrap(), expected, "{source}");
    }
    for source in ["object.half", "object.text", "true", "18446744073709551615u"] {
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
        ("[1].all(a, [1].all(b, [1].all(c, true)))", "nested more than 2 levels deep"),
        (
            "object.metadata.finalizers.exists(f, g == 'x')",
            "there is no variable g; existing ones: object, f",
        ),
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
    assert!(matches!(
        text("object.spec.clusterName").unwrap_err(),
        ExpressionError::Missing { key, .. } if key == "clusterName"
    ));
    assert!(matches!(
        text("object.metadata.generation").unwrap_err(),
        ExpressionError::WrongType { got, .. } if got == "the int Int(3)"
    ));
    assert!(matches!(text("object.spec.text.name").unwrap_err(), ExpressionError::Failed { .. }));
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
        "math.greatest(1, object.status.observedGeneration)",
        "sets.contains(object.status.observedGeneration, ['a'])",
        "object.status.observedGeneration.startsWith('x')",
        "'abc'.startsWith(object.status.observedGeneration)",
        "quantity(string(object.status.observedGeneration)).isGreaterThan(quantity('1'))",
        "object.status.conditions.all(c, int(c.observedGeneration) == 3)",
        "has(object.status) && int(object.status.observedGeneration) == 3",
    ] {
        let error = compiled(source).optional_json(&[("object", &task())]).unwrap_err();
        let ExpressionError::Missing { key, .. } = &error else { panic!("{source}: {error}") };
        assert_eq!(key, "observedGeneration", "{source}");
    }
    let failed = text("string(int(object.spec.text))").unwrap_err();
    assert!(
        matches!(&failed, ExpressionError::Failed { problem, .. } if problem.contains("int")),
        "{failed}"
    );
    let nested = "string(size(object.metadata.finalizers) + math.greatest(size('ab'), size(string(7))))";
    assert_eq!(text(nested).unwrap().as_deref(), Some("4"));
    assert!(holds("[2, 1].exists(n, int(string(n)) == 1 && math.greatest(n, size('abc')) == 3)"));
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
        assert!(matches!(error, ExpressionError::TooCostly { .. }), "{source}: {error}");
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
            "size", "timestamp", "duration", ".matches('[')", ".orValue(1)", "optional.none()", "string", "int",
            ".getDayOfYear()", ".substring(9)", "'%d'.format", ".join", ".split('x')", ".replace", ".", "x", "\\", "\"", "\u{0}", "é",
        ]), 0..12),
    ) {
        if let Ok(expression) = Expression::compile("f", &parts.concat(), &["object"]) {
            let _ = expression.optional_text(&[("object", &task())]);
        }
    }
}

#[test]
fn a_number_in_an_object_does_not_make_a_list_of_that_size() {
    let expression = Expression::compile("f", "lists.range(object.n).size() > 0", &["object"]).unwrap();
    let object = |n: i64| json!({"n": n});
    assert_eq!(expression.bool(&[("object", &object(2000))]), Ok(true));
    for n in [i64::MAX, 2001] {
        let error = expression.bool(&[("object", &object(n))]).unwrap_err();
        assert!(matches!(error, ExpressionError::Failed { .. }), "{error}");
    }
}

#[test]
fn a_format_asks_for_no_more_digits_than_a_number_has() {
    let evaluate = |source: &str, object: &Value| {
        let text = Expression::compile("f", source, &["object"])?.optional_text(&[("object", object)])?;
        Ok::<_, ExpressionError>(text.unwrap_or_default())
    };
    assert_eq!(evaluate("'%s is %.2f'.format(['x', 1.5])", &json!({})).as_deref(), Ok("x is 1.50"));
    for source in ["'%.70000f'.format([1.0])", "'%.99999999999e'.format([1.0])", "object.f.format([1.0])"] {
        let error = evaluate(source, &json!({"f": "%.1000000000f"})).unwrap_err();
        assert!(error.to_string().contains("digits"), "{error}");
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
        ("last argument", |levels| format!("{}1{}", "math.greatest(1,".repeat(levels), ")".repeat(levels))),
        ("loop", |levels| format!("[1].map(a,[1].map(b,{}1{}))", "[".repeat(levels), "]".repeat(levels))),
    ];
    for (name, shape) in shapes {
        let expression = deepest(shape);
        // An overflow would end the whole process.
        let run = move || expression.optional_json(&[("object", &Value::Null)]);
        let thread = thread::Builder::new().stack_size(THREAD_STACK).spawn(run).unwrap();
        assert!(thread.join().unwrap().unwrap().is_some(), "{name}");
    }
}
