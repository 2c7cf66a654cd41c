//! What a process knows of a child that it has not written, because it has seen it in order.

use parking_lot::Mutex;

use super::*;

/// A cluster whose child has the present image; with `None`, both the child and its owner are gone.
async fn cluster(image: &Arc<Mutex<Option<&'static str>>>) -> Cluster {
    let kind = settings().children[0].clone();
    let mut child = Desired::new(&deployment(), rendering(), kind).object;
    child["metadata"]["uid"] = "child".into();
    child["spec"]["maxSurge"] = "25%".into();
    child["spec"]["replicas"] = deployment().spec.replicas.into();
    let image = image.clone();
    let answer = move |sent: &Sent| {
        let present = *image.lock();
        match present.filter(|_| sent.uri.starts_with(CHILD)) {
            Some(image) => {
                child["spec"]["parameters"]["image"] = image.into();
                Answer::Object(child.clone())
            }
            None => MISSING,
        }
    };
    Cluster::of(vec![stored()], answer).await
}

#[tokio::test]
async fn a_change_in_a_pause_is_known_if_the_child_was_seen_in_order_before_and_nothing_is_asked_for_it() {
    let image = Arc::new(Mutex::new(Some("theirs")));
    let cluster = cluster(&image).await;
    let sees = async |now: &'static str| {
        *image.lock() = Some(now);
        let mut paused = deployment();
        paused.spec.paused = true;
        let changed = cluster.observe(paused, Backoffs::default()).await.unwrap().changed_in_pause();
        assert_eq!(cluster.asked(), [format!("GET {CHILD}")]);
        changed
    };
    assert_eq!(sees("theirs").await, None, "the server may store it in this form");
    assert_eq!(sees("nginx").await, None, "it is as rendered");
    assert_eq!(sees("theirs").await.as_deref(), Some("spec.parameters.image"));
    assert_eq!(sees("nginx").await, None, "somebody undid it");
}

#[tokio::test]
async fn a_child_that_a_new_leader_has_seen_in_order_is_made_again_only_while_its_owner_is_still_there() {
    let image = Arc::new(Mutex::new(Some("nginx")));
    let cluster = cluster(&image).await;
    cluster.observe(deployment(), Backoffs::default()).await.unwrap();
    assert_eq!(cluster.asked(), [format!("GET {CHILD}")]);
    *image.lock() = None;
    let gone = cluster.observe(deployment(), Backoffs::default()).await.err().unwrap();
    assert_eq!(failure(gone).reason, "NotFound");
    assert_eq!(cluster.asked(), [format!("GET {CHILD}"), format!("GET {DEPLOYMENT}")]);
}
