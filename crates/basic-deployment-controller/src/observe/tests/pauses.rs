//! Changes of a child by somebody else in a pause, in which nothing shows how the server stores the rendering but a dry run.

use basic_deployment_controller::decide::Action;
use parking_lot::Mutex;

use super::*;

/// A controller of a child with an image, and of an API server that answers a dry run in some way.
struct Paused {
    cluster: Cluster,
    image: Arc<Mutex<&'static str>>,
}

impl Paused {
    async fn with(dry_run: impl Fn(Value) -> Answer + Send + 'static) -> Self {
        let mut child = stored_child();
        let image = Arc::new(Mutex::new("theirs"));
        let set = image.clone();
        let answer = move |sent: &Sent| {
            if !sent.uri.starts_with(CHILD) {
                return MISSING;
            }
            child["spec"]["parameters"]["image"] = (*set.lock()).into();
            if sent.verb == "GET" { Answer::Object(child.clone()) } else { dry_run(child.clone()) }
        };
        Self { cluster: Cluster::of(vec![stored()], answer).await, image }
    }

    /// The change that a pass sees, and the number of dry runs for it.
    async fn sees(&self, image: &'static str, attempt: Attempt) -> (Option<String>, usize) {
        *self.image.lock() = image;
        let mut paused = deployment();
        paused.spec.paused = true;
        let seen = self.cluster.observe(paused, attempt).await.unwrap().changed_in_pause();
        let sent = self.cluster.log.take();
        let writes: Vec<_> = sent.iter().filter(|sent| sent.verb != "GET").collect();
        assert!(writes.iter().all(|sent| sent.uri.contains("dryRun=All")), "{writes:?}");
        (seen, writes.len())
    }
}

/// The child on the server, with a field by somebody else.
fn stored_child() -> Value {
    let kind = settings().children[0].clone();
    let mut child = Desired::new(&deployment(), rendering(), kind).object;
    child["metadata"]["uid"] = "child".into();
    child["spec"]["maxSurge"] = "25%".into();
    child["spec"]["replicas"] = deployment().spec.replicas.into();
    child
}

fn changed(runs: usize) -> (Option<String>, usize) {
    (Some("spec.parameters.image".into()), runs)
}

/// What the server makes of an apply: the fields that are rendered are as rendered.
fn overwritten(mut child: Value) -> Answer {
    child["spec"]["parameters"]["image"] = "nginx".into();
    Answer::Object(child)
}

#[tokio::test]
async fn a_change_is_known_to_a_process_that_has_never_seen_the_child_in_order() {
    let paused = Paused::with(overwritten).await;
    assert_eq!(paused.sees("theirs", Attempt::Allowed).await, changed(1));
    assert_eq!(paused.sees("theirs", Attempt::Allowed).await, changed(0), "the answer is known");
    assert_eq!(paused.sees("nginx", Attempt::Allowed).await, (None, 0), "somebody undid it");
    assert_eq!(paused.sees("theirs", Attempt::Allowed).await, changed(0));
}

#[tokio::test]
async fn what_an_apply_would_leave_is_no_change_that_waits_for_the_end_of_the_pause() {
    let paused = Paused::with(Answer::Object).await;
    assert_eq!(paused.sees("stored otherwise", Attempt::Allowed).await, (None, 1));
    assert_eq!(paused.sees("stored otherwise", Attempt::Allowed).await, (None, 0));
}

#[tokio::test]
async fn a_server_that_refuses_dry_runs_holds_nothing_up_and_is_asked_again() {
    let paused = Paused::with(|_| Answer::Refusal(400, "BadRequest")).await;
    assert_eq!(paused.sees("theirs", Attempt::Allowed).await, (None, 1));
    assert_eq!(paused.sees("theirs", Attempt::Allowed).await, (None, 1));
    assert_eq!(paused.sees("nginx", Attempt::Allowed).await, (None, 0), "it is as rendered");
    assert_eq!(paused.sees("theirs", Attempt::Allowed).await, changed(1), "it was seen in order");
}

#[tokio::test]
async fn the_server_is_not_asked_while_everything_is_held_up_or_without_a_pause() {
    let mut changed = stored_child();
    changed["spec"]["parameters"]["image"] = "theirs".into();
    let shown = ("basicreplicasets", changed);
    let cluster = Cluster::of(vec![stored(), shown], |_| MISSING).await;
    let mut paused = deployment();
    paused.spec.paused = true;
    let held = cluster.observe(paused, held_up()).await.unwrap();
    assert!(held.child.ours().is_some() && held.settled_as.is_none());
    cluster.observe(deployment(), Attempt::Allowed).await.unwrap();
    assert_eq!(cluster.asked(), [""; 0]);
}

#[tokio::test]
async fn a_child_is_not_taken_for_one_in_order_because_the_server_does_not_answer() {
    let mut observed = deployment();
    observed.spec.paused = true;
    let of_webhook = json!({
        "kind": "Status", "status": "Failure", "code": 500, "reason": "InternalError",
        "message": "Internal error occurred: failed calling webhook \"a.example.com\": connection refused",
    });
    for answer in [
        BROKEN,
        Answer::Lost,
        Answer::Refusal(409, "Conflict"),
        Answer::Refusal(429, "TooManyRequests"),
        Answer::Json(500, of_webhook),
    ] {
        let paused = Paused::with(move |_| answer.clone()).await;
        let failed = paused.cluster.observe(observed.clone(), Attempt::Allowed).await.err();
        assert!(matches!(failed, Some(Error::Write(_))), "{failed:?}");
        assert_eq!(paused.cluster.asked().len(), 2, "a look and a dry run");
        // One that has seen the child in order needs no answer.
        assert_eq!(paused.sees("nginx", Attempt::Allowed).await, (None, 0));
        assert_eq!(paused.sees("theirs", Attempt::Allowed).await, changed(1));
    }
}

#[tokio::test]
async fn a_child_is_scaled_in_a_pause_although_dry_runs_are_not_answered() {
    for answer in [BROKEN, Answer::Lost, Answer::Refusal(409, "Conflict")] {
        let Paused { cluster, .. } = Paused::with(move |_| answer.clone()).await;
        let mut wished = deployment();
        (wished.spec.paused, wished.spec.replicas) = (true, 5);
        let observed = cluster.deployments.observe(Arc::new(wished), Attempt::Allowed).await.unwrap();
        assert!(matches!(cluster.deployments.decide(&observed), Action::Scale { replicas: 5, .. }));
    }
}
