//! The content of Events.

use super::*;

#[test]
fn a_missing_target_is_told_and_waited_for() {
    let kind = kind(&json!({}));
    let (reason, message) = told(&kind, &json!({}), missing());
    assert!(reason == "TargetNotFound" && message.contains("as soon as"), "{message}");
    let for_another = json!({"spec": {"target": {"uid": "former"}}});
    let (_, message) = told(&kind, &for_another, missing());
    assert!(message.contains("uid former") && !message.contains("as soon as"), "{message}");
    assert_eq!(told(&kind, &json!({}), Some(Target::NotServed)).0, "KindNotServed");
    let object = Some(TargetObject { uid: UID.into(), is_terminating: true, created: None });
    let terminating = Some(Target::Served { kind: shops(Scope::Namespaced), object });
    assert_eq!(told(&kind, &json!({}), terminating).0, "TargetTerminating");
    let told = decide(&observed(&kind, &json!({}), missing()));
    assert!(
        matches!(told, Action::Tell { look_in: Some(time), .. } if time == Duration::from_secs(60)),
        "{told:?}"
    );
    let elsewhere = json!({"spec": {"target": {"namespace": "there"}}});
    let told = decide(&observed(&kind, &elsewhere, missing()));
    assert!(matches!(told, Action::Tell { look_in: None, .. }), "only the command can change: {told:?}");
}

#[test]
fn what_stands_for_data_outlives_the_kind_of_its_target_without_a_word() {
    let label = kind(&json!({"mode": "Label"}));
    let labelled = json!({"metadata": {"labels": {"catena.dev/target-uid": UID}}});
    assert_eq!(decide(&observed(&label, &labelled, Some(Target::NotServed))), Action::Settle);
    assert_eq!(told(&label, &json!({}), Some(Target::NotServed)).0, "KindNotServed");
}
