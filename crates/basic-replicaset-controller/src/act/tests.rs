//! Each step as the requests that it makes, and what follows from each answer.

use basic_replicaset_controller::{
    observed::Holder,
    pod::{PodRow, PodState},
};
use catena_api::{BasicReplicaSetSpec, BasicReplicaSetStatus};
use http::{Request, Response, StatusCode};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::client::Body;
use operator_kit::report::Reported;
use tower_test::mock::{Handle, pair};

use super::*;

const MANAGER: &str = "basic-replicaset-controller";
const PODS: &str = "/api/v1/namespaces/shop/pods";

/// What the server does with a request.
#[derive(Clone, Copy, Debug)]
enum Answer {
    /// It answers with a status.
    Code(u16),
    /// It may have done it, but its answer is lost.
    Lost,
}
use Answer::{Code, Lost};

/// A request as far as steps differ by it.
#[derive(Debug, PartialEq)]
struct Sent {
    verb: String,
    path: String,
    body: Value,
}

fn set() -> BasicReplicaSet {
    BasicReplicaSet {
        metadata: ObjectMeta {
            name: Some("web".into()),
            namespace: Some("shop".into()),
            uid: Some("set".into()),
            resource_version: Some("7".into()),
            ..ObjectMeta::default()
        },
        spec: BasicReplicaSetSpec { replicas: 1, template: "default".into(), ..Default::default() },
        status: None,
    }
}

fn orphan() -> Arc<PodRow> {
    Arc::new(PodRow {
        namespace: "shop".into(),
        name: "web-x".into(),
        uid: "pod".into(),
        owner: None,
        revision: "r".into(),
        slot: Some(0),
        created: Timestamp::UNIX_EPOCH,
        deletion_cost: 0,
        state: PodState::Ready,
    })
}

fn create() -> Action {
    Action::Create { revision: "r".into(), slots: vec![0] }
}

fn name() -> String {
    format!("web-{}", Origin { set: "set", revision: "r", slot: "0" }.suffix())
}

/// Takes a step against a server that answers in this way, to the last answer for ever.
async fn take(action: Action, answers: &[Answer]) -> (Vec<Sent>, Result<Next, Error>, Memory) {
    let template = "{apiVersion: v1, kind: Pod, metadata: {name: {{ name ~ '-' ~ suffix }}}}";
    let settings = serde_json::from_value(json!({"templates": {"default": template}})).unwrap();
    let (service, handle) = pair::<Request<Body>, Response<Body>>();
    let client = kube::Client::new(service, "default");
    let memory = Memory::default();
    let executor = Executor::new(
        Settings::fixed(settings),
        Writer::over(client, MANAGER),
        Seen::unwatched(),
        memory.clone(),
    );
    let mut sent = Vec::new();
    let web = set();
    let result = tokio::select! {
        result = executor.act(&web, action) => result,
        () = serve(handle, answers, &mut sent) => panic!("the server ended"),
    };
    (sent, result, memory)
}

async fn serve(mut handle: Handle<Request<Body>, Response<Body>>, answers: &[Answer], sent: &mut Vec<Sent>) {
    let mut answers = answers.iter().chain(std::iter::repeat(answers.last().unwrap_or(&Code(200))));
    while let (Some((request, respond)), Some(answer)) = (handle.next_request().await, answers.next()) {
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await.unwrap();
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        sent.push(Sent { verb: parts.method.to_string(), path: parts.uri.to_string(), body: body.clone() });
        match *answer {
            Lost => respond.send_error(std::io::Error::other("the connection was reset")),
            Code(code) if code < 300 => respond.send_response(
                Response::builder().status(code).body(Body::from(body.to_string().into_bytes())).unwrap(),
            ),
            Code(code) => {
                let reason = if code == 409 { "AlreadyExists" } else { "" };
                let status = json!({
                    "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
                    "message": format!("answer {code}"), "metadata": {},
                });
                let body = Body::from(status.to_string().into_bytes());
                let code = StatusCode::from_u16(code).unwrap();
                respond.send_response(Response::builder().status(code).body(body).unwrap());
            }
        }
    }
}

/// What an answer leads to: the reason that is told, and the places or pods that are held up; of none, the whole step.
async fn outcome(action: Action, answer: Answer) -> Result<Next, (&'static str, Vec<Option<String>>)> {
    let (_, result, _) = take(action, &[answer]).await;
    result.map_err(|error| (error.reason(), error.parts().into_iter().map(|part| part.item).collect()))
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_created_under_the_name_that_follows_from_its_place_with_all_marks_at_once() {
    let (sent, result, _) = take(create(), &[Code(201)]).await;
    assert_eq!(result.unwrap(), Next::Written);
    let [Sent { verb, path, body }] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((verb.as_str(), path.split('?').next()), ("POST", Some(PODS)));
    assert!(path.contains(&format!("fieldManager={MANAGER}")), "{path}");
    assert_eq!(body["metadata"]["name"], name());
    assert_eq!(body["metadata"]["labels"], json!({keys::REPLICA_SET_UID: "set"}));
    assert_eq!(body["metadata"]["annotations"], json!({keys::HASH: "r", keys::SLOT: "0"}));
    assert_eq!(body["metadata"]["ownerReferences"][0]["uid"], "set");
    assert_eq!(body["metadata"]["ownerReferences"][0]["controller"], true);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_is_noted_for_the_next_pass_to_look_whose_it_is() {
    let (sent, result, memory) = take(create(), &[Code(409)]).await;
    assert_eq!((sent.len(), result.unwrap()), (1, Next::Again));
    let taken = memory.names_taken("set");
    assert_eq!(taken.get(&0).map(|taken| taken.name.clone()), Some(name()));
}

#[tokio::test(start_paused = true)]
async fn what_keeps_a_pod_from_being_created_holds_up_all_creates() {
    let step = || vec![None];
    for (answer, reason) in [
        (Code(403), "Forbidden"),
        (Code(422), "Invalid"),
        (Code(429), "ServerBusy"),
        (Code(500), "WriteFailed"),
        (Lost, "WriteFailed"),
    ] {
        assert_eq!(outcome(create(), answer).await, Err((reason, step())), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_busy_is_asked_again_and_a_lost_answer_is_not_repeated_blindly() {
    let (sent, result, _) = take(create(), &[Code(429), Code(429), Code(201)]).await;
    assert_eq!((sent.len(), result.unwrap()), (3, Next::Written));
    let (sent, result, _) = take(create(), &[Lost]).await;
    assert_eq!((sent.len(), result.is_err()), (1, true), "the next pass meets its own pod, or none");
}

#[tokio::test(start_paused = true)]
async fn names_of_others_hold_up_their_places_alone_and_nothing_is_written() {
    let names = vec![TakenName { slot: 4, name: "web-4".into(), holder: Holder::Other }];
    let (sent, result, _) = take(Action::PassOver(names.clone()), &[Code(200)]).await;
    assert!(sent.is_empty() && result.is_err());
    let outcome = outcome(Action::PassOver(names), Code(200)).await;
    assert_eq!(outcome, Err(("PodNameTaken", vec![Some("4".into())])));
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_marked_taken_back_and_deleted_only_as_the_very_pod_that_was_seen() {
    let mark = Action::Mark { name: "web-x".into(), uid: "pod".into(), slot: 3 };
    let (sent, ..) = take(mark, &[Code(200)]).await;
    assert_eq!((sent[0].verb.as_str(), sent[0].body["metadata"]["uid"].as_str()), ("PATCH", Some("pod")));
    assert_eq!(sent[0].body["metadata"]["annotations"], json!({keys::SLOT: "3"}));
    assert!(sent[0].path.starts_with(&format!("{PODS}/web-x?")), "{}", sent[0].path);

    let (sent, ..) = take(Action::Adopt(vec![orphan()]), &[Code(200)]).await;
    assert_eq!((sent[0].verb.as_str(), sent[0].body["metadata"]["uid"].as_str()), ("PATCH", Some("pod")));
    assert_eq!(sent[0].body["metadata"]["ownerReferences"][0]["uid"], "set");

    let (sent, ..) = take(Action::Delete(vec![orphan()]), &[Code(200)]).await;
    assert_eq!(
        (sent[0].verb.as_str(), sent[0].body["preconditions"]["uid"].as_str()),
        ("DELETE", Some("pod"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_delete_that_is_refused_holds_up_its_pod_alone_and_one_that_is_gone_is_done() {
    let delete = || Action::Delete(vec![orphan()]);
    assert_eq!(outcome(delete(), Code(404)).await, Ok(Next::Written));
    for answer in [Code(403), Code(422), Code(500)] {
        let refused = Err(("DeleteRefused", vec![Some("pod".into())]));
        assert_eq!(outcome(delete(), answer).await, refused, "{answer:?}");
    }
    for (answer, reason) in [(Code(429), "ServerBusy"), (Lost, "WriteFailed")] {
        assert_eq!(outcome(delete(), answer).await, Err((reason, vec![None])), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_orphan_that_cannot_be_taken_back_holds_up_itself_alone() {
    let adopt = || Action::Adopt(vec![orphan()]);
    for answer in [Code(403), Code(404), Code(409), Code(422)] {
        let Err((_, items)) = outcome(adopt(), answer).await else { panic!("{answer:?}") };
        assert_eq!(items, [Some("pod".into())], "{answer:?}");
    }
    assert_eq!(outcome(adopt(), Code(429)).await, Err(("ServerBusy", vec![None])));
}

#[tokio::test(start_paused = true)]
async fn the_status_is_written_by_itself_and_of_the_very_set() {
    let status = BasicReplicaSetStatus { replicas: 1, ..BasicReplicaSetStatus::default() };
    let (sent, result, _) = take(Action::WriteStatus(Box::new(status)), &[Code(200)]).await;
    assert_eq!(result.unwrap(), Next::Written);
    let first = &sent[0];
    assert!(first.path.contains("/namespaces/shop/basicreplicasets/web/status"), "{}", first.path);
    assert_eq!(first.body["metadata"]["uid"], "set");
    assert_eq!(first.body["status"]["replicas"], 1);
    assert!(first.body.get("spec").is_none());
}
