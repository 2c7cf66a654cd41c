//! The last child is of a kind that is no longer listed: it is looked for live, by its name in the last revision.

use super::*;

const FORMER: &str = "/apis/apps/v1/namespaces/shop/deployments/old";

/// A cluster whose last revision is of this API version, with an answer about its child.
async fn cluster(api_version: &str, child: Answer) -> Cluster {
    let object = json!({"apiVersion": api_version, "kind": "Deployment", "metadata": {"name": "old"}});
    let former = revision_object(&Rendered { object, hash: "former".into() }, 1, "former", "deployment");
    Cluster::of(vec![("controllerrevisions", former)], move |sent| match &*sent.uri {
        "/apis/apps/v1" => Answer::Object(json!({
            "kind": "APIResourceList", "groupVersion": "apps/v1",
            "resources": [{
                "name": "deployments", "singularName": "deployment", "namespaced": true, "kind": "Deployment",
                "verbs": ["list"],
            }],
        })),
        uri if uri.starts_with(FORMER) => child.clone(),
        _ if sent.verb == "POST" => Answer::Done,
        _ => MISSING,
    })
    .await
}

fn owned_by(uid: &str) -> Answer {
    Answer::Object(json!({"metadata": {"name": "old", "uid": "old", "ownerReferences": [owner(uid)]}}))
}

/// With a child in its status.
fn reported() -> BasicDeployment {
    let status = BasicDeploymentStatus { child: Some(ChildStatus::default()), ..Default::default() };
    BasicDeployment { status: Some(status), ..deployment() }
}

#[tokio::test]
async fn while_it_may_still_run_no_other_child_is_made() {
    for (deployment, child) in [(deployment(), owned_by("deployment")), (reported(), FORBIDDEN)] {
        let cluster = cluster("apps/v1", child).await;
        let refused = cluster.pass_over(deployment).await.unwrap_err();
        assert_eq!((refused.reason, refused.is_stalled), ("KindNotListed", true));
        assert!(refused.message.contains("Deployment \"old\", is of a kind that children"), "{refused}");
        assert_eq!(cluster.asked(), ["GET /apis/apps/v1".to_owned(), format!("GET {FORMER}")]);
    }
}

#[tokio::test]
async fn one_that_was_recorded_right_before_its_kind_left_the_settings_and_never_made_holds_up_nothing() {
    let cluster = cluster("apps/v1", FORBIDDEN).await;
    assert_eq!(cluster.pass().await.unwrap(), Requeue::Written);
}

#[tokio::test]
async fn while_everything_is_held_up_it_may_still_run_and_is_not_asked_for() {
    let cluster = cluster("apps/v1", MISSING).await;
    let observed = cluster.observe(deployment(), held_up()).await.unwrap();
    assert!(observed.unlisted.is_some(), "its last numbers stay");
    assert!(cluster.asked().is_empty());
}

#[tokio::test]
async fn one_that_is_gone_or_not_ours_holds_up_nothing() {
    for (api_version, child) in
        [("apps/v1", MISSING), ("apps/v1", owned_by("another")), ("gone.dev/v1", FORBIDDEN)]
    {
        let cluster = cluster(api_version, child).await;
        assert_eq!(cluster.pass().await.unwrap(), Requeue::Written);
        assert_eq!(cluster.asked().last(), Some(&format!("POST {REVISIONS}")));
    }
}

#[tokio::test]
async fn a_look_without_an_answer_fails_the_pass_and_what_is_no_version_is_not_asked_for() {
    let refused = cluster("apps/v1", BROKEN).await.pass().await.unwrap_err();
    assert_eq!(refused.reason, "LookUpFailed");
    for forged in ["../../api/v1", "apps/v1?watch=true", ""] {
        let cluster = cluster(forged, owned_by("deployment")).await;
        assert_eq!(cluster.pass().await.unwrap(), Requeue::Written);
        assert_eq!(cluster.asked(), [format!("POST {REVISIONS}")], "{forged}");
    }
}
