//! Filters, refusals and conditions for binding: an expression without a value decides against binding, and is
//! reported.

use super::*;

#[test]
fn ownership_is_refused_where_it_would_do_harm() {
    let by_finalizer = kind(&json!({"refuseFinalizers": ["delete-backup"]}));
    let (reason, message) =
        told(&by_finalizer, &json!({"metadata": {"finalizers": ["delete-backup"]}}), None);
    assert!(reason == "OwnershipRefused" && message.contains("delete-backup"), "{message}");
    assert_eq!(decide(&observed(&by_finalizer, &json!({}), found(UID))), bind());
    let by_rule = kind(
        &json!({"refuse": [{"when": "object.spec.type == 'Restore'", "message": "a restore makes its target"}]}),
    );
    let (reason, message) = told(&by_rule, &json!({"spec": {"type": "Restore"}}), None);
    assert!(reason == "OwnershipRefused" && message.contains("makes its target"), "{message}");
}

fn controlled_by(mut owner: Value) -> Value {
    owner["controller"] = json!(true);
    json!({"metadata": {"ownerReferences": [owner]}})
}

#[test]
fn beside_another_controller_a_command_would_outlive_its_target() {
    let (owning, labelling) = (kind(&json!({})), kind(&json!({"mode": "Label"})));
    let operated = controlled_by(owner("Node", "n", "other"));
    for kind in [&owning, &kind(&json!({"controller": true}))] {
        let (reason, message) = told(kind, &operated, found(UID));
        assert!(reason == "OwnershipRefused" && message.contains("Node n is its controller"), "{message}");
        assert!(message.contains("the garbage collector") && message.contains("mode: Label"), "{message}");
    }
    assert_eq!(decide(&observed(&labelling, &operated, found(UID))), bind());
    let by_its_target = controlled_by(owner("Shop", "a", UID));
    assert_eq!(decide(&observed(&owning, &by_its_target, found(UID))), Action::Settle);
}

#[test]
fn to_observe_is_to_be_advised_a_label_where_ownership_would_do_harm() {
    let observe = kind(&json!({"mode": "Observe"}));
    for (more, named) in [
        (json!({"metadata": {"finalizers": ["x.dev/data"]}}), "the finalizer x.dev/data"),
        (json!({"spec": {"deletionPolicy": "Delete"}}), "spec.deletionPolicy Delete"),
        (controlled_by(owner("Node", "n", "other")), "the Node n is its controller"),
    ] {
        let (reason, message) = told(&observe, &more, found(UID));
        assert!(reason == "WouldBind" && message.contains(named), "{reason}: {message}");
        assert!(message.contains("set mode: Label") && !message.contains("mode: Owner"), "{message}");
    }
    let retained = json!({"spec": {"deletionPolicy": "Retain"}});
    assert!(told(&observe, &retained, found(UID)).1.contains("set mode: Owner"));
}

#[test]
fn a_command_that_was_bound_before_is_told_how_to_keep_it() {
    let by_finalizer = kind(&json!({"refuseFinalizers": ["delete-backup"]}));
    let bound = json!({"metadata": {
        "finalizers": ["delete-backup"], "annotations": {"catena.dev/bound-to": UID},
        "ownerReferences": [owner("Shop", "a", UID)],
    }});
    let (reason, message) = told(&by_finalizer, &bound, None);
    assert!(reason == "OwnershipRefused" && message.contains("remove that owner reference"), "{message}");
    let copied = json!({"metadata": {
        "finalizers": ["delete-backup"], "annotations": {"catena.dev/bound-to": UID},
    }});
    assert!(told(&by_finalizer, &copied, None).1.contains("mode: Label"));
}

/// A definition that cannot be read holds up no command, and its report is made up for.
#[test]
fn without_a_place_for_its_report_a_command_is_bound_and_looked_at_again() {
    let mut unknown = observed(&kind(&json!({"reportsBound": true})), &json!({}), found(UID));
    unknown.can_report = None;
    assert_eq!(decide(&unknown), bind());
    unknown.target = missing();
    assert_eq!(decide(&unknown), Action::Wait(UNKNOWN_INTERVAL));
}

#[test]
fn objects_that_the_filter_passes_over_are_no_commands() {
    let filtered = kind(&json!({"filter": "object.spec.type == 'Command'"}));
    let another = json!({"spec": {"type": "Note"}});
    assert_eq!(decide(&observed(&filtered, &another, None)), Action::Settle);
    let command = json!({"spec": {"type": "Command"}});
    assert_eq!(decide(&observed(&filtered, &command, found(UID))), bind());
}

#[test]
fn a_rule_that_reads_a_missing_field_binds_nothing_and_says_which_field() {
    for (rule, reason) in [
        (json!({"filter": "!(object.spec.skip == 'true')"}), "FilterFailed"),
        (json!({"filter": "object.metadata.annotations['skip'] != 'true'"}), "FilterFailed"),
        (
            json!({"refuse": [{"when": "object.spec.skip != 'Retain'", "message": "it deletes"}]}),
            "OwnershipRefused",
        ),
        (
            json!({"refuse": [{"when": "object.spec.skip == 'Delete'", "message": "it deletes"}]}),
            "OwnershipRefused",
        ),
        (json!({"after": "object.spec.skip == 'true'"}), "WaitingForOthers"),
    ] {
        let (said, message) = told(&kind(&rule), &json!({"metadata": {"annotations": {}}}), found(UID));
        assert_eq!(said, reason, "{rule}: {message}");
        assert!(message.contains("the field skip is missing") && message.contains("has(…)"), "{message}");
    }
}

#[test]
fn a_rule_that_guards_its_fields_has_a_value_also_without_them() {
    let filtered = kind(&json!({"filter": "!has(object.spec.skip) || object.spec.skip != 'true'"}));
    assert_eq!(decide(&observed(&filtered, &json!({}), found(UID))), bind());
    let refusing =
        json!([{"when": "object.spec.?policy.orValue('Delete') != 'Retain'", "message": "it deletes"}]);
    let refusing = kind(&json!({"refuse": refusing}));
    assert_eq!(
        told(&refusing, &json!({}), found(UID)),
        told(&refusing, &json!({"spec": {"policy": "Delete"}}), None)
    );
    assert_eq!(decide(&observed(&refusing, &json!({"spec": {"policy": "Retain"}}), found(UID))), bind());
}

#[test]
fn a_rule_that_is_no_yes_or_no_decides_against_binding() {
    for (rule, reason) in [
        (json!({"filter": "object.spec.flag"}), "FilterFailed"),
        (json!({"refuse": [{"when": "object.spec.flag", "message": "no"}]}), "OwnershipRefused"),
    ] {
        let more = json!({"spec": {"flag": "true"}});
        assert_eq!(told(&kind(&rule), &more, found(UID)).0, reason, "{rule}");
    }
}

#[test]
fn a_rule_without_a_value_says_nothing_of_what_is_bound_already() {
    let bound = json!({"metadata": {
        "ownerReferences": [owner("Shop", "a", UID)], "annotations": {"catena.dev/bound-to": UID},
    }});
    for rule in [
        json!({"filter": "object.spec.skip != 'true'"}),
        json!({"refuse": [{"when": "object.spec.skip == 'true'", "message": "no"}]}),
        json!({"after": "object.spec.skip == 'true'"}),
        // It was true when it was bound.
        json!({"after": "false"}),
    ] {
        let kind = kind(&rule);
        assert_eq!(decide(&observed(&kind, &bound, None)), Action::Settle, "{rule}");
        let only_recorded = json!({"metadata": {"annotations": {"catena.dev/bound-to": UID}}});
        assert_ne!(decide(&observed(&kind, &only_recorded, found(UID))), Action::Settle, "{rule}");
    }
}
