//! Backups on a server that does not tell everything.

use catena_cluster::{
    Kinds,
    testing::{Answer, Requests, answering, status},
};
use http::{Method, StatusCode};
use kube::{core::GroupVersionKind, discovery::ApiResource};
use serde_json::json;

use super::*;
use crate::commands::COMMAND_OF_OTHERS;

/// A folder that goes with the test.
struct Temporary(std::path::PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("catena-collect-{name}-{}", std::process::id())))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// A server with a BasicDeployment and a command of another project for it, unless the answer is another one.
fn server(otherwise: impl Fn(&str) -> Option<Answer> + Send + 'static) -> Cluster {
    let web = json!({
        "apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u1"}, "spec": {"replicas": 1},
    });
    let owner =
        json!({"apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment", "name": "web", "uid": "u1"});
    let reindex = json!({
        "apiVersion": "acme.dev/v1", "kind": "Reindex",
        "metadata": {"name": "now", "namespace": "shop", "uid": "u2", "ownerReferences": [owner]},
    });
    let (cluster, _) = answering(move |method, uri, _| {
        assert_eq!(*method, Method::GET, "{uri}");
        if let Some(answer) = otherwise(uri) {
            return answer;
        }
        let path = uri.split('?').next().unwrap();
        let list =
            |items: &[&Value]| json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items});
        let answer = match path.rsplit('/').next().unwrap() {
            "basicdeployments" => list(&[&web]),
            "reindexes" => list(&[&reindex]),
            "now" => reindex.clone(),
            "shop" => json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
            name if name.ends_with('s') => list(&[]),
            _ => return status(404, "NotFound", "not found"),
        };
        (StatusCode::OK, answer)
    });
    cluster
}

/// A refusal of a right, as the API server words it.
fn forbidden(resource: &str) -> Answer {
    let message = format!("{resource} is forbidden: User \"jane\" cannot list resource \"{resource}\"");
    status(403, "Forbidden", &message)
}

async fn backup(cluster: &Cluster, folder: &Temporary) -> Result<Saved> {
    let kinds = [cluster.kinds.find("basicdeployments").unwrap().clone()];
    collect(cluster, &folder.0, &kinds, Some("shop")).await
}

#[tokio::test]
async fn a_backup_of_a_namespace_that_does_not_exist_leaves_the_earlier_one_alone() {
    let folder = Temporary::new("namespace");
    assert!(backup(&server(|_| None), &folder).await.unwrap().complete);
    let is_namespace = |uri: &str| uri.ends_with("/namespaces/shop");
    let empty = (StatusCode::OK, json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": []}));
    let gone = server(move |uri| {
        Some(if is_namespace(uri) { status(404, "NotFound", "not found") } else { empty.clone() })
    });
    let told = backup(&gone, &folder).await.unwrap_err().to_string();
    assert!(told.starts_with("there is no namespace \"shop\""), "{told}");
    assert_eq!(Folder::read(&folder.0).unwrap().len(), 2);
}

#[tokio::test]
async fn an_earlier_backup_stays_usable_if_nothing_can_be_listed() {
    let folder = Temporary::new("unlisted");
    assert!(backup(&server(|_| None), &folder).await.unwrap().complete);
    let broken = server(|uri| uri.contains("basicdeployments").then(|| status(500, "InternalError", "no")));
    backup(&broken, &folder).await.unwrap_err();
    assert_eq!(Folder::read(&folder.0).unwrap().len(), 2);
}

#[tokio::test]
async fn without_the_right_to_list_definitions_nothing_is_written() {
    let folder = Temporary::new("unlisted-definitions");
    let is_definition = |uri: &str| uri.contains("customresourcedefinitions");
    let cluster = server(move |uri| is_definition(uri).then(|| forbidden("customresourcedefinitions")));
    let told = backup(&cluster, &folder).await.unwrap_err().to_string();
    assert!(told.starts_with("you may not list customresourcedefinitions"), "{told}");
    assert!(told.contains("kubectl auth can-i list customresourcedefinitions"), "{told}");
    assert!(!folder.0.exists());
}

#[tokio::test]
async fn a_command_of_others_is_left_out_and_an_ordinary_dependent_is_saved() {
    let folder = Temporary::new("foreign");
    let cluster = server(|uri| {
        let definition = json!({"metadata": {"name": "reindexes.acme.dev"}});
        let list = json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": [definition]});
        uri.contains("/customresourcedefinitions?").then_some((StatusCode::OK, list))
    });
    let saved = backup(&cluster, &folder).await.unwrap();
    assert!(saved.complete && !saved.objects.contains_key("reindexes.acme.dev"), "{saved:?}");
    let left: Vec<_> = saved.left_out.iter().map(|left| (&*left.kind, left.count, &*left.why)).collect();
    assert_eq!(left, [("reindexes.acme.dev", 1, COMMAND_OF_OTHERS)]);
    assert!(folder.0.join("shop/basicdeployments.catena.dev/web.yaml").is_file());
    assert!(!folder.0.join("shop/reindexes.acme.dev").exists());
    // The settings of command-binder describe it as well as its definition does.
    let configured = Temporary::new("configured");
    let cluster = server(|uri| {
        let settings = json!({"settings.yaml": "kinds: [{group: acme.dev, resource: reindexes}]"});
        let items = json!([{"metadata": {"name": "b", "namespace": "catena-system"}, "data": settings}]);
        let list = json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items});
        uri.starts_with("/api/v1/configmaps?").then_some((StatusCode::OK, list))
    });
    let saved = backup(&cluster, &configured).await.unwrap();
    assert_eq!(saved.left_out[0].why, COMMAND_OF_OTHERS, "{saved:?}");
    // A ConfigMap of anybody else does not.
    let forged = Temporary::new("forged");
    let cluster = server(|uri| {
        let settings = json!({"settings.yaml": "kinds: [{group: acme.dev, resource: reindexes}]"});
        let labels = json!({"app.kubernetes.io/component": "command-binder"});
        let metadata = json!({"name": "b", "namespace": "tenant", "labels": labels});
        let items = json!([{"metadata": metadata, "data": settings}]);
        if uri.contains("/clusterrolebindings?") {
            let subjects = json!([{"kind": "ServiceAccount", "name": "b", "namespace": "catena-system"}]);
            return Some(list(&[json!({"metadata": {"name": "b", "labels": labels}, "subjects": subjects})]));
        }
        let list = json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items});
        uri.starts_with("/api/v1/configmaps?").then_some((StatusCode::OK, list))
    });
    let saved = backup(&cluster, &forged).await.unwrap();
    assert_eq!(saved.objects["reindexes.acme.dev"], 1, "{saved:?}");
    let readable = Temporary::new("readable");
    let saved = backup(&server(|_| None), &readable).await.unwrap();
    assert_eq!(saved.objects["reindexes.acme.dev"], 1, "{saved:?}");
}

#[tokio::test]
async fn a_chosen_kind_that_may_not_be_listed_is_named_and_takes_nothing_from_the_former_backup() {
    let folder = Temporary::new("second-kind");
    let backup = async |cluster: &Cluster| {
        let kinds = ["basicdeployments", "reindexes"].map(|word| cluster.kinds.find(word).unwrap().clone());
        collect(cluster, &folder.0, &kinds, Some("shop")).await.unwrap()
    };
    assert!(backup(&server(|_| None)).await.complete);
    let saved = backup(&server(|uri| uri.contains("/reindexes").then(|| forbidden("reindexes")))).await;
    assert!(!saved.complete && saved.keeps_former, "{saved:?}");
    assert_eq!(saved.not_seen, [Gap::new("reindexes", "no permission")]);
    assert_eq!(Folder::read(&folder.0).unwrap().len(), 2);
}

#[tokio::test]
async fn the_files_of_a_kind_that_is_gone_from_the_server_stay_and_the_kind_is_named() {
    let folder = Temporary::new("gone-kind");
    let kinds = ["basicdeployments.catena.dev", "gadgets.example.com"].map(str::to_owned);
    let scope = Scope { kinds: kinds.into(), namespace: Some("shop".into()) };
    let mut former = Folder::begin(&folder.0, scope, |_| true).unwrap();
    let gadget = manifest::tests::manifest("Gadget", "lamp", &json!({}));
    former.add("gadgets.example.com", &gadget).unwrap();
    assert!(former.end(|_| false).unwrap());
    for _ in 0..2 {
        let saved = backup(&server(|_| None), &folder).await.unwrap();
        assert!(!saved.complete && saved.keeps_former, "{saved:?}");
        assert_eq!(saved.not_seen, [Gap::new("gadgets.example.com", KIND_GONE)]);
        let read = Folder::read(&folder.0).unwrap();
        assert!(read.contains(&gadget) && read.len() == 3, "{read:?}");
    }
}

#[tokio::test]
async fn an_object_that_cannot_be_kept_is_named_and_stops_no_other() {
    // The first one is too deep for the YAML of the backup, and the second one for this program.
    for depth in [100, 1000] {
        let folder = Temporary::new(&format!("deep-{depth}"));
        let deep = (0..depth).fold("{}".to_owned(), |inner, _| format!("{{\"a\": {inner}}}"));
        let cluster = server(move |uri| {
            let items = format!(
                "{{\"kind\": \"List\", \"apiVersion\": \"v1\", \"metadata\": {{}}, \"items\": [\
                 {{\"metadata\": {{\"name\": \"deep\", \"namespace\": \"shop\", \"uid\": \"u3\"}}, \"spec\": {deep}}}, \
                 {{\"metadata\": {{\"name\": \"web\", \"namespace\": \"shop\", \"uid\": \"u1\"}}}}]}}"
            );
            // As it stands: a `Value` is not as deep.
            uri.contains("/basicdeployments?").then_some((StatusCode::OK, Value::String(items)))
        });
        let saved = backup(&cluster, &folder).await.unwrap();
        assert!(!saved.complete && !saved.keeps_former, "{saved:?}");
        assert_eq!(saved.objects["basicdeployments.catena.dev"], 1, "{saved:?}");
        let named: Vec<&str> = saved.not_seen.iter().map(|gap| &*gap.what).collect();
        assert_eq!(named, ["basicdeployments/deep"], "{saved:?}");
        let read: Vec<_> =
            Folder::read(&folder.0).unwrap().iter().map(|object| object.identity().name).collect();
        assert!(read.contains(&"web".to_owned()) && !read.contains(&"deep".to_owned()), "{read:?}");
    }
}

/// A list of objects.
fn list(items: &[Value]) -> Answer {
    (StatusCode::OK, json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}))
}

fn left_out(saved: &Saved) -> Vec<(&str, usize, &str)> {
    saved.left_out.iter().map(|left| (&*left.kind, left.count, &*left.why)).collect()
}

#[tokio::test]
async fn a_backup_without_any_object_says_what_the_namespace_holds_and_leaves_the_earlier_one_alone() {
    let folder = Temporary::new("empty");
    assert!(backup(&server(|_| None), &folder).await.unwrap().complete);
    let named = |name: &str| json!({"metadata": {"name": name, "namespace": "shop", "uid": name}});
    let owned = json!({"metadata": {"name": "x", "namespace": "shop", "uid": "x", "ownerReferences": [
        {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "elsewhere"}]}});
    let cluster = server(move |uri| {
        let items = match uri.split('?').next()?.rsplit('/').next()? {
            "deployments" => vec![named("a"), named("b")],
            "pods" => vec![owned.clone()],
            "secrets" => vec![named("key")],
            "basicdeployments" | "reindexes" => Vec::new(),
            _ => return None,
        };
        Some(list(&items))
    });
    let saved = backup(&cluster, &folder).await.unwrap();
    assert!(saved.objects.is_empty() && !saved.complete, "{saved:?}");
    let others = [
        ("secrets", 1, "not chosen: add --kind secrets"),
        ("deployments.apps", 2, "not chosen: add --kind deployments.apps"),
    ];
    assert_eq!(left_out(&saved), others);
    assert_eq!(Folder::read(&folder.0).unwrap().len(), 2);
}

#[tokio::test]
async fn what_pods_of_the_saved_objects_use_is_named() {
    let folder = Temporary::new("used");
    let tls = json!({"metadata": {"name": "tls", "namespace": "shop", "uid": "tls"}});
    let web = json!({
        "metadata": {"name": "web", "namespace": "shop", "uid": "u1"},
        "spec": {"volumes": [{"secret": {"secretName": "tls"}}, {"secret": {"secretName": "db"}}]},
    });
    let cluster = server(move |uri| match uri.split('?').next()?.rsplit('/').next()? {
        "basicdeployments" => Some(list(std::slice::from_ref(&web))),
        "secrets" => Some(list(std::slice::from_ref(&tls))),
        _ => None,
    });
    let saved = backup(&cluster, &folder).await.unwrap();
    assert!(saved.complete, "{saved:?}");
    assert_eq!(left_out(&saved), [("secrets", 2, "pods use db, tls: add --kind secrets")]);
}

#[tokio::test]
async fn an_owner_that_many_objects_name_is_asked_for_once() {
    let folder = Temporary::new("owners");
    let owner = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "gone", "uid": "gone"});
    let named = |name: &str| json!({"metadata": {"name": name, "namespace": "shop", "uid": name, "ownerReferences": [owner]}});
    let objects = ["a", "b", "c"].map(named);
    let (cluster, requests) = answering(move |_, uri, _| match uri.split('?').next() {
        Some(path) if path.ends_with("/basicdeployments") => list(&objects),
        Some(path) if path.ends_with("s/gone") => status(404, "NotFound", "not found"),
        _ => list(&[]),
    });
    let saved = backup(&cluster, &folder).await.unwrap();
    assert_eq!(saved.not_seen, [Gap::new("StatefulSet/gone", "it is gone")]);
    let asked = requests.lock().unwrap().iter().filter(|request| request.ends_with("/gone")).count();
    assert_eq!(asked, 1);
}

#[tokio::test]
async fn a_command_that_is_gone_is_not_kept_for_what_could_not_be_read() {
    let folder = Temporary::new("gone-command");
    let backup = async |restarts: &'static [&str], unread: &'static str| {
        let cluster = server(move |uri| {
            let path = uri.split('?').next()?;
            let named = |name: &&str| {
                let (name, end) = name.split_once('/').unwrap_or((name, ""));
                let end = Some(end).filter(|end| !end.is_empty());
                json!({"metadata": {"name": name, "namespace": "shop", "uid": name, "deletionTimestamp": end}})
            };
            match path.rsplit('/').next()? {
                plural if plural == unread => Some(forbidden(unread)),
                "basicdeploymentrestarts" => Some(list(&restarts.iter().map(named).collect::<Vec<_>>())),
                "customresourcedefinitions" => {
                    Some(list(&[json!({"metadata": {"name": "basicdeploymentrestarts.catena.dev"}})]))
                }
                _ => None,
            }
        });
        let kinds = ["basicdeployments", "basicdeploymentrestarts"];
        let kinds = kinds.map(|word| cluster.kinds.find(word).unwrap().clone());
        collect(&cluster, &folder.0, &kinds, Some("shop")).await.unwrap();
        let read = Folder::read(&folder.0).unwrap();
        let names =
            read.iter().map(Manifest::identity).filter(|object| object.kind == "BasicDeploymentRestart");
        names.map(|object| object.name).collect::<Vec<_>>()
    };
    assert_eq!(backup(&["one", "two"], "").await, ["one", "two"]);
    assert_eq!(backup(&["two"], "basicdeploymentrestarts").await, ["one", "two"], "it may be there");
    assert_eq!(backup(&["two"], "services").await, ["two"], "the other one was cancelled, and would run");
    let ends = &["two/2026-01-01T00:00:00Z"];
    assert!(backup(ends, "").await.is_empty(), "it was cancelled, too, although a finalizer holds it");
}

#[tokio::test]
async fn an_owner_that_would_do_harm_is_left_out_unless_its_kind_is_chosen() {
    let owned_by = |name: &str, owners: &[(&str, &str)]| {
        let owner = |(kind, name): &(&str, &str)| json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": name});
        let owners: Vec<Value> = owners.iter().map(owner).collect();
        json!({"metadata": {"name": name, "namespace": "shop", "uid": name, "ownerReferences": owners}})
    };
    let claim = owned_by("cache", &[("Pod", "build"), ("Secret", "key")]);
    let pod = owned_by("build", &[("Service", "above")]);
    let service = owned_by("below", &[("PersistentVolumeClaim", "cache"), ("Pod", "build")]);
    for (kinds, saved_kinds, left) in [
        (
            &["persistentvolumeclaims"][..],
            // What is above a pod makes it again.
            vec![("persistentvolumeclaims", 1), ("services", 2)],
            vec![
                ("pods", 1, "their controllers adopt the live ones, and replace the others"),
                ("secrets", 1, "a backup may be read by others: add --kind secrets"),
            ],
        ),
        (
            &["persistentvolumeclaims", "pods", "secrets"],
            vec![("persistentvolumeclaims", 1), ("pods", 1), ("secrets", 1), ("services", 2)],
            vec![],
        ),
    ] {
        let folder = Temporary::new(&format!("harmful-{}", kinds.len()));
        let objects = [claim.clone(), pod.clone(), service.clone()];
        let cluster = server(move |uri| match uri.split('?').next()?.rsplit('/').next()? {
            "persistentvolumeclaims" => Some(list(&objects[..1])),
            "pods" => Some(list(&objects[1..2])),
            "services" => Some(list(&objects[2..])),
            "build" => Some((StatusCode::OK, objects[1].clone())),
            "below" => Some((StatusCode::OK, objects[2].clone())),
            name @ ("key" | "above") => Some((StatusCode::OK, owned_by(name, &[]))),
            name => name.ends_with('s').then(|| list(&[])),
        });
        let kinds: Vec<Kind> = kinds.iter().map(|word| cluster.kinds.find(word).unwrap().clone()).collect();
        let saved = collect(&cluster, &folder.0, &kinds, Some("shop")).await.unwrap();
        assert_eq!(
            (saved.objects.iter().map(|(kind, count)| (kind.as_str(), *count)).collect(), left_out(&saved)),
            (saved_kinds, left)
        );
    }
}

#[tokio::test]
async fn what_a_restoration_holds_paused_is_saved_so_and_told() {
    let folder = Temporary::new("held");
    let fields = json!({"f:spec": {"f:paused": {}}});
    let managers = json!([{"manager": "kubectl-catena-restore-u1", "fieldsV1": fields}]);
    let held = |paused: bool| {
        let spec = json!({ "paused": paused });
        let metadata = json!({"name": "web", "namespace": "shop", "uid": "u9", "managedFields": managers});
        list(&[json!({ "metadata": metadata, "spec": spec })])
    };
    for paused in [true, false] {
        let deployments = held(paused);
        let cluster = server(move |uri| uri.contains("/basicdeployments?").then(|| deployments.clone()));
        let saved = backup(&cluster, &folder).await.unwrap();
        assert_eq!((saved.complete, saved.not_seen.len()), (!paused, usize::from(paused)), "{saved:?}");
        let read = Folder::read(&folder.0).unwrap();
        assert!(read.iter().any(|object| object.identity().uid == "u9"), "{read:?}");
    }
}

/// A server with Secrets and a kind of Catena's category, whose objects are stored in v1 and have a field that v2 lacks, which the
/// server prefers. The other way round, so has v2.
async fn two_versions(stored: &'static [&str], conversion: &'static str) -> (Cluster, Requests) {
    let discovered = |group: &str, versions: &[&str], plural: &str, kind: &str| {
        let resource = json!({
            "resource": plural, "responseKind": {"group": group, "version": "", "kind": kind}, "scope": "Namespaced",
            "verbs": ["get", "list"], "categories": if group.is_empty() { vec![] } else { vec!["catena"] },
        });
        let version = |version: &&str| json!({"version": version, "resources": [resource]});
        let versions: Vec<_> = versions.iter().map(version).collect();
        list(&[json!({"metadata": {"name": group}, "versions": versions})])
    };
    let version = |name: &str, field: &str| {
        let spec =
            json!({"type": "object", "properties": {field: {"type": "string"}, "size": {"type": "integer"}}});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}})
    };
    let definition = json!({
        "metadata": {"name": "widgets.example.com", "uid": "d"},
        "spec": {
            "group": "example.com", "names": {"plural": "widgets", "kind": "Widget"}, "scope": "Namespaced",
            "conversion": {"strategy": conversion}, "versions": [version("v1", "legacy"), version("v2", "fresh")],
        },
        "status": {"storedVersions": stored},
    });
    let named = |name: &str, more: Value| {
        let mut object = json!({"metadata": {"name": name, "namespace": "shop", "uid": name}, "spec": more});
        object["metadata"]["ownerReferences"] = object["spec"]["owners"].take();
        object
    };
    let widget = move |uri: &str| {
        named(
            "gear",
            if uri.contains("/v1/") { json!({"legacy": "a", "size": 1}) } else { json!({"size": 1}) },
        )
    };
    let owner = json!({"apiVersion": "example.com/v2", "kind": "Widget", "name": "gear", "uid": "gear"});
    let secret = named("key", json!({"owners": [owner]}));
    let (mut cluster, requests) = answering(move |_, uri, _| match uri.split('?').next().unwrap() {
        "/api" => discovered("", &["v1"], "secrets", "Secret"),
        "/apis" => discovered("example.com", &["v2", "v1"], "widgets", "Widget"),
        path if path.ends_with("/customresourcedefinitions") && !uri.contains("labelSelector") => {
            list(std::slice::from_ref(&definition))
        }
        path if path.ends_with("/widgets.example.com") => (StatusCode::OK, definition.clone()),
        path if path.ends_with("/widgets/gear") => (StatusCode::OK, widget(uri)),
        path if path.ends_with("/widgets") => list(&[widget(uri)]),
        path if path.ends_with("/secrets") => list(std::slice::from_ref(&secret)),
        path if path.ends_with("/key") => (StatusCode::OK, secret.clone()),
        _ => list(&[]),
    });
    cluster.kinds = Kinds::discover(&cluster.client).await.unwrap();
    (cluster, requests)
}

#[tokio::test]
async fn objects_are_saved_in_the_version_in_which_they_are_stored() {
    // As a chosen kind, as one of the category, and as an owner.
    for kinds in [&["widgets"][..], &[], &["secrets"]] {
        let folder = Temporary::new(&format!("stored-{}", kinds.concat()));
        let (cluster, requests) = two_versions(&["v1"], "None").await;
        let kinds: Vec<Kind> = kinds.iter().map(|word| cluster.kinds.find(word).unwrap().clone()).collect();
        let saved = collect(&cluster, &folder.0, &kinds, Some("shop")).await.unwrap();
        assert!(saved.complete, "{saved:?}");
        let read = Folder::read(&folder.0).unwrap();
        let gear = read.iter().find(|object| object.identity().kind == "Widget").unwrap();
        assert_eq!((gear.text("/apiVersion"), gear.text("/spec/legacy")), ("example.com/v1", "a"));
        let lists = requests.lock().unwrap();
        let whole = |request: &&String| {
            request.contains("/customresourcedefinitions?") && !request.contains("labelSelector")
        };
        assert_eq!(lists.iter().filter(whole).count(), 1);
    }
}

#[tokio::test]
async fn fields_that_only_another_stored_version_has_are_told_as_lacking() {
    for (stored, conversion, is_complete) in
        [(&["v1", "v2"][..], "None", false), (&["v1", "v2"], "Webhook", true)]
    {
        let folder = Temporary::new(&format!("other-{conversion}"));
        let (cluster, _) = two_versions(stored, conversion).await;
        let saved = collect(&cluster, &folder.0, &[], Some("shop")).await.unwrap();
        assert_eq!((saved.complete, saved.keeps_former), (is_complete, false), "{saved:?}");
        let told: Vec<String> = saved.not_seen.iter().map(ToString::to_string).collect();
        assert!(
            told.iter().all(|gap| {
                gap.starts_with(
                    "fields of widgets.example.com, such as spec.fresh (objects may be stored in v2",
                )
            }),
            "{told:?}"
        );
        assert_eq!(told.is_empty(), is_complete, "{told:?}");
    }
}

#[tokio::test]
async fn a_later_backup_with_the_advised_kinds_goes_into_the_same_folder() {
    let folder = Temporary::new("advised");
    let (cluster, _) = two_versions(&["v1"], "None").await;
    let catena: Vec<Kind> = cluster.kinds.in_category("catena").cloned().collect();
    let secrets = cluster.kinds.find("secrets").unwrap().clone();
    let advised = [catena.clone(), vec![secrets]].concat();
    for kinds in [&[][..], &catena, &[], &advised] {
        collect(&cluster, &folder.0, kinds, Some("shop")).await.unwrap();
    }
    collect(&cluster, &folder.0, &[], Some("shop")).await.unwrap_err();
}

#[tokio::test]
async fn what_kubernetes_writes_into_each_namespace_is_not_saved() {
    let folder = Temporary::new("root-ca");
    let named = |name: &str| json!({"metadata": {"name": name, "namespace": "shop", "uid": name}});
    let cluster = server(move |uri| {
        uri.contains("/shop/configmaps?").then(|| list(&["kube-root-ca.crt", "settings"].map(named)))
    });
    let kind = GroupVersionKind::gvk("", "v1", "ConfigMap");
    let kinds = [Kind::of(ApiResource::from_gvk(&kind), true)];
    let saved = collect(&cluster, &folder.0, &kinds, Some("shop")).await.unwrap();
    assert_eq!((saved.complete, saved.objects["configmaps"]), (true, 1), "{saved:?}");
    assert_eq!(Folder::read(&folder.0).unwrap()[0].identity().name, "settings");
}
