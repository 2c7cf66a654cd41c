//! The next command is read live before it is carried out, and the revision that a pin holds while it does.

use super::*;

const RESTART: &str = "/apis/catena.dev/v1alpha1/namespaces/shop/basicdeploymentrestarts/again";

/// A restart on the server, with one change of its metadata.
fn changed(field: &str, value: Value) -> Answer {
    let mut object = command_object("command", &json!({}));
    object["metadata"][field] = value;
    Answer::Object(object)
}

/// A rendering of a former template, with a name of its own.
fn earlier(name: &str) -> Rendered {
    let mut object = rendering().object;
    object["metadata"]["name"] = name.into();
    Rendered { object, hash: "earlier".into() }
}

/// A cluster with the child in its desired state, and two revisions of which the first is `earlier`.
async fn cluster(
    command: Option<Value>,
    earlier: &Rendered,
    answer: impl FnMut(&Sent) -> Answer + Send + 'static,
) -> Cluster {
    let first = ("controllerrevisions", revision_object(earlier, 1, "first", "deployment"));
    let second = ("controllerrevisions", revision_object(&rendering(), 2, "second", "deployment"));
    let mut child = child_object("web", "child");
    child["metadata"]["annotations"][keys::HASH] = rendering().hash.into();
    let command = command.map(|command| ("basicdeploymentrestarts", command));
    let others = [first, second, ("basicreplicasets", child)];
    Cluster::of(others.into_iter().chain(command).collect(), answer).await
}

async fn restarting(answer: Answer) -> (Result<Option<String>, Error>, Vec<String>) {
    let command = command_object("command", &json!({}));
    let cluster = cluster(Some(command), &earlier("web"), move |_| answer.clone()).await;
    let observed = cluster.observe(deployment(), Attempt::Allowed).await;
    (observed.map(|observed| observed.confirmed), cluster.asked())
}

#[tokio::test]
async fn a_command_is_confirmed_only_while_the_very_command_waits() {
    let (confirmed, asked) = restarting(changed("name", "again".into())).await;
    assert_eq!((confirmed.unwrap().as_deref(), asked), (Some("command"), vec![format!("GET {RESTART}")]));
    let mut ended = command_object("command", &json!({}));
    ended["status"]["conditions"] = json!([{
        "type": "Succeeded", "status": "False", "reason": "DeadlineExceeded", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
    }]);
    for no_more in [
        MISSING,
        Answer::Object(ended),
        changed("uid", "another".into()),
        changed("deletionTimestamp", "2026-01-03T00:00:00Z".into()),
        changed("ownerReferences", json!([owner("another")])),
    ] {
        assert_eq!(restarting(no_more.clone()).await.0.unwrap(), None, "{no_more:?}");
    }
}

#[tokio::test]
async fn a_command_that_cannot_be_looked_up_is_not_run_and_holds_up_nothing_else() {
    for (answer, reason) in
        [(FORBIDDEN, "Forbidden"), (BROKEN, "LookUpFailed"), (Answer::Lost, "LookUpFailed")]
    {
        let failures = Failures::from(restarting(answer).await.0.unwrap_err());
        assert_eq!((failures.parts[0].reason, failures.step), (reason, Some(step::CARRY_OUT)));
    }
}

/// The `BasicDeployment` with a pin to `earlier`.
fn pinned(uid: &str, rejects: &str) -> BasicDeployment {
    let pin = Pin { uid: uid.into(), hash: "earlier".into(), rejects: rejects.into() };
    let mut pinned = deployment();
    pinned.metadata.annotations = Some([(keys::PINNED_REVISION.to_owned(), pin.to_json())].into());
    pinned
}

/// The observation of a pinned `BasicDeployment`, with these answers about the revision and about a child with another name.
async fn holding(
    pinned: BasicDeployment,
    earlier: Rendered,
    stored: Answer,
    child: Answer,
) -> (Observed, Vec<String>) {
    let answer =
        move |sent: &Sent| if sent.uri.starts_with(REVISIONS) { stored.clone() } else { child.clone() };
    let cluster = cluster(None, &earlier, answer).await;
    let observed = cluster.observe(pinned, Attempt::Allowed).await;
    (observed.unwrap(), cluster.asked())
}

fn stored_as(earlier: &Rendered, uid: &str) -> Answer {
    Answer::Object(revision_object(earlier, 1, uid, "deployment"))
}

#[tokio::test]
async fn a_pin_holds_what_the_very_revision_stores() {
    let (earlier, rejecting) = (earlier("web"), pinned("deployment", &rendering().hash));
    let (held, asked) =
        holding(rejecting.clone(), earlier.clone(), stored_as(&earlier, "first"), MISSING).await;
    assert_eq!(held.desired.as_ref().map(|desired| &*desired.hash), Ok("earlier"));
    assert!(matches!(&held.child, Found::Ours(child) if child.uid == "child"));
    assert_eq!(asked, [format!("GET {REVISIONS}/{}", name_of("earlier"))]);
    let mut emptied = revision_object(&earlier, 1, "first", "deployment");
    emptied["data"] = json!({"spec": 1});
    for other in [MISSING, stored_as(&earlier, "replaced"), Answer::Object(emptied)] {
        let (held, _) = holding(rejecting.clone(), earlier.clone(), other.clone(), MISSING).await;
        assert!(matches!(held.desired, Err(Refusal::RevisionGone { .. })), "{other:?}");
    }
}

#[tokio::test]
async fn a_pin_of_another_object_or_against_another_rendering_holds_nothing_and_is_spent() {
    let rendered = rendering().hash;
    for (uid, rejects) in [("copied", &*rendered), ("deployment", "former")] {
        let (observed, asked) = holding(pinned(uid, rejects), earlier("web"), MISSING, MISSING).await;
        assert_eq!(observed.desired.as_ref().map(|desired| &desired.hash), Ok(&rendered));
        assert!(observed.pin.is_none() && observed.has_spent_pin() && asked.is_empty(), "{uid} {asked:?}");
    }
}

#[tokio::test]
async fn a_pin_holds_while_the_template_renders_nothing() {
    let earlier = earlier("web");
    let mut broken = pinned("deployment", "former");
    broken.spec.template = "missing".into();
    let (held, _) = holding(broken, earlier.clone(), stored_as(&earlier, "first"), MISSING).await;
    assert!(held.rendered.is_err() && !held.has_spent_pin());
    assert_eq!(held.desired.map(|desired| desired.hash), Ok("earlier".to_owned()));
}

#[tokio::test]
async fn a_pin_to_another_name_looks_who_has_it() {
    let (earlier, pinned) = (earlier("formerly"), pinned("deployment", &rendering().hash));
    let stored = stored_as(&earlier, "first");
    let (held, asked) = holding(pinned.clone(), earlier.clone(), stored.clone(), MISSING).await;
    assert_eq!(held.child, Found::Nothing);
    assert!(asked.len() == 2 && asked[1].ends_with("/basicreplicasets/formerly"), "{asked:?}");
    let mut theirs = child_object("formerly", "theirs");
    theirs["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "Other", "name": "it", "uid": "it", "controller": true,
    }]);
    let (held, _) = holding(pinned, earlier, stored, Answer::Object(theirs)).await;
    assert!(matches!(held.child, Found::Foreign(_)));
}

#[tokio::test]
async fn a_rollback_waits_for_no_restarts_where_their_kind_is_not_served() {
    let rollback =
        ("basicdeploymentrollbacks", command_object("command", &json!({"spec": {"toRevision": 1}})));
    let first = ("controllerrevisions", revision_object(&earlier("web"), 1, "first", "deployment"));
    let listed = vec![first, ("basicdeploymentrestarts", Value::Null), rollback];
    let cluster = Cluster::of(listed, |_| MISSING).await;
    let observed = cluster.observe(deployment(), Attempt::Allowed).await.unwrap();
    assert_eq!(observed.commands.map(|commands| commands.len()), Some(1));
}
