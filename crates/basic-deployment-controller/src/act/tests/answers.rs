//! The effects of each answer of the server.

use operator_watch::Failure;

use super::*;

const CONFLICT: Answer = Answer::Refusal(409, "Conflict");
const TAKEN: Answer = Answer::Refusal(409, "AlreadyExists");

/// All actions that write one object.
fn writes() -> Vec<Action> {
    let of_children = [create(), apply(false), hand_token(), scale(false), scale_former(), strip()];
    let deleted = [delete(&["old"]), prune()];
    let of_others = [record(), adopt(), renumber(), write_status()];
    of_children.into_iter().chain(deleted).chain(of_others).collect()
}

fn is_done_when_gone(action: &Action) -> bool {
    matches!(action, Action::Delete(_) | Action::Prune(_))
}

/// The reason of a refusal, which for statuses is one of its own.
fn refused_as(action: &Action, otherwise: &'static str) -> &'static str {
    if matches!(action, Action::WriteStatus(_)) { "StatusRefused" } else { otherwise }
}

/// The reason of the failure that an answer causes; `None` if it causes none.
async fn reason(action: Action, answer: Answer) -> Option<&'static str> {
    match act(action, &[answer]).await.result {
        Ok(next) => {
            assert_eq!(next, Requeue::Written);
            None
        }
        Err(failures) => Some(failures.parts[0].reason),
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_or_replaced_is_expected_and_where_it_was_to_go_it_is_done() {
    for action in writes() {
        for (answer, expected) in [(Answer::Refusal(404, "NotFound"), "NotFound"), (CONFLICT, "Conflict")] {
            let Acted { result, sent, .. } = act(action.clone(), &[answer]).await;
            // A status that the server refuses in its observed state may have conditions that the cache does not show.
            let writes = sent.iter().filter(|sent| sent.verb != "GET").count();
            assert_eq!(writes, 1, "{action:?}");
            match result {
                Ok(next) => assert!(is_done_when_gone(&action) && next == Requeue::Written, "{action:?}"),
                Err(failures) => {
                    let Failure { reason, is_expected, .. } = failures.parts[0];
                    assert_eq!((reason, is_done_when_gone(&action)), (expected, false), "{action:?}");
                    assert!(is_expected);
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_forbidden_fails_whatever_it_is() {
    for action in writes() {
        let failed = reason(action.clone(), Answer::Refusal(403, "Forbidden")).await;
        assert_eq!(failed, Some(refused_as(&action, "Forbidden")), "{action:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_valid_waits_for_a_change() {
    for action in writes() {
        let Acted { result, .. } = act(action.clone(), &[Answer::Refusal(422, "Invalid")]).await;
        let Failure { reason, is_stalled, .. } = result.unwrap_err().parts[0];
        assert_eq!((reason, is_stalled), (refused_as(&action, "Invalid"), true));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_busy_is_asked_four_times_more_with_the_same_words() {
    for action in writes() {
        let busy = Answer::Refusal(429, "TooManyRequests");
        let Acted { result, sent, .. } = act(action.clone(), std::slice::from_ref(&busy)).await;
        assert_eq!(result.unwrap_err().parts[0].reason, "ServerBusy", "{action:?}");
        assert_eq!(sent.len(), 5, "{action:?}");
        assert!(sent.windows(2).all(|two| two[0] == two[1]), "{action:?}");
        let Acted { result, sent, .. } = act(action.clone(), &[busy, DONE]).await;
        assert_eq!((result.unwrap(), sent.len()), (Requeue::Written, 2), "{action:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_server_and_a_lost_answer_are_no_reason_to_ask_again_at_once() {
    for action in writes() {
        for answer in [Answer::Refusal(500, "InternalError"), Answer::Lost] {
            let Acted { result, sent, .. } = act(action.clone(), &[answer]).await;
            let Failure { reason, is_stalled, .. } = result.unwrap_err().parts[0];
            assert_eq!((reason, is_stalled), ("WriteFailed", false), "{action:?}");
            assert_eq!(sent.len(), 1, "{action:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_revision_whose_name_is_taken_is_waited_for_and_then_told_with_the_way_out() {
    let failure = &act(record(), &[TAKEN]).await.result.unwrap_err().parts[0];
    assert_eq!((failure.reason, failure.is_stalled), ("RevisionNameTaken", true));
    // The kit tells it after ten tries.
    assert_eq!((failure.is_expected, failure.retry_after), (true, Some(Duration::from_secs(1))));
    let name = revision::name("web", "deployment", "new");
    let on = format!("--namespace shop controllerrevision {name} --overwrite");
    let label = format!("kubectl label {on} {}=deployment", keys::DEPLOYMENT_UID);
    let hash = format!("kubectl annotate {on} {}=new", keys::HASH);
    assert!(failure.message.contains(&format!("({label}; {hash})")), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn only_what_was_written_is_remembered() {
    let remembers = async |action, answer| {
        let mut observed = observed();
        observed.others = vec![child("old", "former")];
        let memory = act_on(&observed, action, &[answer]).await.memory;
        let mut replicas: Vec<_> = memory.given_replicas("deployment").into_iter().collect();
        replicas.sort();
        (replicas, memory.settled_as("deployment", &desired()).is_some())
    };
    let of = |uid: &str| vec![(uid.to_owned(), 3)];
    for applied in [create(), apply(false), apply(true)] {
        assert_eq!(remembers(applied, DONE).await, (of("child"), true));
    }
    for heals in [false, true] {
        assert_eq!(remembers(scale(heals), DONE).await, (of("child"), false));
    }
    assert_eq!(remembers(scale_former(), DONE).await, (vec![("former".to_owned(), 2)], false));
    assert_eq!(remembers(strip(), DONE).await, (vec![], false));
    for action in [create(), apply(true), scale(true), strip()] {
        for answer in [Answer::Lost, CONFLICT] {
            assert_eq!(remembers(action.clone(), answer).await, (vec![], false), "{action:?}");
        }
    }
}

/// As a Deployment's containers, which are a map for an apply.
#[tokio::test(start_paused = true)]
async fn what_an_apply_leaves_in_lists_is_removed_and_what_the_server_adds_again_is_its_own() {
    let rendered = json!([{"name": "main", "resources": {"limits": {"cpu": "1000m"}}}]);
    let stored = |more: Value| {
        let mut main =
            json!({"name": "main", "imagePullPolicy": "Always", "resources": {"limits": {"cpu": "1"}}});
        main.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let metadata = json!({"uid": "child", "resourceVersion": "9"});
        json!({"metadata": metadata, "spec": {"containers": [main]}})
    };
    let mut desired = desired();
    desired.object["spec"]["containers"] = rendered.clone();
    let apply =
        |heals| Action::Apply { child: child("web", "child"), desired: desired.clone(), replicas: 3, heals };
    let (added, clean) = (stored(json!({"command": ["evil"]})), stored(json!({})));
    for heals in [false, true] {
        let answers = [added.clone(), clean.clone()].map(|answer| Answer::Json(200, answer));
        let Acted { sent, memory, .. } = act(apply(heals), &answers).await;
        let [_, removal] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!((&*removal.verb, &removal.body["spec"]), ("MERGE", &json!({"containers": rendered})));
        assert_eq!(removal.body["metadata"]["uid"], "child");
        assert_eq!(memory.settled_as("deployment", &desired), Some(desired.seen_in(&clean)));
    }
    // What is not rendered may need what was added.
    let answers = [Answer::Json(200, added.clone()), Answer::Refusal(422, "Invalid")];
    let Acted { result, memory, .. } = act(apply(true), &answers).await;
    assert_eq!(result.unwrap(), Requeue::Written);
    assert_eq!(memory.settled_as("deployment", &desired), Some(desired.seen_in(&added)));
    let settled_as = Some(desired.seen_in(&clean));
    let known = Observed { settled_as, ..observed() };
    let Acted { sent, .. } = act_on(&known, apply(true), &[Answer::Json(200, clean)]).await;
    assert_eq!(sent.len(), 1, "an apply was enough");
}

/// The other writer is looked up right before the sixth write, which takes the field over from it.
#[tokio::test(start_paused = true)]
async fn only_writes_that_undo_somebodys_change_are_counted_as_such() {
    let observed = observed();
    for (healing, asking) in [(apply(true), apply(false)), (scale(true), scale(false)), (strip(), renumber())]
    {
        for (action, look_ups) in [(healing, 1), (asking, 0)] {
            let (client, log) = answering(|_| DONE);
            let executor = Executor::new(Writer::over(client, MANAGER), revisions(), Memory::default());
            for _ in 0..6 {
                executor.act(&observed, action.clone()).await.unwrap();
            }
            let asked = log.take().iter().filter(|sent| sent.verb == "GET").count();
            assert_eq!(asked, look_ups, "{action:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_of_one_keeps_no_other_from_going_and_a_silent_server_does() {
    let refused = Answer::Refusal(403, "Forbidden");
    let Acted { result, sent, .. } = act(delete(&["a", "b", "c"]), &[refused, DONE]).await;
    assert_eq!((result.unwrap_err().parts[0].reason, sent.len()), ("Forbidden", 3));
    let Acted { result, sent, .. } = act(delete(&["a", "b", "c"]), &[Answer::Lost, DONE]).await;
    assert_eq!((result.unwrap_err().parts[0].reason, sent.len()), ("WriteFailed", 1));
}
