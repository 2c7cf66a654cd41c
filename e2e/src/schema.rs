//! Specs that follow from the schema of a kind: valid ones, and ones that the API server has to refuse.

use proptest::{collection::btree_map, prelude::*, sample::select, strategy::Union};
use serde_json::{Map, Value, json};

/// Texts that somebody may write or copy from elsewhere, and that YAML, Jinja, CEL, JSON or people misread.
const ODD_TEXTS: [&str; 22] = [
    "a",
    "1",
    "0x1F",
    "1e3",
    "no",
    "~",
    "null",
    "2026-01-01",
    " padded ",
    "a: b",
    "- a\n- b",
    "---\nkind: Secret",
    "{{ name }}",
    "{% for a in b %}",
    "\"}]}, {",
    "'; x",
    "\u{85}\u{2028}\u{feff}",
    "\u{0}\u{1f}\u{7f}",
    "ünï-código-💩",
    "../../etc",
    "%2e%2e?watch=true",
    "object.metadata.name",
];

/// The expected reaction of the API server to a spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To take it.
    Takes,
    /// To refuse it.
    Refuses,
    /// The reaction that its rules demand; they are not evaluated here.
    Either,
}

/// A spec, and the expected reaction.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The spec.
    pub spec: Value,
    /// The expected reaction of the API server.
    pub answer: Answer,
}

/// The schema of a kind's spec, as its definition says.
#[must_use]
pub fn of_spec(definition: &str) -> Value {
    let definition: Value = serde_saphyr::from_str(definition).unwrap_or_default();
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    definition.pointer(path).cloned().unwrap_or_default()
}

/// Specs of a schema. `at_most` lowers the maximum of a field in which a large number would be expensive.
pub fn specs(schema: &Value, at_most: &[(&str, i64)]) -> impl Strategy<Value = Generated> + use<> {
    let schema = lowered(schema, at_most);
    let fields = schema["properties"].as_object().cloned().unwrap_or_default();
    let broken = fields.clone().into_iter().map(|(name, field)| {
        let answer = if has_rule(&field) { Answer::Either } else { Answer::Refuses };
        let value = refused(&field);
        (valid(&schema), value).prop_map(move |(mut spec, value)| {
            spec[&name] = value;
            Generated { spec, answer }
        })
    });
    let unknown = valid(&schema).prop_map(|mut spec| {
        spec["nobodyKnowsIt"] = json!(1);
        Generated { spec, answer: Answer::Refuses }
    });
    let broken = Union::new(broken.map(Strategy::boxed).chain([unknown.boxed()]));
    let answer = if fields.values().any(has_rule) { Answer::Either } else { Answer::Takes };
    prop_oneof![3 => valid(&schema).prop_map(move |spec| Generated { spec, answer }), 1 => broken]
}

fn lowered(schema: &Value, at_most: &[(&str, i64)]) -> Value {
    let mut schema = schema.clone();
    for (field, most) in at_most {
        schema["properties"][*field]["maximum"] = json!(most);
    }
    schema
}

/// Whether more is asked of a value than can be seen in its schema.
fn has_rule(schema: &Value) -> bool {
    !schema["x-kubernetes-validations"].is_null() || !schema["pattern"].is_null()
}

/// Values that a schema allows, as far as it can be seen without its rules.
pub fn valid(schema: &Value) -> BoxedStrategy<Value> {
    let schema = schema.clone();
    if let Some(values) = schema["enum"].as_array() {
        return select(values.clone()).boxed();
    }
    match schema["type"].as_str() {
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        Some("integer") => {
            let (least, most) = bounds(&schema);
            prop_oneof![Just(least), Just(most), least..=most].prop_map(Value::from).boxed()
        }
        Some("string") if schema["format"] == "date-time" => {
            let recent = (0..60_u8).prop_map(|second| format!("2026-01-01T00:00:{second:02}Z"));
            prop_oneof![8 => recent, 1 => Just("9999-12-31T23:59:59Z".to_owned())]
                .prop_map(Value::from)
                .boxed()
        }
        Some("string") => texts(&schema).prop_map(Value::from).boxed(),
        Some("object") if schema["additionalProperties"].is_object() => {
            let most = usize::try_from(schema["maxProperties"].as_u64().unwrap_or(4)).unwrap_or(4).min(4);
            let names = prop_oneof![select(ODD_TEXTS.to_vec()).prop_map(str::to_owned), "[a-z.]{1,9}"];
            let values = btree_map(names, valid(&schema["additionalProperties"]), 0..=most);
            values.prop_map(|values| values.into_iter().collect::<Map<_, _>>().into()).boxed()
        }
        Some("object") => object(&schema),
        // A number or a percentage.
        _ => prop_oneof![
            (0..=5_i64).prop_map(Value::from),
            (0..=100_u8).prop_map(|percent| format!("{percent}%").into()),
        ]
        .boxed(),
    }
}

/// Objects with any of their optional fields.
fn object(schema: &Value) -> BoxedStrategy<Value> {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let fields = schema["properties"].as_object().cloned().unwrap_or_default();
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, field)| {
            let is_required = required.contains(&json!(name));
            let value = valid(&field).prop_map(move |value| (name.clone(), value));
            if is_required { value.prop_map(Some).boxed() } else { proptest::option::of(value).boxed() }
        })
        .collect();
    fields.prop_map(|fields| fields.into_iter().flatten().collect::<Map<_, _>>().into()).boxed()
}

/// Values that a schema does not allow.
fn refused(schema: &Value) -> BoxedStrategy<Value> {
    let other_type = match schema["type"].as_str() {
        Some("boolean") => json!("true"),
        Some("string") => json!({"not": "a text"}),
        Some(_) => json!("text"),
        None => json!([1]),
    };
    let (least, most) = bounds(schema);
    let mut values = vec![other_type];
    if schema["minimum"].is_number() {
        values.push(json!(least - 1));
    }
    if schema["maximum"].is_number() {
        // The bound may have been lowered here, and not in the cluster.
        values.push(json!(most.max(i64::from(i32::MAX)) + 1));
    }
    if schema["format"] == "int32" {
        values.push(json!(i64::MAX));
    }
    if let Some(longest) = schema["maxLength"].as_u64() {
        values.push("x".repeat(usize::try_from(longest + 1).unwrap_or(64)).into());
    }
    if schema["minLength"].as_u64() > Some(0) {
        values.push(json!(""));
    }
    if let Some(most) = schema["maxProperties"].as_u64() {
        values
            .push((0..=most).map(|number| (format!("k{number}"), json!("v"))).collect::<Map<_, _>>().into());
    }
    if let Some(longest) = schema["additionalProperties"]["maxLength"].as_u64() {
        values.push(json!({"k": "x".repeat(usize::try_from(longest + 1).unwrap_or(64))}));
    }
    if has_rule(schema) {
        values.extend([json!(-1), json!(10_001), json!("101%"), json!("1.5"), json!("")]);
    }
    select(values).boxed()
}

fn bounds(schema: &Value) -> (i64, i64) {
    // The definitions are written with the numbers' fractions.
    let bound =
        |name: &str| schema[name].as_i64().or_else(|| schema[name].as_f64()?.to_string().parse().ok());
    (bound("minimum").unwrap_or(-5), bound("maximum").unwrap_or(i64::from(i32::MAX)))
}

fn texts(schema: &Value) -> impl Strategy<Value = String> + use<> {
    let least = schema["minLength"].as_u64().unwrap_or(0);
    let most = schema["maxLength"].as_u64().unwrap_or(64);
    let fits = move |text: &str| (least..=most).contains(&(text.chars().count() as u64));
    let longest = "x".repeat(usize::try_from(most).unwrap_or(64));
    let odd = ODD_TEXTS.iter().map(|text| (*text).to_owned()).chain([longest, String::new()]);
    let odd: Vec<_> = odd.filter(|text| fits(text)).collect();
    prop_oneof![3 => select(odd), 1 => "[a-z]{1,9}"]
}

#[cfg(test)]
mod tests {
    use proptest::{strategy::ValueTree, test_runner::TestRunner};

    use super::*;

    #[test]
    fn what_is_made_follows_the_schema() {
        let schema = of_spec(include_str!("../../crds/basicdeployments.catena.dev.yaml"));
        let (mut runner, made) = (TestRunner::deterministic(), specs(&schema, &[("replicas", 4)]));
        let made: Vec<_> = (0..1_000).map(|_| made.new_tree(&mut runner).unwrap().current()).collect();
        let of = |answer: Answer| made.iter().filter(move |made| made.answer == answer);
        for Generated { spec, .. } in of(Answer::Takes) {
            assert!(spec["replicas"].as_i64().is_none_or(|count| (0..=4).contains(&count)), "{spec}");
            assert!(spec["template"].as_str().is_none_or(|name| !name.is_empty()), "{spec}");
        }
        let refused: Vec<_> = of(Answer::Refuses).map(|made| &made.spec).collect();
        assert!(refused.iter().any(|spec| spec["replicas"] == -1));
        assert!(refused.iter().any(|spec| spec["progressDeadlineSeconds"] == 0));
        assert!(refused.iter().any(|spec| spec["parameters"].as_object().is_some_and(|all| all.len() > 100)));
    }
}
