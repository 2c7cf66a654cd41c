//! The object that has the child's name.

use basic_deployment_controller::decide::Action;

use super::*;

/// A child with an owner, or without one.
fn owned_by(owner: Option<Value>) -> Answer {
    let mut object = child_object("web", "found");
    object["metadata"]["ownerReferences"] = owner.into_iter().collect();
    Answer::Object(object)
}

/// The finding for these answers about the child and the `BasicDeployment`, and the requests for it.
async fn found(child: Answer, own: Answer) -> (Result<Found, StepError>, Vec<String>) {
    let answer =
        move |sent: &Sent| if sent.uri.starts_with(DEPLOYMENT) { own.clone() } else { child.clone() };
    let cluster = Cluster::of(vec![stored()], answer).await;
    let observed = cluster.observe(deployment(), Backoffs::default()).await;
    (observed.map(|observed| observed.child), cluster.asked())
}

#[tokio::test]
async fn what_the_cache_does_not_show_is_looked_up_live_and_told_apart_by_uid() {
    let look = vec![format!("GET {CHILD}")];
    let (nothing, asked) = found(MISSING, MISSING).await;
    assert_eq!((nothing.unwrap(), asked), (Found::Nothing, look.clone()));
    let (ours, asked) = found(owned_by(Some(owner("deployment"))), MISSING).await;
    assert!(matches!(ours.unwrap(), Found::Ours(child) if child.uid == "found"));
    assert_eq!(asked, look);
    let (leaving, _) = found(owned_by(Some(owner("former"))), MISSING).await;
    assert!(matches!(leaving.unwrap(), Found::Leaving(_)));
    let mut somebody = owner("former");
    somebody["name"] = "other".into();
    let (foreign, _) = found(owned_by(Some(somebody)), MISSING).await;
    assert!(matches!(foreign.unwrap(), Found::Foreign(_)));
}

#[tokio::test]
async fn a_parameter_that_the_template_of_the_child_does_not_read_is_seen() {
    let cluster = async |parameters: &str| {
        let template = TEMPLATE.replace("{image: nginx}", parameters);
        let child = json!({"apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet"});
        let settings = json!({"children": [child], "templates": {"default": template}});
        Cluster::with(serde_json::from_value(settings).unwrap(), vec![], |_| MISSING).await
    };
    let unread = async |cluster: &Cluster, misspelt: &str| {
        let mut deployment = deployment();
        let given = [("port", "8080"), (misspelt, "8081")].map(|(name, value)| (name.into(), value.into()));
        deployment.spec.parameters = given.into();
        cluster.observe(deployment, Backoffs::default()).await.unwrap().unread
    };
    let one = cluster("{port: {{ parameters.port }}}").await;
    assert_eq!(unread(&one, "prot").await, ["spec.parameters.prot (did you mean port?)"]);
    let por = unread(&one, "por").await;
    assert_eq!(
        por,
        ["spec.parameters.por (did you mean port?)"],
        "an upgraded definition may show another spec of a generation"
    );
    let whole = cluster("{{ parameters }}").await;
    assert_eq!(unread(&whole, "prot").await, [""; 0], "the child tells");
}

#[tokio::test]
async fn an_orphan_is_only_taken_for_one_while_its_next_owner_is_still_there() {
    let metadata = |uid: &str| Answer::Object(json!({"metadata": {"name": "web", "uid": uid}}));
    let (orphan, asked) = found(owned_by(None), metadata("deployment")).await;
    assert!(matches!(orphan.unwrap(), Found::Orphan(_)));
    assert_eq!(asked, [format!("GET {CHILD}"), format!("GET {DEPLOYMENT}")]);
    for own in [MISSING, metadata("another")] {
        assert_eq!(failure(found(owned_by(None), own).await.0.unwrap_err()).reason, "NotFound");
    }
}

#[tokio::test]
async fn a_child_that_went_is_made_again_only_while_its_owner_is_still_there() {
    let is_deleted = json!({"metadata": {"name": "web", "uid": "deployment", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    for own in [MISSING, Answer::Object(is_deleted)] {
        let answer = move |sent: &Sent| match (sent.verb.as_str(), sent.uri.starts_with(DEPLOYMENT)) {
            ("GET", true) => own.clone(),
            ("GET", false) => MISSING,
            _ => Answer::Object(child_object("web", "made")),
        };
        let cluster = Cluster::of(vec![stored()], answer).await;
        cluster.pass().await.unwrap();
        let first = cluster.asked();
        assert!(!first.contains(&format!("GET {DEPLOYMENT}")), "it never had a child: {first:?}");
        assert_eq!(cluster.pass().await.unwrap_err().reason, "NotFound");
        assert_eq!(cluster.asked(), [format!("GET {CHILD}"), format!("GET {DEPLOYMENT}")]);
    }
}

#[tokio::test]
async fn a_look_that_gets_no_answer_fails_the_pass() {
    for (answer, reason) in
        [(FORBIDDEN, "Forbidden"), (BROKEN, "LookUpFailed"), (Answer::Lost, "LookUpFailed")]
    {
        assert_eq!(failure(found(answer.clone(), MISSING).await.0.unwrap_err()).reason, reason);
        assert_eq!(failure(found(owned_by(None), answer).await.0.unwrap_err()).reason, reason);
    }
}

#[tokio::test]
async fn nothing_is_looked_up_that_the_cache_shows_or_that_nothing_is_done_with() {
    let shown = ("basicreplicasets", child_object("web", "shown"));
    let cluster = Cluster::of(vec![stored(), shown], |_| MISSING).await;
    let observed = cluster.observe(deployment(), Backoffs::default()).await.unwrap();
    assert!(matches!(observed.child, Found::Ours(child) if child.uid == "shown"));
    assert!(cluster.asked().is_empty());

    let cluster = Cluster::of(vec![stored()], |_| MISSING).await;
    cluster.observe(deployment(), held_up()).await.unwrap();
    assert!(cluster.asked().is_empty(), "it is backing off");

    let cluster = Cluster::of(Vec::new(), |_| MISSING).await;
    let observed = cluster.observe(deployment(), Backoffs::default()).await.unwrap();
    assert_eq!(observed.child, Found::Nothing);
    assert!(cluster.asked().is_empty(), "its revision is stored first");
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_is_held_up_takes_nothing_for_progress() {
    let shown = ("basicreplicasets", child_object("web", "shown"));
    let cluster = Cluster::of(vec![stored(), shown], |_| MISSING).await;
    let seconds = async |backoffs: Backoffs| {
        let observed = cluster.observe(deployment(), backoffs).await.unwrap();
        tokio::time::advance(Duration::from_secs(5)).await;
        observed.since_progress.as_secs()
    };
    assert_eq!(
        (seconds(held_up()).await, seconds(Backoffs::default()).await),
        (0, 0),
        "it is the first look"
    );
    assert_eq!((seconds(held_up()).await, seconds(Backoffs::default()).await), (5, 10));
}

/// A template and settings for two kinds of children, the second one of which it renders, and the stored rendering.
fn exchange_for(api_version: &str, kind: &str) -> (Settings, (&'static str, Value)) {
    let template = TEMPLATE.replace("catena.dev/v1alpha1", api_version).replace("BasicReplicaSet", kind);
    let settings: Settings = serde_json::from_value(json!({
        "children": [
            {"apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet"},
            {"apiVersion": api_version, "kind": kind},
        ],
        "templates": {"default": template},
    }))
    .unwrap();
    let wanted = render(&deployment(), &settings).unwrap();
    let stored = revision_object(&wanted, 2, "stored", "deployment");
    (settings, ("controllerrevisions", stored))
}

#[tokio::test]
async fn a_kind_that_is_cluster_scoped_is_refused_and_leaves_the_former_child_to_be_scaled() {
    let (settings, stored) = exchange_for("wide.dev/v1", "Wide");
    let listed = vec![stored, ("basicreplicasets", child_object("web", "former"))];
    let cluster = Cluster::with(settings, listed, |sent| match &*sent.uri {
        "/apis/wide.dev/v1" => Answer::Object(json!({
            "kind": "APIResourceList", "groupVersion": "wide.dev/v1",
            "resources": [{
                "name": "wides", "singularName": "wide", "namespaced": false, "kind": "Wide", "verbs": ["list"],
            }],
        })),
        _ => Answer::Json(404, "404 page not found".into()),
    })
    .await;
    let mut more = deployment();
    more.spec.replicas += 1;
    let observed = cluster.deployments.observe(Arc::new(more), Backoffs::default()).await.unwrap();
    let failure = observed.desired.clone().unwrap_err();
    assert_eq!((failure.reason, failure.is_stalled), ("KindNotNamespaced", true));
    let Action::Scale { child, is_former: false, .. } = cluster.deployments.decide(&observed) else {
        panic!()
    };
    assert_eq!(child.uid, "former");
}

#[tokio::test]
async fn a_kind_that_the_cluster_does_not_serve_leaves_the_former_child_to_be_scaled() {
    let (settings, stored) = exchange_for("example.com/v1", "Absent");
    let listed = vec![stored, ("basicreplicasets", child_object("web", "former"))];
    let cluster = Cluster::with(settings, listed, |_| MISSING).await;
    let mut more = deployment();
    more.spec.replicas += 1;
    let observed = cluster.deployments.observe(Arc::new(more), Backoffs::default()).await.unwrap();
    let failure = observed.desired.clone().unwrap_err();
    assert_eq!((failure.reason, failure.is_stalled), ("KindNotServed", false));
    let Action::Scale { child, is_former: false, .. } = cluster.deployments.decide(&observed) else {
        panic!()
    };
    assert_eq!(child.uid, "former");
}

#[test]
fn without_a_rendering_the_child_of_the_newest_revision_goes_on_which_need_not_be_the_last_one() {
    let child = |name: &str, hash: &str| {
        let mut child = Child::clone(&fixtures::child(name, name));
        child.object["metadata"]["annotations"][keys::HASH] = hash.into();
        Arc::new(child)
    };
    let revision =
        |hash: &str| Arc::new(Revision { hash: hash.into(), ..Revision::clone(&fixtures::revision("web")) });
    let children = [child("a", "oldest"), child("b", "older")];
    let revisions = ["oldest", "older", "newest"].map(revision);
    assert_eq!(last_wanted(&children, &revisions).unwrap().name, "b");
}
