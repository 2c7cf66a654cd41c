//! Events are told where a status says nothing.

use serde_json::json;

use super::{
    WEB,
    scene::{THEN, around, ask, condition, deployment, object, told},
};
use crate::why::facts::{Around, Warning};

fn warned(about: &str, warnings: &[(&str, &str)]) -> Around {
    let warning = |(reason, message): &(&str, &str)| Warning {
        about: about.to_owned(),
        by: "quota-operator".to_owned(),
        reason: (*reason).to_owned(),
        message: (*message).to_owned(),
        at: THEN.parse().ok(),
    };
    Around { warnings: warnings.iter().map(warning).collect(), ..around() }
}

#[test]
fn what_nobody_has_reported_on_is_told_with_its_newest_warnings() {
    let around = warned(
        WEB,
        &[
            ("Old", "before"),
            ("Denied", "first"),
            ("Slow", "for long"),
            ("Failed", "not yet"),
            ("Denied", "again"),
        ],
    );
    let pending = json!({"status": {"conditions": [condition("Ready", "Unknown", "Pending", "")]}});
    let cause = ask(WEB, &[deployment(pending)], &around).root_cause.unwrap();
    assert_eq!(cause.reason, "NotObserved");
    let lines: Vec<_> = cause.message.lines().collect();
    assert_eq!(
        lines,
        [
            "Warning Denied (quota-operator, 3m ago): again",
            "Warning Failed (quota-operator, 3m ago): not yet",
            "Warning Slow (quota-operator, 3m ago): for long",
        ]
    );
}

#[test]
fn what_a_status_said_before_is_not_told_twice() {
    let behind = deployment(json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}}));
    insta::assert_snapshot!(told(WEB, &[behind], &warned(WEB, &[("Denied", "no room")])));
}

#[test]
fn what_cannot_tell_how_it_is_is_told_with_its_warnings() {
    let map = object("v1", "ConfigMap", "settings", None, json!({}));
    let around = warned("ConfigMap/settings", &[("InvalidSettings", "the key colour is missing")]);
    insta::assert_snapshot!(told("ConfigMap/settings", &[map], &around), @r"
    ConfigMap/settings is there; its kind does not tell whether it is ready.

    Note: Warning InvalidSettings (quota-operator, 3m ago): the key colour is missing.
    ");
}
