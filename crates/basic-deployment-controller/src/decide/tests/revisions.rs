//! Each rendering has a revision before the child is changed to it, and a rollback holds one of them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;

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
    let Action::Renumber { revision, number } = decide(&observed) else { panic!() };
    assert_eq!((revision.hash.as_str(), number), (NEW, 3));
}

#[test]
fn what_is_paused_is_not_stored_and_what_comes_back_to_a_name_of_others_is_the_last_revision() {
    let mut paused = ours(json!({"metadata": {"annotations": {keys::HASH: "old"}}}));
    paused.revisions.clear();
    spec(&mut paused).paused = true;
    assert!(matches!(decide(&paused), Action::WriteStatus(_)));
    let mut foreign = observed(Found::Foreign(child(json!({}))));
    foreign.revisions = vec![revision(1, NEW), revision(2, "old")];
    assert!(matches!(decide(&foreign), Action::Renumber { number: 3, .. }));
    foreign.revisions = vec![revision(2, "old"), revision(3, NEW)];
    assert!(matches!(decide(&foreign), Action::Refuse(_)));
}

#[test]
fn the_status_tells_the_number_of_the_live_revision() {
    let mut observed = ours(json!({}));
    observed.revisions = vec![revision(7, NEW)];
    assert_eq!(written(decide(&observed)).revision, Some(7));
}

#[test]
fn the_status_lists_the_revisions_of_listed_kinds_up_to_the_limit_with_their_times() {
    let mut observed = ours(json!({}));
    let at = |second: i64| Timestamp::from_second(second).ok().map(Time);
    let numbered = |number: i64, hash: &str, kind: &str| {
        let kind = ("catena.dev/v1alpha1".to_owned(), kind.to_owned());
        Arc::new(Revision { numbered_at: at(number), kind, ..Revision::clone(&revision(number, hash)) })
    };
    let set = "BasicReplicaSet";
    observed.revisions = vec![
        numbered(1, "oldest", set),
        numbered(2, "old", set),
        numbered(3, "other", "Unlisted"),
        numbered(4, NEW, set),
    ];
    spec(&mut observed).revision_history_limit = 2;
    let told: Vec<_> = status(&observed).revisions.into_iter().map(|one| (one.number, one.hash)).collect();
    assert_eq!(told, [(2, "old".to_owned()), (4, NEW.to_owned())]);
    assert_eq!(Some(status(&observed).revisions[1].at.clone()), at(4));
}

#[test]
fn the_time_of_a_revision_is_that_of_its_number() {
    let numbered_at = |annotations: Value| {
        let object = json!({"metadata": {
            "name": "web-a", "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": annotations,
        }});
        let revision = Revision::of(serde_json::from_value(object).unwrap());
        revision.numbered_at.map(|at| at.0.to_string())
    };
    let later = "2026-01-02T00:00:00Z";
    assert_eq!(numbered_at(json!({keys::NUMBERED_AT: later})).as_deref(), Some(later));
    for odd in [json!({}), json!({keys::NUMBERED_AT: "yesterday"})] {
        assert_eq!(numbered_at(odd).as_deref(), Some("2026-01-01T00:00:00Z"));
    }
}

#[test]
fn only_the_revision_that_was_stored_for_a_hash_is_one() {
    let genuine = |name: String| Revision { name, ..(*revision(1, "good")).clone() };
    assert!(genuine(revision::name("web", "deployment", "good")).is_genuine("web", "deployment"));
    for forged in ["web-good".to_owned(), revision::name("web", "other", "good")] {
        assert!(!genuine(forged.clone()).is_genuine("web", "deployment"), "{forged}");
    }
}

#[test]
fn a_revision_that_was_left_behind_is_known_by_its_label_hash_and_name() {
    let with = |changes: Value| {
        let mut object = json!({"metadata": {
            "name": revision::name("web", "former", "good"),
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
fn a_pinned_revision_becomes_the_last_one_and_is_kept() {
    let mut observed = ours(json!({}));
    observed.rendered = Ok(rendered("bad"));
    observed.pin = Some(pin(NEW, "bad"));
    observed.revisions = vec![revision(1, NEW), revision(2, "bad")];
    let Action::Renumber { revision: held, number: 3 } = decide(&observed) else { panic!() };
    assert_eq!(held.hash, NEW);
    observed.revisions = vec![revision(2, "bad"), revision(3, NEW)];
    let status = written(decide(&observed));
    assert!(Conditions::is_true(&status.conditions, "RolledBack"));
    assert_eq!(ready(&status), (true, "Complete".into()));
    spec(&mut observed).revision_history_limit = 0;
    (observed.child, observed.desired) = (Found::Nothing, Err(revision::gone(NEW)));
    assert_eq!(history::prune(&observed), None, "also while it cannot be read");
}

#[test]
fn the_oldest_revisions_go_but_never_a_live_or_wanted_one() {
    let numbers = |limit| {
        let mut observed = ours(json!({}));
        spec(&mut observed).revision_history_limit = limit;
        observed.revisions = (1..=5).map(|number| revision(number, &format!("r{number}"))).collect();
        observed.revisions.push(revision(6, NEW));
        history::prune(&observed).map(pruned)
    };
    assert_eq!(numbers(10), None);
    assert_eq!(numbers(5), None);
    assert_eq!(numbers(3), Some(vec![1, 2]));
    assert_eq!(numbers(0), Some(vec![1, 2, 3, 4, 5]));
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
fn a_revision_of_another_api_version_of_a_listed_kind_is_a_target_in_the_listed_version() {
    let mut observed = ours(json!({}));
    let mut earlier = revision(0, "a");
    Arc::make_mut(&mut earlier).kind = ("catena.dev/v1".into(), "BasicReplicaSet".into());
    observed.revisions.insert(0, earlier);
    for stored in &mut observed.revisions {
        Arc::make_mut(stored).numbered_at = Some(Time(observed.now));
    }
    let listed: Vec<_> = status(&observed).revisions.into_iter().map(|stored| stored.hash).collect();
    assert_eq!(listed, ["a", NEW]);
    let mut stored = rendered("a");
    stored.object["apiVersion"] = "catena.dev/v1".into();
    let desired = Desired::new(&deployment(), stored, replica_sets());
    assert_eq!(desired.object["apiVersion"], "catena.dev/v1alpha1");
    assert_eq!(desired.hash, "a");
}
