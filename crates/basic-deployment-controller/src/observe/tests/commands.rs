//! The next command's prerequisites are read before it is carried out.

use super::*;

const RESTART: &str = "/apis/catena.dev/v1alpha1/namespaces/shop/basicdeploymentrestarts/again";
const ROLLBACK: &str = "/apis/catena.dev/v1alpha1/namespaces/shop/basicdeploymentrollbacks/again";

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

/// A cluster with the child in its desired state, a command, and two revisions of which the first is `earlier`.
async fn cluster(
    command: (&'static str, Value),
    earlier: &Rendered,
    answer: impl FnMut(&Sent) -> Answer + Send + 'static,
) -> Cluster {
    let first = ("controllerrevisions", revision_object(earlier, 1, "first", "deployment"));
    let second = ("controllerrevisions", revision_object(&rendering(), 2, "second", "deployment"));
    let mut child = child_object("web", "child");
    child["metadata"]["annotations"][catena_api::keys::HASH] = rendering().hash.into();
    Cluster::of(vec![first, second, ("basicreplicasets", child), command], answer).await
}

async fn restarting(answer: Answer) -> (Result<Option<Prepared>, Error>, Vec<String>) {
    let command = ("basicdeploymentrestarts", command_object("command", &json!({})));
    let cluster = cluster(command, &earlier("web"), move |_| answer.clone()).await;
    let observed = cluster.observe(deployment(), Attempt::Allowed).await;
    (observed.map(|observed| observed.prepared), cluster.asked())
}

#[tokio::test]
async fn a_restart_is_prepared_only_while_the_very_command_waits() {
    let (prepared, asked) = restarting(changed("name", "again".into())).await;
    let expected = Prepared { command: "command".into(), target: None, is_taken_back: false };
    assert_eq!((prepared.unwrap(), asked), (Some(expected), vec![format!("GET {RESTART}")]));
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

/// Prepares a rollback to the first revision, which stores `earlier`, with these answers about the revision and about a
/// child with another name.
async fn rolling_back(
    earlier: Rendered,
    stored: Answer,
    child: Answer,
) -> (Result<Option<Prepared>, Error>, Vec<String>) {
    let command = command_object("command", &json!({"toRevision": 1}));
    let waits = command.clone();
    let answer = move |sent: &Sent| match sent.uri.as_str() {
        uri if uri.starts_with(ROLLBACK) => Answer::Object(waits.clone()),
        uri if uri.starts_with(REVISIONS) => stored.clone(),
        _ => child.clone(),
    };
    let cluster = cluster(("basicdeploymentrollbacks", command), &earlier, answer).await;
    let observed = cluster.observe(deployment(), Attempt::Allowed).await;
    (observed.map(|observed| observed.prepared), cluster.asked())
}

fn stored_as(earlier: &Rendered, uid: &str) -> Answer {
    Answer::Object(revision_object(earlier, 1, uid, "deployment"))
}

#[tokio::test]
async fn a_rollback_takes_what_the_very_revision_stores() {
    let earlier = earlier("web");
    let (prepared, asked) = rolling_back(earlier.clone(), stored_as(&earlier, "first"), MISSING).await;
    let (desired, found) = prepared.unwrap().unwrap().target.unwrap();
    assert_eq!((desired.hash.as_str(), desired.name()), ("earlier", "web"));
    assert!(matches!(found, Found::Ours(child) if child.uid == "child"));
    let revision = format!("{REVISIONS}/{}", name_of("earlier"));
    assert_eq!(asked, [format!("GET {ROLLBACK}"), format!("GET {revision}")]);
    let mut emptied = revision_object(&earlier, 1, "first", "deployment");
    emptied["data"] = json!({"spec": 1});
    for other in [MISSING, stored_as(&earlier, "replaced"), Answer::Object(emptied)] {
        let (prepared, _) = rolling_back(earlier.clone(), other.clone(), MISSING).await;
        assert_eq!(prepared.unwrap(), None, "{other:?}");
    }
}

#[tokio::test]
async fn a_rollback_to_another_name_looks_who_has_it() {
    let earlier = earlier("formerly");
    let stored = stored_as(&earlier, "first");
    let (prepared, asked) = rolling_back(earlier.clone(), stored.clone(), MISSING).await;
    assert_eq!(prepared.unwrap().unwrap().target.unwrap().1, Found::Nothing);
    assert_eq!(asked.len(), 3);
    assert!(asked[2].ends_with("/basicreplicasets/formerly"), "{asked:?}");
    let mut theirs = child_object("formerly", "theirs");
    theirs["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "Other", "name": "it", "uid": "it", "controller": true,
    }]);
    let (prepared, _) = rolling_back(earlier, stored, Answer::Object(theirs)).await;
    assert!(matches!(prepared.unwrap().unwrap().target.unwrap().1, Found::Foreign(_)));
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

#[tokio::test]
async fn a_lost_restart_is_given_up_only_on_the_child_that_is_there_now() {
    let begun = json!({"startTime": "2026-01-01T00:00:01Z"});
    for (version, created, expected) in [
        ("5", "2025-12-31T00:00:00Z", Some(true)),
        ("5", "2026-01-05T00:00:00Z", Some(false)),
        ("6", "2025-12-31T00:00:00Z", None),
    ] {
        let mut command = command_object("command", &json!({}));
        command["status"] = begun.clone();
        let answered = command.clone();
        let live = move |sent: &Sent| {
            if sent.uri.contains("basicdeploymentrestarts") {
                return Answer::Object(answered.clone());
            }
            let mut child = child_object("web", "child");
            child["metadata"]["resourceVersion"] = version.into();
            child["metadata"]["creationTimestamp"] = created.into();
            Answer::Object(child)
        };
        let cluster = cluster(("basicdeploymentrestarts", command), &earlier("web"), live).await;
        let prepared = cluster.observe(deployment(), Attempt::Allowed).await.unwrap().prepared;
        assert_eq!(prepared.map(|prepared| prepared.is_taken_back), expected, "{version} {created}");
    }
}
