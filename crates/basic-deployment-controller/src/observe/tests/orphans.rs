//! Revisions that a former `BasicDeployment` of the name has left.

use catena_api::keys;

use super::*;

/// One that was stored for another uid.
fn left(hash: &str, number: i64) -> Value {
    let rendered = Rendered { hash: hash.into(), ..rendering() };
    let mut object = revision_object(&rendered, number, &format!("{hash}-{number}"), "former");
    object["metadata"]["name"] = revision::name("web", "former", hash).into();
    object["metadata"]["labels"] = json!({keys::DEPLOYMENT_UID: "former"});
    object["metadata"]["ownerReferences"] = json!([]);
    object
}

/// A cluster with two of them, and an answer about the `BasicDeployment`.
async fn cluster(own: Answer) -> Cluster {
    let listed = [left("a", 1), left("b", 2)].map(|object| ("controllerrevisions", object));
    Cluster::of(listed.to_vec(), move |sent| match sent.verb.as_str() {
        "GET" if sent.uri.starts_with(DEPLOYMENT) => own.clone(),
        "APPLY" => Answer::Echo("left"),
        _ => MISSING,
    })
    .await
}

#[tokio::test]
async fn they_are_adopted_while_their_next_owner_is_still_there() {
    let here = Answer::Object(json!({"metadata": {"name": "web", "uid": "deployment"}}));
    let there = cluster(here).await;
    assert_eq!(there.pass().await.unwrap(), Next::Written);
    let names = ["a", "b"].map(|hash| revision::name("web", "former", hash));
    let mut adopted = names.map(|name| format!("APPLY {REVISIONS}/{name}")).to_vec();
    adopted.insert(0, format!("GET {DEPLOYMENT}"));
    assert_eq!(there.asked(), adopted);
    assert_eq!(cluster(MISSING).await.pass().await.unwrap_err().reason, "NotFound");
}

#[tokio::test]
async fn with_an_orphaned_child_beside_them_their_next_owner_is_looked_up_once() {
    let mut orphan = child_object("web", "left");
    orphan["metadata"]["ownerReferences"] = json!([]);
    let here = json!({"metadata": {"name": "web", "uid": "deployment"}});
    let listed = vec![stored(), ("controllerrevisions", left("a", 1))];
    let cluster = Cluster::of(listed, move |sent| {
        Answer::Object(if sent.uri.starts_with(DEPLOYMENT) { here.clone() } else { orphan.clone() })
    })
    .await;
    let observed = cluster.observe(deployment(), Backoffs::default()).await.unwrap();
    assert!(matches!(observed.child, Found::Orphan(_)) && observed.orphans.len() == 1);
    assert_eq!(cluster.asked(), [format!("GET {CHILD}"), format!("GET {DEPLOYMENT}")]);
}

#[tokio::test]
async fn those_of_others_and_second_ones_of_a_rendering_are_left_alone() {
    let mut copy = left("c", 3);
    copy["metadata"]["name"] = "web-copy".into();
    let mut other = left("d", 4);
    other["metadata"]["name"] = revision::name("api", "former", "d").into();
    let mut second = left("own", 1);
    second["metadata"]["name"] = revision::name("web", "earlier", "own").into();
    second["metadata"]["labels"] = json!({keys::DEPLOYMENT_UID: "earlier"});
    let own = revision_object(&Rendered { hash: "own".into(), ..rendering() }, 1, "own", "deployment");
    let listed = [copy, other, second, own, stored().1].map(|object| ("controllerrevisions", object));
    let cluster = Cluster::of(listed.to_vec(), |_| MISSING).await;
    let observed = cluster.observe(deployment(), Backoffs::default()).await.unwrap();
    assert!(observed.orphans.is_empty(), "{:?}", observed.orphans);
}
