use std::collections::BTreeMap;

use serde_json::Value;

use super::*;
use crate::{
    backup::{Verdict, judge},
    fixtures::ended,
};

/// Otherwise, the namespace of every object would have to be looked up, and the chart grants no right to do so.
#[test]
fn a_selector_of_all_namespaces_is_none() {
    let settings = |selector: &str| -> Settings {
        let text = format!(
            "kinds: {{a: {{apiVersion: v1, kind: A, resource: as, backup: b, namespaceSelector: {selector}}}}}
backups: {{b: {{apiVersion: v1, kind: B, resource: bs, template: x, succeeded: 'true'}}}}"
        );
        serde_saphyr::from_str(&text).unwrap()
    };
    for all in ["{}", "{matchLabels: {}}"] {
        assert!(settings(all).kinds["a"].namespaces.is_none(), "{all}");
    }
    assert!(settings("{matchLabels: {a: b}}").kinds["a"].namespaces.is_some());
}

fn with_template(template: &str) -> Settings {
    let settings = serde_json::json!({
        "kinds": {"a": {"apiVersion": "v1", "kind": "A", "resource": "as", "backup": "b"}},
        "backups": {"b": {
            "apiVersion": "v1", "kind": "B", "resource": "bs", "template": template, "succeeded": "true",
        }},
    });
    serde_json::from_value(settings).unwrap()
}

#[test]
fn a_template_that_gives_its_backup_an_owner_is_refused() {
    let template =
        |more: &str| format!("{{apiVersion: v1, kind: B, metadata: {{name: {{{{ suffix }}}}, {more}}}}}");
    let owner = "ownerReferences: [{apiVersion: v1, kind: A, name: {{ name }}, uid: {{ uid }}}]";
    let problems = with_template(&template(owner)).validate().unwrap_err();
    assert!(matches!(&*problems, [problem] if problem.contains("backups.b.template")), "{problems:?}");
    assert_eq!(with_template(&template("ownerReferences: []")).validate(), Ok(()));
}

#[test]
fn another_entry_backup_or_template_is_another_policy_and_another_version_is_not() {
    let policy = |id: &str, name: &str, version: &str, template: &str| {
        let settings = serde_json::json!({
            "kinds": {id: {"apiVersion": "v1", "kind": "A", "resource": "as", "backup": name}},
            "backups": {name: {
                "apiVersion": version, "kind": "B", "resource": "bs", "template": template, "succeeded": "true",
            }},
        });
        serde_json::from_value::<Settings>(settings).unwrap().kinds[id].policy.clone()
    };
    let one = policy("a", "b", "x.dev/v1", "t");
    assert_eq!(policy("a", "b", "x.dev/v2", "t"), one);
    for other in [
        policy("c", "b", "x.dev/v1", "t"),
        policy("a", "c", "x.dev/v1", "t"),
        policy("a", "b", "y.dev/v1", "t"),
        policy("a", "b", "x.dev/v1", "u"),
    ] {
        assert_ne!(other, one);
    }
}

#[test]
fn what_the_selectors_of_other_entries_selected_is_not_judged() {
    let settings = |kinds: &str| -> Settings {
        let backups = "backups: {b: {apiVersion: v1, kind: B, resource: bs, template: x, succeeded: 'true'}}";
        serde_saphyr::from_str(&format!("kinds: {{{kinds}}}\n{backups}")).unwrap()
    };
    let entry = |id: &str, more: &str| {
        format!(
            "{id}: {{apiVersion: v1, kind: A, resource: as, backup: b, selector: {{matchLabels: {{x: y}}}}, {more}}}"
        )
    };
    let former = settings(&entry("former", ""));
    let selected_by = former.by_resource["as"].fingerprint();
    assert!(former.entries("as", selected_by).is_some());
    // The object belongs to `present` now, which its row does not show yet.
    let moved = settings(&format!("{}, {}", entry("former", "protect: false"), entry("present", "")));
    assert!(moved.entries("as", selected_by).is_none());
    // With the same selectors, other changes of the entries take effect at once.
    assert!(settings(&entry("former", "protect: false")).entries("as", selected_by).is_some());
}

/// Helm merges the entries of one name, so that one example would change what another protects.
#[test]
fn the_examples_can_be_combined() {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/backups");
    let mut owners = BTreeMap::new();
    for file in std::fs::read_dir(examples).unwrap() {
        let path = file.unwrap().path();
        let values: Value = serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for (section, entries) in values.as_object().unwrap() {
            for name in entries.as_object().unwrap().keys() {
                let other = owners.insert(format!("{section}.{name}"), path.clone());
                assert_eq!(other, None, "{section}.{name} is in {}, too", path.display());
            }
        }
    }
    assert!(owners.len() >= 10, "{owners:?}");
}

/// With `onFailure: Release`, a Job that tries again would count as failed while it still may succeed.
#[test]
fn an_expression_that_counts_the_pods_of_a_job_is_warned_about() {
    let warned = |kind: &str, succeeded: &str, failed: &str| {
        let settings = serde_json::json!({
            "kinds": {"a": {"apiVersion": "v1", "kind": "A", "resource": "as", "backup": "b"}},
            "backups": {"b": {
                "apiVersion": "batch/v1", "kind": kind, "resource": "bs", "succeeded": succeeded, "failed": failed,
                "template": format!("{{apiVersion: batch/v1, kind: {kind}, metadata: {{name: {{{{ suffix }}}}}}}}"),
            }},
        });
        serde_json::from_value::<Settings>(settings).unwrap().warnings()
    };
    let complete = "object.status.conditions.exists(c, c.type == 'Complete' && c.status == 'True')";
    for count in
        ["object.status.failed == 1", "object.?status.?failed.orValue(0) > 0", "object.status.`failed` == 1"]
    {
        let warnings = warned("Job", complete, count);
        assert!(
            matches!(&*warnings, [one] if one.starts_with("backups.b.failed: it counts")),
            "{warnings:?}"
        );
        assert!(warned("CronJob", complete, count).is_empty());
    }
    assert_eq!(warned("Job", "object.status.succeeded == 1", "object.status.failed == 1").len(), 2);
    assert!(warned("Job", complete, "false").is_empty());
}

#[test]
fn the_job_of_the_page_has_ended_only_with_its_last_pod() {
    let page = include_str!("../../../../docs/protect-a-kind.md");
    let block = page.split("```").find(|block| block.starts_with("yaml\nkinds:\n  databases:")).unwrap();
    let settings: Settings = serde_saphyr::from_str(block.trim_start_matches("yaml\n")).unwrap();
    assert_eq!(settings.validate(), Ok(()));
    let verdict = |status: Value| {
        judge(&settings.kinds["databases"].backup, &serde_json::json!({"status": status}), &Value::Null)
    };
    for status in [
        serde_json::json!({"failed": 1, "active": 1}),
        serde_json::json!({"failed": 1, "succeeded": 1, "active": 1}),
    ] {
        assert_eq!(verdict(status.clone()), Verdict::Running(None), "{status}");
    }
    assert_eq!(verdict(ended("Complete")), Verdict::Succeeded);
    assert_eq!(verdict(ended("Failed")), Verdict::Failed);
}
