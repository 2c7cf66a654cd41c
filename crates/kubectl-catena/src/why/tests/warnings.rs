//! Events explain an object whose status does not.

use serde_json::json;

use super::{
    WEB,
    scene::{THEN, ask, calm, condition, deployment, explained, object},
};
use crate::why::facts::{Surroundings, Warning};

fn warned(about: &str, warnings: &[(&str, &str)]) -> Surroundings {
    let warning = |(reason, message): &(&str, &str)| Warning {
        about: about.to_owned(),
        by: "quota-operator".to_owned(),
        reason: (*reason).to_owned(),
        message: (*message).to_owned(),
        at: THEN.parse().ok(),
    };
    Surroundings { warnings: warnings.iter().map(warning).collect(), ..calm() }
}

#[test]
fn an_unreported_object_is_shown_with_its_newest_warnings() {
    let surroundings = warned(
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
    let cause = ask(WEB, &[deployment(pending)], &surroundings).root_cause.unwrap();
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
fn a_message_of_the_status_is_not_repeated() {
    let behind = deployment(json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}}));
    insta::assert_snapshot!(explained(WEB, &[behind], &warned(WEB, &[("Denied", "no room")])));
}

#[test]
fn an_object_without_a_status_is_shown_with_its_warnings() {
    let map = object("v1", "ConfigMap", "settings", None, json!({}));
    let surroundings = warned("ConfigMap/settings", &[("InvalidSettings", "the key colour is missing")]);
    insta::assert_snapshot!(explained("ConfigMap/settings", &[map], &surroundings), @r"
    ConfigMap/settings exists; its kind does not report whether it is ready.

    Note: Warning InvalidSettings (quota-operator, 3m ago): the key colour is missing.
    ");
}
