//! Each rendering has a revision before the child is changed to it, and a rollback holds one of them.

use super::*;

fn rejecting(mut revision: Arc<Revision>, hash: &str, command: &str) -> Arc<Revision> {
    Arc::make_mut(&mut revision).rejects = Rejects { hash: Some(hash.into()), command: Some(command.into()) };
    revision
}

fn marked(hash: &str, marks: Value) -> Arc<Child> {
    let mut annotations = marks;
    annotations[keys::HASH] = hash.into();
    child(json!({"metadata": {"annotations": annotations}}))
}

fn pruned(action: Action) -> Vec<i64> {
    match action {
        Action::Prune(revisions) => revisions.iter().map(|revision| revision.number).collect(),
        action => panic!("{action:?}"),
    }
}

#[test]
fn a_rendering_is_stored_before_the_child_is_created_or_changed() {
    let mut first = observed(Found::Nothing);
    first.revisions.clear();
    assert_eq!(decide(&first), Action::Record { rendered: rendered(NEW), number: 1 });
    let mut changed = ours(json!({"metadata": {"annotations": {keys::HASH: "old"}}}));
    changed.revisions = vec![revision(4, "old")];
    assert_eq!(decide(&changed), Action::Record { rendered: rendered(NEW), number: 5 });
}

#[test]
fn a_rendering_that_comes_back_gets_a_new_number_and_no_second_revision() {
    let mut observed = ours(json!({"metadata": {"annotations": {keys::HASH: "old"}}}));
    observed.revisions = vec![revision(1, NEW), revision(2, "old")];
    let Action::Renumber { revision, number, rejects } = decide(&observed) else { panic!() };
    assert_eq!((revision.hash.as_str(), number, rejects), (NEW, 3, Rejects::default()));
}

#[test]
fn what_is_paused_or_not_ours_is_not_stored() {
    let mut paused = ours(json!({"metadata": {"annotations": {keys::HASH: "old"}}}));
    paused.revisions.clear();
    spec(&mut paused).paused = true;
    assert!(matches!(decide(&paused), Action::WriteStatus(_)));
    let mut foreign = observed(Found::Foreign(child(json!({}))));
    foreign.revisions.clear();
    assert!(matches!(decide(&foreign), Action::Refuse(_)));
}

#[test]
fn the_status_tells_the_number_of_the_live_revision() {
    let mut observed = ours(json!({}));
    observed.revisions = vec![revision(7, NEW)];
    assert_eq!(written(decide(&observed)).revision, Some(7));
}

#[test]
fn a_rejected_rendering_is_not_followed_and_another_one_is() {
    let revisions = [revision(2, "bad"), rejecting(revision(3, "good"), "bad", "undo")];
    let held = [marked("good", json!({keys::REJECTED_HASH: "bad", keys::ROLLED_BACK_BY: "undo"}))];
    let pin = Pin::of("bad", &held, &revisions).unwrap();
    assert_eq!((pin.hash.as_str(), pin.rejects.command.as_deref()), ("good", Some("undo")));
    assert_eq!(pin.revision.unwrap().number, 3);
    assert_eq!(Pin::of("better", &held, &revisions), None);
    assert_eq!(Pin::of("bad", &[marked("good", json!({}))], &revisions), None, "the child is the truth");
}

/// The pin in both orders of the children, which has to be the same.
fn pinned(rendered: &str, children: [Arc<Child>; 2], revisions: &[Arc<Revision>]) -> Option<Pin> {
    let [first, second] = children;
    let pin = Pin::of(rendered, &[first.clone(), second.clone()], revisions);
    assert_eq!(pin, Pin::of(rendered, &[second, first], revisions), "the order of the children matters");
    pin
}

fn held(hash: &str, by: &str) -> Arc<Child> {
    marked(hash, json!({keys::REJECTED_HASH: "bad", keys::ROLLED_BACK_BY: by}))
}

#[test]
fn of_two_children_that_were_rolled_back_to_the_newest_rollback_holds() {
    let children = || [held("good", "first"), held("older", "second")];
    let mut revisions =
        vec![revision(1, "older"), revision(2, "bad"), rejecting(revision(3, "good"), "bad", "first")];
    assert_eq!(
        pinned("bad", children(), &revisions).unwrap().hash,
        "older",
        "before its revision records it"
    );
    revisions.push(rejecting(revision(4, "older"), "bad", "second"));
    revisions.remove(0);
    let pin = pinned("bad", children(), &revisions).unwrap();
    assert_eq!((pin.hash.as_str(), pin.rejects.command.as_deref()), ("older", Some("second")));
    // It asked for the rendering of spec and template.
    let follows = marked("bad", json!({keys::ROLLED_BACK_BY: "third"}));
    assert_eq!(pinned("bad", [held("older", "second"), follows], &revisions), None);
}

#[test]
fn a_rollback_holds_without_the_child_that_bears_it_and_beside_another_one() {
    let revisions = [revision(2, "bad"), rejecting(revision(3, "good"), "bad", "undo")];
    let pin = Pin::of("bad", &[marked("bad", json!({}))], &revisions).unwrap();
    assert_eq!((pin.hash.as_str(), pin.rejects.command.as_deref()), ("good", Some("undo")));
}

#[test]
fn a_former_child_does_not_revive_the_rollback_that_a_change_has_ended() {
    let children = [held("good", "undo"), marked("better", json!({}))];
    let revisions =
        [revision(2, "bad"), rejecting(revision(3, "good"), "bad", "undo"), revision(4, "better")];
    assert_eq!(pinned("bad", children, &revisions), None);
}

#[test]
fn a_child_that_somebody_deletes_comes_back_as_the_rollback_left_it() {
    let revisions = [revision(2, "bad"), rejecting(revision(3, "good"), "bad", "undo")];
    let pin = Pin::of("bad", &[], &revisions).unwrap();
    assert_eq!(pin.hash, "good");
    let marks = kept_marks("good", Some(&pin), None);
    assert_eq!((marks.rejected.as_deref(), marks.rolled_back_by.as_deref()), (Some("bad"), Some("undo")));
    assert_eq!(marks.last_command.as_deref(), Some("undo"), "or the command would be carried out again");
    assert_eq!(Pin::of("better", &[], &revisions), None);
}

#[test]
fn a_rollback_that_its_revision_names_was_carried_out_also_without_its_child_and_its_status() {
    let undo = || command(CommandKind::Rollback, "undo", 10, json!({"spec": {"toRevision": 1}}));
    // Spec and template have changed since, and no mark on the child shows it any more.
    let mut observed = ours(json!({}));
    observed.commands = Some(vec![undo()]);
    observed.revisions = vec![rejecting(revision(1, "good"), "bad", "undo"), revision(2, NEW)];
    assert!(CommandQueue::of(&observed).next().is_none(), "it would be rolled back once more");
    // It gave the wanted rendering: the revision that names it is the live one.
    observed.revisions = vec![rejecting(revision(1, NEW), "bad", "undo")];
    let Action::Renumber { rejects, .. } = decide(&observed) else { panic!() };
    assert_eq!(rejects, Rejects { hash: None, command: Some("undo".into()) }, "its proof stays");
    observed.revisions = vec![Arc::new(Revision { rejects, ..(*revision(1, NEW)).clone() })];
    let Action::Tell(news) = decide(&observed) else { panic!() };
    assert!(conditions::is_true(&news[0].1.conditions, "Succeeded"));
}

#[test]
fn only_the_revision_that_was_stored_for_a_hash_is_one() {
    let genuine = |name: String| Revision { name, ..(*revision(1, "good")).clone() };
    assert!(genuine(crate::revision::name("web", "deployment", "good")).is_genuine("web", "deployment"));
    for forged in ["web-good".to_owned(), crate::revision::name("web", "other", "good")] {
        assert!(!genuine(forged.clone()).is_genuine("web", "deployment"), "{forged}");
    }
}

#[test]
fn a_revision_that_was_left_behind_is_known_by_its_label_hash_and_name() {
    let with = |changes: Value| {
        let mut object = json!({"metadata": {
            "name": crate::revision::name("web", "former", "good"),
            "labels": {keys::DEPLOYMENT_UID: "former"}, "annotations": {keys::HASH: "good"},
        }});
        merge(&mut object["metadata"], changes);
        Revision::of(serde_json::from_value(object).unwrap())
    };
    assert!(with(json!({})).is_left_by("web"));
    for (what, changes) in [
        ("a copy", json!({"name": "web-copy"})),
        ("another label", json!({"labels": {keys::DEPLOYMENT_UID: "other"}})),
        ("another hash", json!({"annotations": {keys::HASH: "bad"}})),
        ("one that goes", json!({"deletionTimestamp": "2026-01-01T00:00:00Z"})),
        ("one with an owner", json!({"ownerReferences": [fixtures::owner("former")]})),
    ] {
        assert!(!with(changes).is_left_by("web"), "{what}");
    }
    assert!(!with(json!({})).is_left_by("api"));
    let adopted = json!({
        "labels": {keys::DEPLOYMENT_UID: "deployment"}, "annotations": {keys::MADE_FOR: "former"},
        "ownerReferences": [fixtures::owner("deployment")],
    });
    assert!(with(adopted.clone()).is_genuine("web", "deployment"));
    let mut again = adopted;
    again["ownerReferences"] = json!([]);
    assert!(with(again).is_left_by("web"), "it is left behind once more");
}

#[test]
fn revisions_that_were_left_behind_are_taken_back_before_the_next_one_gets_its_number() {
    let mut first = observed(Found::Nothing);
    first.revisions.clear();
    first.orphans = vec![revision(1, "a"), revision(2, "b")];
    assert_eq!(decide(&first), Action::Adopt(first.orphans.clone()));
    first.revisions = std::mem::take(&mut first.orphans);
    assert_eq!(decide(&first), Action::Record { rendered: rendered(NEW), number: 3 });
}

#[test]
fn a_rollback_is_recorded_on_its_revision_once() {
    let mut observed = ours(json!({}));
    observed.rendered = Ok(rendered("bad"));
    observed.revisions = vec![revision(1, NEW), revision(2, "bad")];
    let rejects = Rejects { hash: Some("bad".into()), command: Some("undo".into()) };
    let (hash, stored) = (NEW.to_owned(), observed.revisions[0].clone());
    observed.pin = Some(Pin { hash, revision: Some(stored), rejects: rejects.clone() });
    let Action::Renumber { number: 3, rejects: recorded, .. } = decide(&observed) else { panic!() };
    assert_eq!(recorded, rejects);
    observed.revisions = vec![revision(2, "bad"), rejecting(revision(3, NEW), "bad", "undo")];
    let status = written(decide(&observed));
    assert!(conditions::is_true(&status.conditions, "RolledBack"));
    assert_eq!(ready(&status), (true, "Complete".into()));
}

#[test]
fn a_restart_is_no_longer_recorded_when_the_next_rendering_comes_but_a_rollback_is_over() {
    let child = marked(
        "old",
        json!({keys::LAST_COMMAND: "c", keys::ROLLED_BACK_BY: "b", keys::REJECTED_HASH: "bad"}),
    );
    let marks = kept_marks(NEW, None, Some(&child));
    assert_eq!(
        (marks.last_command.as_deref(), marks.rolled_back_by, marks.rejected),
        (Some("c"), None, None)
    );
}

#[test]
fn the_oldest_revisions_go_but_never_a_live_wanted_or_asked_one() {
    let numbers = |limit, asked: &[i64]| {
        let mut observed = ours(json!({}));
        spec(&mut observed).revision_history_limit = limit;
        observed.revisions = (1..=5).map(|number| revision(number, &format!("r{number}"))).collect();
        observed.revisions.push(revision(6, NEW));
        observed.commands = Some(
            asked
                .iter()
                .map(|to| {
                    let spec = json!({"spec": {"toRevision": to}});
                    let mut queued = command(CommandKind::Rollback, &format!("c{to}"), 10, spec);
                    Arc::make_mut(&mut queued).status.conditions =
                        conditions::Conditions::new(1, observed.now)
                            .unknown("Succeeded", "Queued", "")
                            .since(&[]);
                    queued
                })
                .collect(),
        );
        history::prune(&observed).map(pruned)
    };
    assert_eq!(numbers(10, &[]), None);
    assert_eq!(numbers(5, &[]), None);
    assert_eq!(numbers(3, &[]), Some(vec![1, 2]));
    assert_eq!(numbers(0, &[]), Some(vec![1, 2, 3, 4, 5]));
    assert_eq!(numbers(3, &[1]), Some(vec![2, 3]));
    assert_eq!(numbers(0, &[2, 0]), Some(vec![1, 3, 4]), "0 asks for the previous one, which is 5");
}

#[test]
fn old_revisions_go_also_while_the_childs_name_is_taken() {
    let mut foreign = observed(Found::Foreign(child(json!({}))));
    foreign.revisions = vec![revision(1, "older"), revision(2, "old"), revision(3, NEW)];
    spec(&mut foreign).revision_history_limit = 1;
    assert_eq!(pruned(decide(&foreign)), [1]);
    foreign.revisions.remove(0);
    assert!(matches!(decide(&foreign), Action::Refuse(_)));
}

#[test]
fn a_revision_that_somebodys_finalizer_holds_is_deleted_once() {
    let mut observed = ours(json!({}));
    spec(&mut observed).revision_history_limit = 0;
    let mut held = revision(1, "r1");
    Arc::make_mut(&mut held).is_deleting = true;
    observed.revisions = vec![held, revision(2, NEW)];
    assert_eq!(history::prune(&observed), None);
}

#[test]
fn a_stored_rendering_cannot_leave_its_namespace_or_bring_finalizers() {
    let mut stored = rendered(NEW);
    stored.object["metadata"] = json!({
        "name": "web", "namespace": "kube-system", "finalizers": ["a/b"], "labels": null,
        "ownerReferences": [{"uid": "other"}],
    });
    let desired = Desired::new(&deployment(), stored, replica_sets()).object;
    assert_eq!(desired["metadata"]["namespace"], "shop");
    assert_eq!(desired["metadata"]["finalizers"], Value::Null);
    assert_eq!(desired["metadata"]["ownerReferences"][0]["uid"], "deployment");
    let stored = |data: Value| {
        Revision::rendering(serde_json::from_value(json!({"metadata": {}, "data": data})).unwrap())
    };
    for odd in [
        json!("text"),
        json!({"metadata": "text"}),
        json!({"metadata": {"name": "a", "labels": 7}}),
        json!({"metadata": {"name": "?watch=true"}}),
        json!({"metadata": {"name": "../../pods/a"}}),
    ] {
        assert_eq!(stored(odd.clone()), None, "{odd}");
    }
    assert!(stored(json!({"metadata": {"name": "a", "labels": null}})).is_some());
}

#[test]
fn nothing_is_pruned_while_commands_are_not_known() {
    let mut observed = ours(json!({}));
    spec(&mut observed).revision_history_limit = 0;
    observed.revisions = vec![revision(1, "r1"), revision(2, NEW)];
    observed.commands = None;
    assert_eq!(history::prune(&observed), None);
}

#[test]
fn the_previous_revision_is_the_one_before_what_is_wanted() {
    let mut observed = ours(json!({"metadata": {"annotations": {keys::HASH: "a"}}}));
    observed.revisions = vec![revision(1, "a"), revision(2, NEW)];
    // The child is still on the older one, because the server did not accept the new one.
    assert_eq!(rollback::target(0, &observed).unwrap().hash, "a");
    assert_eq!(rollback::target(2, &observed).unwrap().hash, NEW);
    let error = rollback::target(7, &observed).unwrap_err();
    assert!(error.message.contains("no revision 7") && error.message.contains("1, 2"), "{error:?}");
    assert_eq!(error.reason, "RevisionNotFound");
    observed.revisions.remove(0);
    assert!(rollback::target(0, &observed).is_err());
}

#[test]
fn a_revision_of_another_kind_is_no_target() {
    let mut observed = ours(json!({}));
    let mut other = revision(1, "a");
    Arc::make_mut(&mut other).kind = ("apps/v1".into(), "Deployment".into());
    observed.revisions.insert(0, other);
    observed.revisions[1] = revision(2, NEW);
    assert!(rollback::target(1, &observed).unwrap_err().message.contains("Deployment"));
    assert!(rollback::target(0, &observed).is_err());
}

#[test]
fn a_revision_of_another_api_version_of_a_listed_kind_is_a_target_in_the_listed_version() {
    let mut observed = ours(json!({}));
    let mut earlier = revision(0, "a");
    Arc::make_mut(&mut earlier).kind = ("catena.dev/v1".into(), "BasicReplicaSet".into());
    observed.revisions.insert(0, earlier);
    assert_eq!(rollback::target(0, &observed).unwrap().hash, "a");
    let mut stored = rendered("a");
    stored.object["apiVersion"] = "catena.dev/v1".into();
    let desired = Desired::new(&deployment(), stored, replica_sets());
    assert_eq!(desired.object["apiVersion"], "catena.dev/v1alpha1");
    assert_eq!(desired.hash, "a");
}
