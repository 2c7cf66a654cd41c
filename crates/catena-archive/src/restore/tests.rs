//! Restorations on a server that refuses something.

use std::sync::atomic::{AtomicBool, Ordering};

use catena_api::{Pin, keys};
use catena_cluster::testing::{Answer, answering, status};
use http::{Method, StatusCode};
use serde_json::json;

use super::*;
use crate::{
    commands::{COMMAND_OF_OTHERS, REQUEST_OF_OTHERS},
    folder::Scope,
    manifest::tests::manifest,
};

const DEPLOYMENT: &str = "/apis/catena.dev/v1alpha1/namespaces/shop/basicdeployments/web";
const RESTART: &str = "/apis/catena.dev/v1alpha1/namespaces/shop/basicdeploymentrestarts/again";
const SECRET: &str = "/api/v1/namespaces/shop/secrets/key";

fn deployment() -> Manifest {
    manifest("BasicDeployment", "web", &json!({"spec": {"replicas": 3}}))
}

/// A restart of it that has succeeded.
fn ended() -> Manifest {
    let owner = json!({"apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment", "name": "web", "uid": "uid-of-web"});
    let status =
        json!({"startTime": "2026-01-01T00:00:00Z", "conditions": [{"type": "Succeeded", "status": "True"}]});
    manifest(
        "BasicDeploymentRestart",
        "again",
        &json!({"spec": {"targetRef": {"name": "web"}}, "status": status, "ownerReferences": [owner]}),
    )
}

/// Stores objects as the API server does, unless the answer is another one.
fn store(
    objects: &[(&str, Value)],
    mut otherwise: impl FnMut(&Method, &str) -> Option<Answer> + Send + 'static,
) -> (Cluster, catena_cluster::testing::Requests) {
    let mut objects: std::collections::HashMap<String, Value> =
        objects.iter().map(|(path, object)| ((*path).to_owned(), object.clone())).collect();
    answering(move |method, uri, body| {
        if let Some(answer) = otherwise(method, uri) {
            return answer;
        }
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        if path.ends_with("/customresourcedefinitions") || path.ends_with("/configmaps") {
            return (StatusCode::OK, definitions(&[]));
        }
        let place = path.trim_end_matches("/status");
        let found = objects.get(place).cloned();
        match *method {
            Method::POST => {
                let mut object = body.clone();
                let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                let manager = query.rsplit("fieldManager=").next().unwrap();
                object["metadata"]["uid"] = format!("new-{name}").into();
                object["metadata"]["managedFields"] =
                    json!([{"manager": manager, "fieldsV1": {"f:spec": {"f:paused": {}}}}]);
                objects.insert(format!("{path}/{name}"), object.clone());
                (StatusCode::CREATED, object)
            }
            Method::PATCH => {
                let Some(mut object) = found else { return status(404, "NotFound", "not found") };
                for part in ["metadata", "spec", "status"] {
                    for (field, value) in body[part].as_object().into_iter().flatten() {
                        object[part][field] = value.clone();
                    }
                }
                objects.insert(place.to_owned(), object.clone());
                (StatusCode::OK, object)
            }
            Method::PUT => {
                objects.insert(place.to_owned(), body.clone());
                (StatusCode::OK, body.clone())
            }
            Method::DELETE => {
                objects.remove(place);
                (StatusCode::OK, json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}))
            }
            _ => {
                found.map_or_else(|| status(404, "NotFound", "not found"), |object| (StatusCode::OK, object))
            }
        }
    })
}

/// A list of definitions.
fn definitions(names: &[&str]) -> Value {
    let items: Vec<_> = names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
    json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items})
}

async fn restored(cluster: &Cluster, objects: Vec<Manifest>) -> Report {
    restored_with(Choices::default(), cluster, objects).await
}

async fn restored_with(choices: Choices, cluster: &Cluster, objects: Vec<Manifest>) -> Report {
    let commands = command_kinds(cluster).await.unwrap();
    let mut restoration = Restoration::new(cluster, choices, commands, &objects);
    restoration.all(objects).await;
    restoration.result
}

async fn live(cluster: &Cluster, path: &str) -> Option<Value> {
    cluster.client.request(http::Request::get(path).body(Vec::new()).unwrap()).await.ok()
}

#[tokio::test]
async fn a_command_whose_outcome_cannot_be_written_is_taken_back_before_its_target_goes_on() {
    let (cluster, requests) = store(&[], |method, uri| {
        (*method == Method::PATCH && uri.contains("again/status"))
            .then(|| status(500, "InternalError", "no status today"))
    });
    let report = restored(&cluster, vec![deployment(), ended()]).await;
    assert_eq!((report.restored.len(), report.failed.len()), (1, 1), "{report:?}");
    assert_eq!(report.failed[0].why, "no status today");
    assert!(live(&cluster, RESTART).await.is_none());
    assert!(live(&cluster, DEPLOYMENT).await.unwrap()["spec"]["paused"].is_null());
    let requests = requests.lock().unwrap();
    let place = |told: &str| requests.iter().position(|request| request.starts_with(told)).unwrap();
    assert!(
        place(&format!("DELETE {RESTART}"))
            < place("POST /apis/catena.dev/v1alpha1/namespaces/shop/basicdeployments?")
    );
}

#[tokio::test]
async fn data_is_there_before_its_owner_which_is_set_later() {
    let owner = json!({"apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment", "name": "web", "uid": "uid-of-web"});
    let secret = json!({"apiVersion": "v1", "data": {"key": "a2V5"}, "ownerReferences": [owner]});
    let (cluster, requests) = store(&[], |_, _| None);
    let report = restored(&cluster, vec![deployment(), manifest("Secret", "key", &secret)]).await;
    assert_eq!((report.restored.len(), report.failed.len()), (2, 0), "{report:?}");
    let secret = live(&cluster, SECRET).await.unwrap();
    assert_eq!(secret["metadata"]["ownerReferences"][0]["uid"], "new-web");
    assert!(!create::is_incomplete(&secret, "uid-of-key"), "{secret}");
    let requests = requests.lock().unwrap();
    let place = |told: &str| requests.iter().position(|request| request.starts_with(told)).unwrap();
    assert!(
        place("POST /api/v1/namespaces/shop/secrets?")
            < place("POST /apis/catena.dev/v1alpha1/namespaces/shop/basicdeployments?")
    );
}

#[tokio::test]
async fn what_a_pod_owned_comes_back_without_it_because_no_backup_has_it() {
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "build", "uid": "uid-of-build"});
    let secret = json!({"apiVersion": "v1", "data": {"key": "a2V5"}, "ownerReferences": [owner]});
    let (cluster, _) = store(&[], |_, _| None);
    let report = restored(&cluster, vec![manifest("Secret", "key", &secret)]).await;
    assert_eq!((report.restored.len(), report.failed.len()), (1, 0), "{report:?}");
    let secret = live(&cluster, SECRET).await.unwrap();
    assert_eq!(secret["metadata"]["ownerReferences"], Value::Null);
    assert!(!create::is_incomplete(&secret, "uid-of-key"), "the next backup has it: {secret}");
}

#[tokio::test]
async fn what_a_pod_makes_itself_or_an_operator_made_for_one_is_left_out() {
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "web-1", "uid": "uid-of-web-1", "controller": true});
    let of_pod = |kind: &str, version: &str| {
        manifest(kind, "cache", &json!({"apiVersion": version, "ownerReferences": [owner]}))
    };
    let (cluster, _) = store(&[], |_, _| None);
    for (object, why) in [
        (of_pod("PersistentVolumeClaim", "v1"), "its pod makes it again"),
        (of_pod("Reindex", "acme.dev/v1"), REQUEST_OF_OTHERS),
    ] {
        let report = restored(&cluster, vec![object]).await;
        let left: Vec<&str> = report.left_out.iter().map(|note| note.why.as_str()).collect();
        assert_eq!(left, [why], "{report:?}");
    }
}

#[tokio::test]
async fn an_object_that_lacks_something_of_the_backup_is_told_and_additions_of_others_are_not() {
    for (replicas, differing) in [(3, 0), (2, 1)] {
        let web = json!({
            "metadata": {"name": "web", "uid": "live", "labels": {"by": "others"}},
            "spec": {"replicas": replicas, "template": "default"}, "status": {"ready": true},
        });
        let (cluster, _) = store(&[(DEPLOYMENT, web)], |_, _| None);
        let report = restored(&cluster, vec![deployment()]).await;
        assert_eq!((report.present.len(), report.differing.len()), (1, differing), "{report:?}");
        assert!(report.differing.iter().all(|note| note.why.contains("in spec.replicas:")), "{report:?}");
    }
}

#[tokio::test]
async fn an_overwritten_object_has_the_content_of_the_backup_and_stays_the_same_object() {
    let metadata = json!({"name": "web", "namespace": "shop", "uid": "live", "resourceVersion": "7"});
    let web = json!({"metadata": metadata, "spec": {"replicas": 2, "paused": true}});
    let (cluster, _) = store(&[(DEPLOYMENT, web)], |_, _| None);
    let overwrite = Choices { overwrite: true, ..Choices::default() };
    let report = restored_with(overwrite, &cluster, vec![deployment()]).await;
    assert_eq!((report.overwritten.len(), report.failed.len()), (1, 0), "{report:?}");
    assert_eq!(report.overwritten[0].uid, "live");
    let web = live(&cluster, DEPLOYMENT).await.unwrap();
    assert_eq!((&web["metadata"], &web["spec"]), (&metadata, &json!({"replicas": 3})));
}

/// As one whose stored version lacks a field.
#[tokio::test]
async fn what_the_server_does_not_keep_is_told() {
    let map = |data: Value| manifest("Secret", "map", &json!({"apiVersion": "v1", "data": data}));
    let place = "/api/v1/namespaces/shop/secrets/map";
    let mut kept = map(json!({"a": "1"})).object().clone();
    kept["metadata"]["uid"] = "live".into();
    for overwrite in [false, true] {
        let there: Vec<_> = overwrite.then(|| (place, kept.clone())).into_iter().collect();
        let mut answer = kept.clone();
        let (cluster, _) = store(&there, move |method, uri| {
            let manager = uri.rsplit("fieldManager=").next().unwrap_or_default();
            answer["metadata"]["managedFields"] = json!([{"manager": manager}]);
            [Method::POST, Method::PUT].contains(method).then(|| (StatusCode::OK, answer.clone()))
        });
        let choices = Choices { overwrite, ..Choices::default() };
        let report = restored_with(choices, &cluster, vec![map(json!({"a": "1", "b": "2"}))]).await;
        let told: Vec<_> = report.differing.iter().map(|note| &*note.why).collect();
        let is_told = told
            .first()
            .is_some_and(|why| why.starts_with("the server keeps data.b otherwise than in the backup: "));
        assert!(is_told, "{report:?}");
    }
}

#[tokio::test]
async fn what_only_moves_forward_or_has_no_other_writer_stays_in_an_overwritten_object() {
    let spec = |token: &str| json!({"replicas": 3, "restartedAt": token});
    let web = json!({
        "metadata": {"name": "web", "namespace": "shop", "uid": "live"},
        "spec": spec("2026-02-02T00:00:00Z"), "status": {"history": ["of a kind without a subresource for it"]},
    });
    let saved = || vec![manifest("BasicDeployment", "web", &json!({"spec": spec("2026-01-01T00:00:00Z")}))];
    for overwrite in [false, true] {
        let (cluster, _) = store(&[(DEPLOYMENT, web.clone())], |_, _| None);
        let report = restored_with(Choices { overwrite, ..Choices::default() }, &cluster, saved()).await;
        let counts = (report.overwritten.len(), report.differing.len(), report.failed.len());
        assert_eq!(counts, (usize::from(overwrite), 0, 0), "{report:?}");
        let live = live(&cluster, DEPLOYMENT).await.unwrap();
        assert_eq!((&live["spec"], &live["status"]), (&web["spec"], &web["status"]));
    }
}

#[tokio::test]
async fn an_overwritten_object_stays_rolled_back_and_keeps_the_record_of_its_commands() {
    let pin = |uid: &str| Pin { uid: uid.into(), hash: "good".into(), rejects: "bad".into() }.to_json();
    let commands = r#"[{"created": "2026-01-01T00:00:00Z", "uid": "ran"}]"#;
    let pinned = json!({"annotations": {keys::PINNED_REVISION: pin("uid-of-web")}, "spec": {"replicas": 3}});
    let pinned = manifest("BasicDeployment", "web", &pinned);
    for (saved, expected) in [(pinned, Some(pin("live"))), (deployment(), None)] {
        let metadata = json!({"name": "web", "namespace": "shop", "uid": "live", "annotations": {keys::COMMANDS: commands}});
        let (cluster, _) = store(&[(DEPLOYMENT, json!({"metadata": metadata, "spec": {}}))], |_, _| None);
        let overwrite = Choices { overwrite: true, ..Choices::default() };
        let report = restored_with(overwrite, &cluster, vec![saved]).await;
        assert_eq!((report.overwritten.len(), report.failed.len()), (1, 0), "{report:?}");
        let annotations = live(&cluster, DEPLOYMENT).await.unwrap()["metadata"]["annotations"].clone();
        assert_eq!(annotations[keys::PINNED_REVISION].as_str(), expected.as_deref());
        assert_eq!(annotations[keys::COMMANDS], commands);
    }
}

#[tokio::test]
async fn a_token_that_kubernetes_has_written_is_as_good_as_that_of_the_backup_and_stays() {
    let token = |uid: &str, data: &str| {
        let annotations =
            json!({"kubernetes.io/service-account.name": "web", "kubernetes.io/service-account.uid": uid});
        json!({
            "apiVersion": "v1", "type": "kubernetes.io/service-account-token", "annotations": annotations,
            "data": {"token": data},
        })
    };
    let mut there = manifest("Secret", "key", &token("live-web", "bGl2ZQ==")).object().clone();
    there["metadata"]["uid"] = "live".into();
    for overwrite in [false, true] {
        let (cluster, _) = store(&[(SECRET, there.clone())], |_, _| None);
        let choices = Choices { overwrite, ..Choices::default() };
        let saved = manifest("Secret", "key", &token("uid-of-web", "b2xk"));
        let report = restored_with(choices, &cluster, vec![saved]).await;
        let counts = (report.overwritten.len(), report.differing.len(), report.failed.len());
        assert_eq!(counts, (usize::from(overwrite), 0, 0), "{report:?}");
        assert_eq!(live(&cluster, SECRET).await.unwrap(), there);
    }
}

#[tokio::test]
async fn an_object_whose_version_is_no_longer_served_comes_back_in_another_one() {
    let reindex = manifest("Reindex", "now", &json!({"apiVersion": "acme.dev/v1alpha1"}));
    let owner =
        json!({"apiVersion": "acme.dev/v1alpha1", "kind": "Reindex", "name": "now", "uid": "uid-of-now"});
    let secret = manifest("Secret", "key", &json!({"apiVersion": "v1", "ownerReferences": [owner]}));
    let (cluster, _) = store(&[], |_, _| None);
    for _ in 0..2 {
        let report = restored(&cluster, vec![reindex.clone(), secret.clone()]).await;
        assert_eq!((report.failed.len(), report.differing.len()), (0, 0), "{report:?}");
        let now = live(&cluster, "/apis/acme.dev/v1/namespaces/shop/reindexes/now").await.unwrap();
        let owner = live(&cluster, SECRET).await.unwrap()["metadata"]["ownerReferences"][0].clone();
        assert_eq!([&now["apiVersion"], &owner["apiVersion"]], ["acme.dev/v1"; 2]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_target_of_a_waiting_command_goes_on_only_when_that_is_there() {
    let owner = json!({"apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment", "name": "web", "uid": "uid-of-web"});
    for owners in [json!([]), json!([owner])] {
        let waiting = json!({"spec": {"targetRef": {"name": "web"}}, "ownerReferences": owners});
        let waiting = manifest("BasicDeploymentRestart", "again", &waiting);
        let was_refused = AtomicBool::default();
        let (cluster, _) = store(&[], move |method, uri| {
            let is_first = *method == Method::POST
                && uri.contains("/basicdeploymentrestarts?")
                && !was_refused.swap(true, Ordering::Relaxed);
            is_first.then(|| status(403, "Forbidden", "not now"))
        });
        let report = restored(&cluster, vec![deployment(), waiting.clone()]).await;
        let told: Vec<&str> = report.failed.iter().map(|note| note.why.as_str()).collect();
        assert!(
            told.len() == 2 && told[0] == "not now" && told[1].starts_with("it stays paused"),
            "{report:?}"
        );
        let report = restored(&cluster, vec![deployment(), waiting]).await;
        assert!(report.failed.is_empty() && report.left_out.is_empty(), "{report:?}");
        assert!(live(&cluster, RESTART).await.is_some());
        assert!(live(&cluster, DEPLOYMENT).await.unwrap()["spec"]["paused"].is_null());
    }
}

#[tokio::test]
async fn a_command_that_others_own_does_not_run_again_on_a_live_target() {
    let owner =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "issuer", "uid": "uid-of-issuer"});
    let waiting = json!({"spec": {"targetRef": {"name": "web"}}, "ownerReferences": [owner]});
    let objects = vec![
        manifest("Deployment", "issuer", &json!({"apiVersion": "apps/v1"})),
        manifest("BasicDeploymentRestart", "again", &waiting),
    ];
    let web = json!({"metadata": {"name": "web", "uid": "live"}, "spec": {}});
    let (cluster, _) = store(&[(DEPLOYMENT, web)], |_, _| None);
    let report = restored(&cluster, objects).await;
    assert_eq!((report.left_out.len(), report.restored.len()), (1, 1), "{report:?}");
}

#[tokio::test]
async fn a_volume_waits_for_a_claim_of_the_name_and_is_never_given_back() {
    let of = |kind: &str, name: &str, mut fields: Value| {
        fields["apiVersion"] = "v1".into();
        manifest(kind, name, &fields)
    };
    let claim = of(
        "PersistentVolumeClaim",
        "data",
        json!({
            "annotations": {"pv.kubernetes.io/bind-completed": "yes", "team": "a"},
            "spec": {"volumeName": "disk"},
        }),
    );
    let volume = |claim: &str| {
        let claim = json!({"name": "data", "namespace": "shop", "uid": claim, "resourceVersion": "7"});
        of("PersistentVolume", "disk", json!({"namespace": null, "spec": {"claimRef": claim}}))
    };
    let (claims, volumes) =
        ("/api/v1/namespaces/shop/persistentvolumeclaims/data", "/api/v1/persistentvolumes/disk");
    let (cluster, _) = store(&[], |_, _| None);
    let report = restored(&cluster, vec![volume("uid-of-data"), claim]).await;
    assert!(report.failed.is_empty() && report.restored.len() == 2, "{report:?}");
    assert_eq!(live(&cluster, claims).await.unwrap()["metadata"]["annotations"], json!({"team": "a"}));
    let waits = json!({"name": "data", "namespace": "shop"});
    assert_eq!(live(&cluster, volumes).await.unwrap()["spec"]["claimRef"], waits);
    // The claim has another volume by now: this one waits, and is not given back.
    let other = json!({"metadata": {"name": "data", "uid": "live"}, "spec": {"volumeName": "other"}});
    for (claim, objects) in [("uid-of-another", vec![]), ("uid-of-data", vec![(claims, other)])] {
        let (cluster, _) = store(&objects, |_, _| None);
        let named = of("PersistentVolumeClaim", "data", json!({}));
        restored(&cluster, vec![volume(claim), named]).await;
        assert_eq!(live(&cluster, volumes).await.unwrap()["spec"]["claimRef"], waits);
    }
    // What is bound stays so.
    let bound = json!({"name": "data", "namespace": "shop", "uid": "live-data"});
    let disk = json!({"metadata": {"name": "disk", "uid": "live"}, "spec": {"claimRef": bound}});
    let (cluster, _) = store(&[(volumes, disk)], |_, _| None);
    let overwrite = Choices { overwrite: true, ..Choices::default() };
    restored_with(overwrite, &cluster, vec![volume("uid-of-data")]).await;
    assert_eq!(live(&cluster, volumes).await.unwrap()["spec"]["claimRef"], bound);
}

#[tokio::test]
async fn the_certificate_of_another_cluster_is_not_brought_back() {
    let certificate = manifest("ConfigMap", "kube-root-ca.crt", &json!({"apiVersion": "v1"}));
    let report = restored(&store(&[], |_, _| None).0, vec![certificate]).await;
    assert_eq!((report.left_out.len(), report.failed.len()), (1, 0), "{report:?}");
}

#[tokio::test]
async fn a_claim_whose_volume_cannot_be_its_own_is_told_as_not_restored() {
    let claim = json!({"apiVersion": "v1", "spec": {"volumeName": "disk"}});
    let claim = manifest("PersistentVolumeClaim", "data", &claim);
    let volumes = "/api/v1/persistentvolumes/disk";
    let of = |namespace: &str, uid: Value| {
        let claim = json!({"namespace": namespace, "name": "data", "uid": uid});
        json!({"metadata": {"name": "disk"}, "spec": {"claimRef": claim}})
    };
    for (volume, told) in [
        (Some(of("shop", Value::Null)), None),
        (Some(of("shop", "new-data".into())), None),
        (Some(of("shop", "former".into())), Some("its volume \"disk\" is that of another claim")),
        // It waits for the claim from which this one is a copy.
        (Some(of("former", Value::Null)), Some("its volume \"disk\" is that of another claim")),
        (None, Some("its volume \"disk\" is gone")),
        (
            Some(json!({"metadata": {"name": "disk", "deletionTimestamp": "2026-01-01T00:00:00Z"}})),
            Some("its volume \"disk\" is being deleted"),
        ),
    ] {
        let objects: Vec<_> = volume.map(|volume| (volumes, volume)).into_iter().collect();
        let (cluster, _) = store(&objects, |_, _| None);
        // Also if it is there already.
        for _ in 0..2 {
            let report = restored(&cluster, vec![claim.clone()]).await;
            let is_told =
                report.failed.first().map(|note| told.is_some_and(|told| note.why.starts_with(told)));
            assert_eq!(is_told, told.map(|_| true), "{report:?}");
            assert_eq!(report.restored.len() + report.present.len() + report.failed.len(), 1, "{report:?}");
        }
        let claim = live(&cluster, "/api/v1/namespaces/shop/persistentvolumeclaims/data").await.unwrap();
        assert!(!create::is_incomplete(&claim, "uid-of-data"), "{claim}");
    }
    // One that is in use is bound, whatever waits for its volume.
    let bound =
        json!({"metadata": {"uid": "other"}, "spec": {"volumeName": "disk"}, "status": {"phase": "Bound"}});
    let (cluster, _) = store(&[("/api/v1/namespaces/shop/persistentvolumeclaims/data", bound)], |_, _| None);
    let report = restored(&cluster, vec![claim.clone()]).await;
    assert!(report.failed.is_empty(), "{report:?}");
    // Who may not read volumes is told nothing.
    let (cluster, _) = store(&[], |_, uri| uri.contains("volumes/").then(|| status(403, "Forbidden", "no")));
    assert!(restored(&cluster, vec![claim]).await.failed.is_empty());
}

#[tokio::test]
async fn a_namespace_that_is_missing_or_on_its_way_out_is_told_with_what_to_do() {
    let missing = json!({"code": 404, "reason": "NotFound", "message": "namespaces \"shop\" not found", "details": {"kind": "namespaces", "name": "shop"}});
    let ending = json!({
        "code": 403, "message": "it is forbidden: the namespace is being terminated",
        "details": {"causes": [{"reason": "NamespaceTerminating", "message": "namespace shop is being terminated"}]},
    });
    for (code, answer, remedy) in [
        (StatusCode::NOT_FOUND, missing, "not found: create it, and restore again"),
        (
            StatusCode::FORBIDDEN,
            ending,
            "terminated: create the namespace when it is gone, and restore again",
        ),
    ] {
        let (cluster, _) =
            store(&[], move |method, _| (*method == Method::POST).then(|| (code, answer.clone())));
        let report = restored(&cluster, vec![deployment()]).await;
        let why = &report.failed[0].why;
        assert!(why.ends_with(remedy), "{why}");
    }
}

#[tokio::test]
async fn the_target_of_a_command_that_stays_without_its_outcome_stays_paused() {
    for unanswered in [Method::DELETE, Method::GET] {
        let (cluster, requests) = store(&[], move |method, uri| {
            let is_lost = *method == unanswered || uri.contains("again/status");
            (uri.contains("basicdeploymentrestarts") && is_lost)
                .then(|| status(504, "Timeout", "the request timed out"))
        });
        let report = restored(&cluster, vec![deployment(), ended()]).await;
        let told: Vec<&str> = report.failed.iter().map(|note| note.why.as_str()).collect();
        assert!(told[0].contains("its target stays paused: the request timed out"), "{told:?}");
        assert!(told[1].starts_with("it stays paused"), "{told:?}");
        assert_eq!(live(&cluster, DEPLOYMENT).await.unwrap()["spec"]["paused"], true, "{requests:?}");
    }
}

#[tokio::test]
async fn a_command_of_another_project_is_not_brought_back_nor_anything_below_it() {
    let owner = |kind: &str, name: &str, version: &str| json!({"ownerReferences": [{"apiVersion": version, "kind": kind, "name": name, "uid": format!("uid-of-{name}")}]});
    let mut reindex = owner("BasicDeployment", "web", "catena.dev/v1alpha1");
    reindex["apiVersion"] = "acme.dev/v1".into();
    let reindex = manifest("Reindex", "now", &reindex);
    let mut below = owner("Reindex", "now", "acme.dev/v1");
    below["apiVersion"] = "v1".into();
    let service = manifest("Service", "below", &below);
    let (cluster, requests) = store(&[], |_, uri| {
        let declared = definitions(&["reindexes.acme.dev"]);
        uri.contains("catena.dev%2Fcommand").then_some((StatusCode::OK, declared))
    });
    let report = restored(&cluster, vec![deployment(), reindex, service]).await;
    let left: Vec<(&str, &str)> =
        report.left_out.iter().map(|note| (note.object.name.as_str(), note.why.as_str())).collect();
    assert_eq!(left, [("now", COMMAND_OF_OTHERS), ("below", "its owner is left out")]);
    assert!(report.failed.is_empty(), "{report:?}");
    assert!(
        !requests
            .lock()
            .unwrap()
            .iter()
            .any(|request| request.starts_with("POST") && request.contains("acme"))
    );
    assert!(live(&cluster, DEPLOYMENT).await.unwrap()["spec"]["paused"].is_null());
}

#[tokio::test]
async fn a_command_of_another_project_is_known_by_the_settings_of_command_binder_and_by_its_mark() {
    let owner = json!({"apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment", "name": "web", "uid": "uid-of-web"});
    for (is_configured, target, expected) in
        [(true, "", 1), (false, "uid-of-web", 1), (false, "", 0), (false, "uid-of-another", 0)]
    {
        let marks = json!({keys::BOUND_TO: target});
        let reindex = json!({"apiVersion": "acme.dev/v1", "annotations": marks, "ownerReferences": [owner]});
        let settings = json!({
            "metadata": {"name": "command-binder", "namespace": "catena-system"},
            "data": {"settings.yaml": "kinds: [{group: acme.dev, version: v1, resource: reindexes, kind: Reindex}]"},
        });
        let (cluster, _) = store(&[], move |_, uri| {
            let mut list = definitions(&[]);
            list["items"] = json!([settings]);
            (is_configured && uri.starts_with("/api/v1/configmaps?")).then_some((StatusCode::OK, list))
        });
        let report = restored(&cluster, vec![deployment(), manifest("Reindex", "now", &reindex)]).await;
        assert_eq!(report.left_out.len(), expected, "{report:?}");
        assert!(report.left_out.iter().all(|note| note.why == COMMAND_OF_OTHERS), "{report:?}");
    }
}

#[tokio::test]
async fn a_request_that_an_operator_made_comes_back_only_if_it_is_asked_for() {
    let controlled = |version: &str, kind: &str, name: &str, by: &Manifest| {
        let Identity { api_version, kind: above, name: owner, uid, .. } = by.identity();
        let owner =
            json!({"apiVersion": api_version, "kind": above, "name": owner, "uid": uid, "controller": true});
        manifest(kind, name, &json!({"apiVersion": version, "ownerReferences": [owner]}))
    };
    let certificate = manifest("Reindex", "certificate", &json!({"apiVersion": "acme.dev/v1"}));
    let request = controlled("acme.dev/v1", "Reindex", "request", &certificate);
    let objects = vec![
        // Data: whoever makes the request anew looks for it.
        controlled("v1", "Secret", "key", &request),
        request,
        controlled("v1", "Service", "service", &certificate),
        controlled("acme.dev/v1", "Reindex", "child", &deployment()),
        certificate,
        deployment(),
    ];
    for (dependents, expected) in [(false, vec![("request", REQUEST_OF_OTHERS)]), (true, vec![])] {
        let (cluster, _) = store(&[], |_, _| None);
        let choices = Choices { dependents, ..Choices::default() };
        let report = restored_with(choices, &cluster, objects.clone()).await;
        let left: Vec<(&str, &str)> =
            report.left_out.iter().map(|note| (note.object.name.as_str(), note.why.as_str())).collect();
        assert_eq!((left, report.failed.len()), (expected, 0), "{report:?}");
        assert!(report.restored.iter().any(|restored| restored.name == "key"), "{report:?}");
    }
}

/// A folder with a backup of the deployment, which goes with the test.
struct Backup(std::path::PathBuf);

impl Backup {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("catena-restore-{name}-{}", std::process::id()));
        let mut folder = Folder::begin(&path, Scope::default(), |_| true).unwrap();
        folder.add("basicdeployments.catena.dev", &deployment()).unwrap();
        folder.end(|_| false).unwrap();
        Self(path)
    }
}

impl Drop for Backup {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

#[tokio::test]
async fn nothing_is_brought_back_while_definitions_cannot_be_listed() {
    let backup = Backup::new("definitions");
    let (mut cluster, requests) = store(&[], |_, uri| {
        uri.contains("/customresourcedefinitions?").then(|| status(503, "ServiceUnavailable", "busy"))
    });
    let told = restore(&mut cluster, &backup.0, None, Choices::default()).await.unwrap_err().to_string();
    assert_eq!(told, "cannot list customresourcedefinitions.apiextensions.k8s.io: busy");
    assert!(!requests.lock().unwrap().iter().any(|request| request.starts_with("POST")), "{requests:?}");
}

#[tokio::test]
async fn a_namespace_that_the_backup_lacks_is_refused_before_anything_is_written() {
    let backup = Backup::new("namespace");
    let (mut cluster, requests) = store(&[], |_, _| None);
    let told = restore(&mut cluster, &backup.0, Some("other"), Choices::default()).await.unwrap_err();
    assert!(told.to_string().contains("no object of namespace \"other\", but of shop"), "{told}");
    assert!(requests.lock().unwrap().is_empty(), "{requests:?}");
}

#[tokio::test]
async fn nothing_is_attached_to_an_object_that_is_being_deleted() {
    let going =
        json!({"metadata": {"name": "web", "uid": "former", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let owner = json!({"apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment", "name": "web", "uid": "uid-of-web"});
    let set = manifest("BasicReplicaSet", "set", &json!({"ownerReferences": [owner]}));
    let (cluster, requests) = store(&[(DEPLOYMENT, going)], |_, _| None);
    for objects in [vec![deployment(), set.clone()], vec![set]] {
        let count = objects.len();
        let report = restored(&cluster, objects).await;
        assert!(report.present.is_empty() && report.failed.len() == count, "{report:?}");
        assert!(report.failed.iter().all(|note| note.why.ends_with(GOING)), "{report:?}");
    }
    assert!(!requests.lock().unwrap().iter().any(|request| request.starts_with("POST")), "{requests:?}");
}

#[tokio::test]
async fn what_stands_in_a_namespace_that_is_being_deleted_is_not_restored() {
    let live = json!({"metadata": {"name": "web", "uid": "live"}, "spec": {"replicas": 2}});
    let key = json!({"metadata": {"name": "key", "uid": "its"}});
    // Its owner goes already, which is told by itself.
    let owner = json!({"apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet", "name": "set", "uid": "uid-of-set"});
    let secret = manifest("Secret", "key", &json!({"apiVersion": "v1", "ownerReferences": [owner]}));
    let set = manifest("BasicReplicaSet", "set", &json!({}));
    let going = json!({"metadata": {"name": "set", "uid": "s", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let sets = "/apis/catena.dev/v1alpha1/namespaces/shop/basicreplicasets/set";
    let namespace = |deleted: Value| json!({"metadata": {"name": "shop", "deletionTimestamp": deleted}});
    for (deleted, present, failed) in [(Value::Null, 1, 0), ("2026-01-01T00:00:00Z".into(), 0, 1)] {
        let objects = [(DEPLOYMENT, live.clone()), ("/api/v1/namespaces/shop", namespace(deleted))];
        let (cluster, _) = store(&objects, |_, _| None);
        let report = restored(&cluster, vec![deployment()]).await;
        let counts = (report.present.len(), report.differing.len(), report.failed.len());
        assert_eq!(counts, (present, present, failed), "{report:?}");
        assert!(report.failed.iter().all(|note| note.why == NAMESPACE_GOING), "{report:?}");
    }
    let namespace = namespace("2026-01-01T00:00:00Z".into());
    let objects = [(SECRET, key), (sets, going), ("/api/v1/namespaces/shop", namespace)];
    let (cluster, _) = store(&objects, |_, _| None);
    let report = restored(&cluster, vec![set, secret]).await;
    assert!(report.present.is_empty() && report.failed.len() == 2, "each is told once: {report:?}");
}
