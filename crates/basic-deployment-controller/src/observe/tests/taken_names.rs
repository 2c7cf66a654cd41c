//! The name of a revision is taken: the next pass reads live, and decides.

use super::*;

/// A cluster in which the revision cannot be created, with this answer to a live read of its name.
async fn cluster(found: Answer) -> Cluster {
    Cluster::of(Vec::new(), move |sent| match sent.verb.as_str() {
        "POST" => Answer::Refusal(409, "AlreadyExists"),
        "GET" => found.clone(),
        _ => Answer::Echo("stripped"),
    })
    .await
}

fn requests() -> [String; 3] {
    let path = format!("{REVISIONS}/{}", name_of(&rendering().hash));
    [format!("POST {REVISIONS}"), format!("GET {path}"), format!("MERGE {path}")]
}

#[tokio::test]
async fn a_revision_whose_label_somebody_took_is_looked_at_by_the_next_pass_and_marked_again() {
    let ours = revision_object(&rendering(), 1, "stripped", "deployment");
    let cluster = cluster(Answer::Object(ours)).await;
    let [create, look, mark] = requests();
    assert_eq!(cluster.pass().await.unwrap(), Next::Again);
    assert_eq!(cluster.asked(), std::slice::from_ref(&create), "the pass that writes looks at nothing");
    assert_eq!(cluster.pass().await.unwrap(), Next::Written);
    assert_eq!(cluster.asked(), [look, mark]);
    // Its watch will show it; until then, the same may happen once more.
    assert_eq!(cluster.pass().await.unwrap(), Next::Again);
    assert_eq!(cluster.asked(), [create]);
}

#[tokio::test]
async fn an_object_of_somebody_else_is_refused_without_another_write() {
    let theirs = revision_object(&rendering(), 1, "theirs", "somebody");
    let cluster = cluster(Answer::Object(theirs)).await;
    let [_, look, _] = requests();
    cluster.pass().await.unwrap();
    cluster.asked();
    for _ in 0..2 {
        let refused = cluster.pass().await.unwrap_err();
        assert_eq!((refused.reason(), refused.category()), ("RevisionNameTaken", Category::WaitsForChange));
        assert_eq!(cluster.asked(), std::slice::from_ref(&look));
    }
}

#[tokio::test]
async fn what_is_gone_by_then_is_created_again() {
    let cluster = cluster(MISSING).await;
    let [create, look, _] = requests();
    cluster.pass().await.unwrap();
    cluster.asked();
    cluster.pass().await.unwrap();
    assert_eq!(cluster.asked(), [look, create]);
}

#[tokio::test]
async fn a_name_that_cannot_be_looked_at_fails_the_pass_before_anything_is_written() {
    for (answer, reason) in
        [(FORBIDDEN, "Forbidden"), (BROKEN, "LookUpFailed"), (Answer::Lost, "LookUpFailed")]
    {
        let cluster = cluster(answer).await;
        cluster.pass().await.unwrap();
        cluster.asked();
        assert_eq!(cluster.pass().await.unwrap_err().reason(), reason);
        assert_eq!(cluster.asked().len(), 1);
    }
}
