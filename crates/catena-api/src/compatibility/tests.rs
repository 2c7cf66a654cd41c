//! One row for each rule and for each harmless change.

use serde_json::{Value, json};

use super::{
    Rule::{self, *},
    changes, policy,
};

/// A version with `fields` in its spec.
fn version(name: &str, fields: &Value) -> Value {
    let spec = json!({"type": "object", "properties": fields});
    json!({
        "name": name, "served": true, "storage": name == "v1",
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    })
}

fn definition(versions: &[Value]) -> Value {
    json!({"spec": {
        "group": "x.dev", "scope": "Namespaced",
        "names": {"kind": "Thing", "plural": "things"},
        "versions": versions,
    }})
}

/// The paths and rules that a change of `spec.it` breaks.
fn broken(before: &Value, after: &Value) -> Vec<(String, Rule)> {
    let with = |field: &Value| {
        let fields = if field.is_null() { json!({}) } else { json!({"it": field}) };
        definition(&[version("v1", &fields)])
    };
    let found = changes(&with(before), &with(after));
    assert!(found.iter().all(|finding| finding.version == "v1"), "{found:?}");
    found.into_iter().map(|finding| (finding.path, finding.rule)).collect()
}

/// Fails with all rows that are not as expected.
fn each_is_as_expected<'r>(rows: impl IntoIterator<Item = (Value, Value, &'r [(&'r str, Rule)])>) {
    let wrong = |(before, after, expected): (Value, Value, &[(&str, Rule)])| {
        let found = broken(&before, &after);
        let is_right = found.iter().map(|(path, rule)| (path.as_str(), *rule)).eq(expected.iter().copied());
        (!is_right).then(|| format!("{before} → {after}: expected {expected:?}, found {found:?}"))
    };
    let wrong: Vec<_> = rows.into_iter().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn object(fields: &Value) -> Value {
    json!({"type": "object", "properties": fields})
}

#[test]
fn a_field_that_is_dropped_or_takes_fewer_types_is_found_at_its_path() {
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    each_is_as_expected([
        (text.clone(), Value::Null, &[("spec.it", FieldRemoved)] as &[_]),
        (object(&json!({"a.b": text})), object(&json!({})), &[("spec.it['a.b']", FieldRemoved)]),
        (
            json!({"type": "array", "items": object(&json!({"a": text}))}),
            json!({"type": "array", "items": object(&json!({}))}),
            &[("spec.it[].a", FieldRemoved)],
        ),
        (
            json!({"type": "object", "additionalProperties": object(&json!({"a": text}))}),
            json!({"type": "object", "additionalProperties": object(&json!({}))}),
            &[("spec.it.*.a", FieldRemoved)],
        ),
        (
            json!({"type": "object", "additionalProperties": true}),
            json!({"type": "object", "additionalProperties": true,
                "x-kubernetes-validations": [{"rule": "!has(self.a) || self.a == 'b'"}]}),
            &[("spec.it", ValidationAdded)],
        ),
        (
            json!({"type": "object", "additionalProperties": text}),
            object(&json!({"a": text})),
            &[("spec.it.*", FieldRemoved)],
        ),
        (open.clone(), object(&json!({})), &[("spec.it", UnknownFieldsDropped)]),
        (
            json!({"type": "object", "additionalProperties": true}),
            object(&json!({})),
            &[("spec.it", UnknownFieldsDropped)],
        ),
        (text.clone(), number.clone(), &[("spec.it", TypeNarrowed)]),
        (json!({"type": "number"}), number.clone(), &[("spec.it", TypeNarrowed)]),
        (json!({"x-kubernetes-int-or-string": true}), number.clone(), &[("spec.it", TypeNarrowed)]),
        (json!({"type": "string", "nullable": true}), text.clone(), &[("spec.it", TypeNarrowed)]),
        (
            open.clone(),
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-embedded-resource": true}),
            &[("spec.it", TypeNarrowed)],
        ),
        (
            json!({"type": "integer", "format": "int64"}),
            json!({"type": "integer", "format": "int32"}),
            &[("spec.it", FormatNarrowed)],
        ),
        (text.clone(), json!({"type": "string", "format": "date-time"}), &[("spec.it", FormatNarrowed)]),
    ]);
}

#[test]
fn a_field_that_takes_fewer_values_is_found_at_its_path() {
    let text = json!({"type": "string"});
    each_is_as_expected([
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            json!({"type": "string", "enum": ["b", "c"]}),
            &[("spec.it", EnumNarrowed)] as &[_],
        ),
        (text.clone(), json!({"type": "string", "enum": ["a"]}), &[("spec.it", EnumNarrowed)]),
        (
            json!({"type": "integer", "minimum": 1}),
            json!({"type": "integer", "minimum": 2}),
            &[("spec.it", BoundTightened)],
        ),
        (
            json!({"type": "integer", "minimum": 1}),
            json!({"type": "integer", "minimum": 1.0, "exclusiveMinimum": true}),
            &[("spec.it", BoundTightened)],
        ),
        (
            json!({"type": "integer", "maximum": 9}),
            json!({"type": "integer", "maximum": 8}),
            &[("spec.it", BoundTightened)],
        ),
        (text.clone(), json!({"type": "string", "minLength": 1}), &[("spec.it", BoundTightened)]),
        (
            json!({"type": "string", "maxLength": 9}),
            json!({"type": "string", "maxLength": 8}),
            &[("spec.it", BoundTightened)],
        ),
        (
            json!({"type": "array", "items": text}),
            json!({"type": "array", "items": text, "maxItems": 9}),
            &[("spec.it", BoundTightened)],
        ),
        (
            json!({"type": "object", "minProperties": 1}),
            json!({"type": "object", "minProperties": 2}),
            &[("spec.it", BoundTightened)],
        ),
        (
            json!({"type": "integer", "multipleOf": 4}),
            json!({"type": "integer", "multipleOf": 3}),
            &[("spec.it", BoundTightened)],
        ),
        (
            json!({"type": "string", "pattern": "a"}),
            json!({"type": "string", "pattern": "b"}),
            &[("spec.it", PatternChanged)],
        ),
    ]);
}

#[test]
fn a_field_that_is_validated_merged_or_filled_in_otherwise_is_found_at_its_path() {
    let text = json!({"type": "string"});
    let list =
        |items: &Value, kind: &str| json!({"type": "array", "items": items, "x-kubernetes-list-type": kind});
    let keyed = |keys: &Value| {
        json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": keys})
    };
    let rule = |rule: &str| json!({"type": "string", "x-kubernetes-validations": [{"rule": rule}]});
    let guarded = |field: &str, rule: &str| {
        json!({"type": "object", "properties": {field: {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": rule}]})
    };
    each_is_as_expected([
        (rule("a"), rule("b"), &[("spec.it", ValidationAdded)] as &[_]),
        (guarded("b", ""), guarded("b", "!has(self.a) || self.a > 0"), &[]),
        (guarded("a", ""), guarded("a", "!has(self.a) || self.a > 0"), &[("spec.it", ValidationAdded)]),
        (
            guarded("b", ""),
            guarded("b", "!has(self.a) || true ? false : true"),
            &[("spec.it", ValidationAdded)],
        ),
        (guarded("b", ""), guarded("b", "!has(self.a.b) || self.a.b"), &[("spec.it", ValidationAdded)]),
        (
            json!({"type": "object", "additionalProperties": text}),
            json!({"type": "object", "additionalProperties": text,
                "x-kubernetes-validations": [{"rule": "!has(self.a) || self.a == 'b'"}]}),
            &[("spec.it", ValidationAdded)],
        ),
        (
            text.clone(),
            json!({"type": "string", "oneOf": [{"pattern": "a"}]}),
            &[("spec.it", ValidationAdded)],
        ),
        (
            object(&json!({"a": text})),
            json!({"type": "object", "properties": {"a": text}, "required": ["a"]}),
            &[("spec.it.a", FieldRequired)],
        ),
        (
            object(&json!({})),
            json!({"type": "object", "properties": {"a": text}, "required": ["a"]}),
            &[("spec.it.a", FieldRequired)],
        ),
        (list(&text, "atomic"), list(&text, "set"), &[("spec.it", ListTypeChanged)]),
        (
            object(&json!({})),
            json!({"type": "object", "x-kubernetes-map-type": "atomic"}),
            &[("spec.it", ListTypeChanged)],
        ),
        (keyed(&json!(["a"])), keyed(&json!(["a", "b"])), &[("spec.it", ListTypeChanged)]),
        (
            json!({"type": "string", "default": "a"}),
            json!({"type": "string", "default": "b"}),
            &[("spec.it", DefaultChanged)],
        ),
        (text.clone(), json!({"type": "string", "default": "a"}), &[("spec.it", DefaultChanged)]),
        (json!({"type": "string", "default": "a"}), text, &[("spec.it", DefaultChanged)]),
    ]);
}

#[test]
fn a_change_after_which_every_object_is_valid_and_complete_is_no_finding() {
    let text = json!({"type": "string"});
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    each_is_as_expected(
        [
            (Value::Null, json!({"type": "string", "default": "a", "pattern": "a", "enum": ["a"]})),
            (text.clone(), json!({"type": "string", "description": "Another one."})),
            (json!({"type": "integer"}), json!({"type": "number"})),
            (text.clone(), json!({"x-kubernetes-int-or-string": true})),
            (text.clone(), json!({"type": "string", "nullable": true})),
            (json!({"type": "integer", "format": "int32"}), json!({"type": "integer", "format": "int64"})),
            (json!({"type": "string", "format": "date-time"}), text.clone()),
            (json!({"type": "string", "enum": ["a"]}), json!({"type": "string", "enum": ["b", "a"]})),
            (json!({"type": "string", "enum": ["a"]}), text.clone()),
            (
                json!({"type": "integer", "minimum": 2, "maximum": 8}),
                json!({"type": "integer", "minimum": 1, "maximum": 9.0, "exclusiveMinimum": true}),
            ),
            (json!({"type": "string", "minLength": 2, "maxLength": 8}), text.clone()),
            (json!({"type": "integer", "multipleOf": 4}), json!({"type": "integer", "multipleOf": 2})),
            (json!({"type": "string", "pattern": "a"}), text.clone()),
            (
                json!({"type": "object", "properties": {"a": text}, "required": ["a"]}),
                object(&json!({"a": text})),
            ),
            (
                object(&json!({})),
                json!({"type": "object", "properties": {"a": {"type": "string", "default": ""}}, "required": ["a"]}),
            ),
            (object(&json!({"a": text})), open.clone()),
            (object(&json!({"a": text})), json!({"type": "object", "additionalProperties": text})),
            (open.clone(), json!({"x-kubernetes-preserve-unknown-fields": true})),
        ]
        .map(|(before, after)| (before, after, &[] as &[_])),
    );
}

#[test]
fn the_default_of_a_status_may_change_because_it_stands_only_until_the_first_report() {
    let with = |status: &Value, note: &str| {
        let mut version = version("v1", &json!({}));
        let fields = json!({"ready": {"type": "boolean", "default": status["ready"]}});
        let schema = json!({"type": "object", "default": status, "properties": fields});
        version["schema"]["openAPIV3Schema"]["properties"]["status"] = schema;
        let note = json!({"type": "string", "default": note});
        version["schema"]["openAPIV3Schema"]["properties"]["statusNote"] = note;
        definition(&[version])
    };
    let former = with(&json!({"ready": false}), "a");
    assert_eq!(changes(&former, &with(&json!({"ready": true}), "a")), []);
    let found = changes(&former, &with(&json!({"ready": true}), "b"));
    assert_eq!(found.iter().map(|finding| &*finding.path).collect::<Vec<_>>(), ["statusNote"]);
}

#[test]
fn a_field_that_goes_while_one_of_the_same_shape_comes_is_told_to_be_renamed() {
    let with = |name: &str| {
        let field = json!({"type": "integer", "description": name});
        definition(&[version("v1", &json!({name: field}))])
    };
    let [finding] = &changes(&with("size"), &with("replicas"))[..] else { panic!("it is one change") };
    assert_eq!(
        finding.to_string(),
        "v1 spec.size: the field is removed, or renamed to replicas: its values are dropped"
    );
}

/// The rules that a change of the whole definition breaks, by the part that it changes.
fn broken_as_a_whole(before: &Value, place: &str, value: Value) -> Vec<Rule> {
    let mut after = before.clone();
    *after.pointer_mut(place).unwrap_or_else(|| panic!("{place} is missing")) = value;
    changes(before, &after).into_iter().map(|finding| finding.rule).collect()
}

#[test]
fn each_change_of_a_definition_that_breaks_its_users_is_found() {
    let mut before = definition(&[version("v1", &json!({})), version("v2", &json!({}))]);
    before["spec"]["conversion"] = json!({"strategy": "None"});
    before["spec"]["preserveUnknownFields"] = json!(true);
    before["spec"]["versions"][0]["subresources"] = json!({"status": {}, "scale": {}});
    let mut deprecated = before.clone();
    deprecated["spec"]["versions"][1]["deprecated"] = json!(true);
    let v1 = before["spec"]["versions"][0].clone();
    let rows = [
        (&before, "/spec/group", json!("y.dev"), vec![KindChanged]),
        (&before, "/spec/scope", json!("Cluster"), vec![KindChanged]),
        (&before, "/spec/names/kind", json!("Other"), vec![KindChanged]),
        (&before, "/spec/names/plural", json!("others"), vec![KindChanged]),
        (&before, "/spec/conversion/strategy", json!("Webhook"), vec![ConversionChanged]),
        (&before, "/spec/preserveUnknownFields", json!(false), vec![UnknownFieldsDropped]),
        (&before, "/spec/versions/0/subresources", json!({"status": {}}), vec![SubresourceRemoved]),
        (&before, "/spec/versions/0/subresources", json!({"scale": {}}), vec![SubresourceRemoved]),
        (&before, "/spec/versions", json!([v1]), vec![ServedVersionRemoved]),
        (&before, "/spec/versions/1/served", json!(false), vec![ServedVersionRemoved]),
        (&deprecated, "/spec/versions", json!([v1]), vec![DeprecatedVersionRemoved]),
        (&deprecated, "/spec/versions/1/served", json!(false), vec![DeprecatedVersionRemoved]),
        (&before, "/spec/versions/0/name", json!("v3"), vec![ServedVersionRemoved, StorageVersionRemoved]),
        (&before, "/spec/versions/1/storage", json!(true), vec![]),
    ];
    let wrong: Vec<_> = rows
        .into_iter()
        .filter_map(|(before, place, value, expected)| {
            let found = broken_as_a_whole(before, place, value);
            (found != expected).then(|| format!("{place}: expected {expected:?}, found {found:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_field_that_the_next_storage_version_lacks_is_dropped_when_objects_are_read_in_it() {
    let text = json!({"type": "string"});
    let stored = |in_v2: bool| {
        let mut versions = [version("v1", &json!({"it": text})), version("v2", &json!({}))];
        versions[0]["storage"] = json!(!in_v2);
        versions[1]["storage"] = json!(in_v2);
        definition(&versions)
    };
    let [finding] = &changes(&stored(false), &stored(true))[..] else { panic!("it is one change") };
    assert_eq!((&*finding.version, &*finding.path, finding.rule), ("v2", "spec.it", FieldRemoved));
    assert_eq!(changes(&stored(true), &stored(true)), []);
}

#[test]
fn versions_of_one_definition_have_the_same_fields() {
    let text = json!({"type": "string"});
    let found = |first: Value, second: Value| -> Vec<_> {
        let found = policy(&definition(&[version("v1", &first), version("v2", &second)])).into_iter();
        found.map(|finding| (finding.version, finding.path, finding.rule)).collect()
    };
    let differ = |version: &str, path: &str| (version.to_owned(), path.to_owned(), VersionsDiffer);
    let list = |fields: &Value| json!({"it": {"type": "array", "items": object(fields)}});
    let map = |fields: &Value| json!({"it": {"type": "object", "additionalProperties": object(fields)}});
    assert_eq!(found(json!({"it": text}), json!({"it": text})), []);
    assert_eq!(found(json!({"it": text}), json!({})), [differ("v1", "spec.it")]);
    assert_eq!(found(json!({}), json!({"it": text})), [differ("v2", "spec.it")]);
    assert_eq!(found(list(&json!({"a": text})), list(&json!({}))), [differ("v1", "spec.it[].a")]);
    assert_eq!(found(map(&json!({"a": text})), map(&json!({}))), [differ("v1", "spec.it.*.a")]);
    assert_eq!(found(map(&json!({})), json!({"it": {"type": "object"}})), [differ("v1", "spec.it.*")]);
    assert_eq!(found(list(&json!({})), json!({"it": text})), [differ("v1", "spec.it[]")]);
    let open = json!({"it": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    assert_eq!(found(open, json!({"it": object(&json!({"a": text}))})), [differ("v1", "spec.it")]);
}

#[test]
fn a_definition_is_converted_without_a_webhook_and_explains_its_deprecations() {
    let mut sound = definition(&[version("v1", &json!({}))]);
    sound["spec"]["versions"][0]["deprecated"] = json!(true);
    sound["spec"]["versions"][0]["deprecationWarning"] = json!("use v2");
    assert_eq!(policy(&sound), []);
    let mut bad = sound.clone();
    bad["spec"]["conversion"] = json!({"strategy": "Webhook"});
    bad["spec"]["versions"][0]["deprecationWarning"] = json!("");
    let rules: Vec<_> = policy(&bad).into_iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, [ConversionByWebhook, DeprecationUnexplained]);
}

#[test]
fn our_own_definitions_keep_the_policy() {
    for crd in crate::crds() {
        let definition = serde_json::to_value(&crd).unwrap();
        assert_eq!(policy(&definition), []);
        assert_eq!(changes(&definition, &definition), []);
    }
}
