//! Commands of foreign kinds, by command-binder's rules.

use serde_json::json;

use super::scene::*;
use crate::why::facts::{Binding, Surroundings};

#[test]
fn a_foreign_command_is_explained_by_the_binders_rules_when_its_events_are_gone() {
    let command = object("shoes.dev/v1", "Polish", "p1", None, json!({"spec": {"shoes": "red"}}));
    let mut surroundings = calm();
    assert!(ask("Polish/p1", std::slice::from_ref(&command), &surroundings).well);
    surroundings.binding = Some(Binding::Obstacle(command_binder::verdict::Verdict {
        is_bound: false,
        reason: "FilterFailed",
        message: "whether it is a command is not known: the field type is missing".into(),
        may_pass: false,
    }));
    let answer = ask("Polish/p1", &[command], &surroundings);
    let cause = answer.root_cause.unwrap();
    assert_eq!(
        (&*cause.reason, &*cause.meaning),
        ("FilterFailed", "may be a command, but the filter of its kind failed")
    );
    assert!(
        cause.message.contains("the field type is missing") && cause.advice.contains("filter"),
        "{cause:?}"
    );
}

#[test]
fn a_foreign_command_that_is_bound_is_told_apart_from_one_that_nobody_binds() {
    let commands = [object("shoes.dev/v1", "Polish", "p1", None, json!({"spec": {"shoes": "red"}}))];
    let bound = Surroundings { binding: Some(Binding::Bound), ..calm() };
    let answer = ask("Polish/p1", &commands, &bound);
    assert!(answer.well && answer.sentence.contains("is bound to its target"), "{}", answer.sentence);
    // As when its kind may not be watched.
    let due = Surroundings { binding: Some(Binding::Due), ..calm() };
    let cause = ask("Polish/p1", &commands, &due).root_cause.unwrap();
    assert!(cause.reason == "BinderSilent" && cause.advice.contains("may watch"), "{cause:?}");
    let due = Surroundings { binding: Some(Binding::Due), ..without("command-binder") };
    assert_eq!(ask("Polish/p1", &commands, &due).root_cause.unwrap().reason, "ControllerNotRunning");
}
