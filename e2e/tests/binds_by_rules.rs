//! A rule that cannot be evaluated binds nothing, and nothing is guessed: a missing field, a target without a
//! group, a label that somebody else wrote.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use catena_api::keys;
use e2e::{
    AuditLog, BINDER, Cluster, Namespace, Pace, Release, Request, eventually, kubectl, kubectl_apply,
    kubectl_with_input, open_kind, until_established, until_root_cause, yaml,
};
use jiff::{SignedDuration, Timestamp};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, ListParams},
    core::GroupVersionKind,
    discovery::ApiResource,
};
use serde_json::{Value, json};

/// Longer than the API server takes to know new kinds as owners.
const LIMIT: Duration = Duration::from_secs(60);

/// A definition that accepts any field and serves these versions, the last of which is stored.
fn definition(group: &str, kind: &str, scope: &str, versions: &[(&str, bool)]) -> Value {
    let latest_first: Vec<_> = versions.iter().rev().collect();
    let names: Vec<_> = latest_first.iter().map(|(name, _)| *name).collect();
    let mut definition = open_kind(group, kind, &names);
    definition["spec"]["scope"] = scope.into();
    for (index, (_, is_served)) in latest_first.into_iter().enumerate() {
        definition["spec"]["versions"][index]["served"] = (*is_served).into();
    }
    definition
}

/// Applies the definitions in this form, and waits until they are served so.
async fn define(definitions: &[Value]) -> Result<()> {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": definitions}).to_string();
    let (done, said) = kubectl_with_input(&["apply", "--filename", "-"], &list).await?;
    ensure!(done, "{said}");
    for definition in definitions {
        until_established(&["crd", definition["metadata"]["name"].as_str().context("name")?]).await;
    }
    Ok(())
}

async fn undefine(definitions: &[Value]) -> Result<()> {
    for definition in definitions {
        kubectl(&["delete", "crd", definition["metadata"]["name"].as_str().context("name")?]).await?;
    }
    Ok(())
}

fn api(
    cluster: &Cluster,
    namespace: &Namespace,
    group: &str,
    version: &str,
    kind: &str,
) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(cluster.client.clone(), &namespace.name, &resource)
}

async fn until_owned(api: &Api<DynamicObject>, name: &str) -> DynamicObject {
    eventually(&format!("{name} is owned"), LIMIT, async || {
        let object = api.get(name).await.map_err(|error| error.to_string())?;
        if object.owner_references().is_empty() { Err(yaml(&object)) } else { Ok(object) }
    })
    .await
}

const RULES: &str = "rules.example.com";

fn kinds_by_rules() -> Value {
    let services = json!([
        {"group": RULES, "version": "v1", "resource": "services", "kind": "Service"},
        {"group": "", "version": "v1", "resource": "services", "kind": "Service"},
    ]);
    json!({"kinds": [
        {
            "id": "tasks", "group": RULES, "version": "v1", "resource": "tasks", "kind": "Task",
            "filter": "!(object.metadata.annotations['rules.example.com/skip'] == 'true')",
            "refuse": [{"when": "object.spec.deletionPolicy != 'Retain'", "message": "it would delete data"}],
            "target": {
                "name": "object.spec.ref.name", "kind": "object.spec.ref.kind", "group": "object.spec.ref.group",
                "kinds": services,
            },
        },
        {
            "id": "notes", "group": RULES, "version": "v1", "resource": "notes", "kind": "Note", "mode": "Label",
            "refuse": [{
                "when": "object.apiVersion.endsWith('/v1') && object.spec.service == 'old'",
                "message": "v1 says so",
            }],
            "target": {
                "name": "object.spec.service",
                "kinds": [{"group": "", "version": "v1", "resource": "services", "kind": "Service"}],
            },
        },
    ]})
}

/// A task for the service `web`; fields that are not given are missing.
fn task(name: &str, skip: Option<&str>, group: Option<&str>, policy: Option<&str>) -> Value {
    let mut task = json!({
        "apiVersion": "rules.example.com/v1", "kind": "Task", "metadata": {"name": name},
        "spec": {"ref": {"kind": "Service", "name": "web"}},
    });
    if let Some(skip) = skip {
        task["metadata"]["annotations"] = json!({"rules.example.com/skip": skip});
    }
    if let Some(group) = group {
        task["spec"]["ref"]["group"] = group.into();
    }
    if let Some(policy) = policy {
        task["spec"]["deletionPolicy"] = policy.into();
    }
    task
}

#[tokio::test]
async fn what_a_rule_or_a_reference_leaves_open_is_not_bound_and_told() -> Result<()> {
    let cluster = Cluster::changing(&[BINDER]).await?;
    // Notes are read in the configured version, and not in the one that the API server prefers.
    let definitions = [("Task", &["v1"][..]), ("Note", &["v2", "v1"]), ("Service", &["v1"])];
    let definitions = definitions.map(|(kind, served)| {
        let versions: Vec<_> = served.iter().map(|version| (*version, true)).collect();
        definition(RULES, kind, "Namespaced", &versions)
    });
    define(&definitions).await?;
    let namespace = cluster.namespace("rules").await?;
    let release = Release::upgrade(&cluster, BINDER, &kinds_by_rules()).await?;
    let tasks = api(&cluster, &namespace, RULES, "v1", "Task");
    let (no, retain) = (Some("no"), Some("Retain"));
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "rules.example.com/v1", "kind": "Service", "metadata": {"name": "web"}},
        {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"clusterIP": "None", "ports": [{"port": 80}]},
        },
        task("unmarked", None, Some(RULES), retain),
        task("skipped", Some("true"), Some(RULES), retain),
        task("unsaid", no, Some(RULES), None),
        task("core", no, Some(""), retain),
        task("other", no, Some(RULES), retain),
        task("ambiguous", no, None, retain),
        {
            "apiVersion": "rules.example.com/v1", "kind": "Note",
            "metadata": {"name": "forged", "labels": {keys::TARGET_UID: "somebody-elses"}},
            "spec": {"service": "web"},
        },
        {
            "apiVersion": "rules.example.com/v1", "kind": "Note", "metadata": {"name": "refused"},
            "spec": {"service": "old"},
        },
    ]});
    kubectl_apply(&namespace.name, &objects.to_string()).await?;

    // The group decides; an empty one is the core group.
    assert_eq!(until_owned(&tasks, "core").await.owner_references()[0].api_version, "v1");
    assert_eq!(until_owned(&tasks, "other").await.owner_references()[0].api_version, "rules.example.com/v1");
    for (name, reason, expected) in [
        ("unmarked", "FilterFailed", "the field rules.example.com/skip is missing"),
        ("unsaid", "OwnershipRefused", "the field deletionPolicy is missing"),
        ("ambiguous", "InvalidReference", "target.group"),
        ("forged", "TargetReplaced", keys::TARGET_UID),
        ("refused", "OwnershipRefused", "v1 says so"),
    ] {
        let told = namespace.until_event(name, reason).await;
        assert!(told.contains(expected), "{name}: {told}");
    }
    for name in ["unmarked", "skipped", "unsaid", "ambiguous"] {
        assert_eq!(tasks.get(name).await?.owner_references(), [], "{name}");
    }

    for (name, reason) in [
        ("task.rules.example.com/unmarked", "FilterFailed"),
        ("task.rules.example.com/unsaid", "OwnershipRefused"),
        ("task.rules.example.com/ambiguous", "InvalidReference"),
        ("note.rules.example.com/forged", "TargetReplaced"),
        ("note.rules.example.com/refused", "OwnershipRefused"),
    ] {
        until_root_cause(&namespace.name, name, reason).await;
    }
    release.restore().await?;
    undefine(&definitions).await
}

const MOVES: &str = "moves.example.com";
/// Of another test, because the garbage collector goes on watching a version that it has known.
const HALLS: &str = "halls.example.com";

fn moves_in(group: &str, targets: &Value) -> Value {
    json!({"kinds": [{
        "id": "moves", "group": group, "version": "v1", "resource": "moves", "kind": "Move",
        "target": {"name": "object.spec.to", "kind": "object.spec.kind", "kinds": targets},
    }]})
}

fn moves(api_version: &str, kind: &str, name: &str, to: &str) -> String {
    let spec = if to.is_empty() { json!({}) } else { json!({"to": to}) };
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}).to_string()
}

#[tokio::test]
async fn commands_and_targets_are_read_in_a_version_that_is_served() -> Result<()> {
    let cluster = Cluster::changing(&[BINDER]).await?;
    let served = |is_old_served: bool| {
        let versions = [("v1", is_old_served), ("v2", true)];
        ["Move", "Place"].map(|kind| definition(MOVES, kind, "Namespaced", &versions))
    };
    define(&served(true)).await?;
    let namespace = cluster.namespace("versions").await?;
    let place = json!([{"group": MOVES, "version": "v1", "resource": "places", "kind": "Place"}]);
    let release = Release::upgrade(&cluster, BINDER, &moves_in(MOVES, &place)).await?;
    let commands = api(&cluster, &namespace, MOVES, "v2", "Move");
    let apply = async |kind: &str, name: &str, to: &str| {
        kubectl_apply(&namespace.name, &moves("moves.example.com/v2", kind, name, to)).await
    };
    // The garbage collector discovers kinds twice a minute.
    let until_collected = async |target: &str, left: &[&str]| {
        kubectl(&["delete", "place.moves.example.com", target, "--namespace", &namespace.name]).await?;
        eventually("the commands are gone with their target", 2 * LIMIT, async || {
            let seen = commands.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let names: Vec<_> = seen.iter().map(ResourceExt::name_any).collect();
            if names == left { Ok(()) } else { Err(names.join(" ")) }
        })
        .await;
        anyhow::Ok(())
    };
    apply("Place", "here", "").await?;
    apply("Move", "before", "here").await?;
    // In the configured version as long as it is served.
    assert_eq!(
        until_owned(&commands, "before").await.owner_references()[0].api_version,
        "moves.example.com/v1"
    );
    // The garbage collector asks for the owner of an object that it does not know yet. By a version that is not served any
    // more, the answer is that there is none, so it has to know these before.
    apply("Place", "there", "").await?;
    apply("Move", "known", "there").await?;
    until_owned(&commands, "known").await;
    until_collected("there", &["before"]).await?;

    define(&served(false)).await?;
    apply("Move", "after", "here").await?;
    assert_eq!(
        until_owned(&commands, "after").await.owner_references()[0].api_version,
        "moves.example.com/v2"
    );
    eventually("the former reference names a version that is served", 2 * LIMIT, async || {
        let command = commands.get("before").await.map_err(|error| error.to_string())?;
        let owners = command.owner_references();
        if owners[0].api_version == "moves.example.com/v2" { Ok(()) } else { Err(yaml(&command)) }
    })
    .await;
    // By the former one, the garbage collector would not find out that the target is gone.
    until_collected("here", &[]).await?;
    release.restore().await?;
    undefine(&served(false)).await
}

#[tokio::test]
async fn a_target_that_comes_late_and_one_whose_kind_does_are_noticed_within_seconds() -> Result<()> {
    /// A command that has waited for this long pauses for as long again, unless something wakes it.
    const WAITED: SignedDuration = SignedDuration::from_secs(19);
    /// A group of its own, because the binder caches for minutes which kinds a group serves.
    const LATE: &str = "late.example.com";
    /// At the pace of the cluster.
    const SOON: Duration = Duration::from_secs(16);
    e2e::needs!(AuditLog);
    let cluster = Cluster::changing(&[BINDER]).await?;
    // Places are watched in another version than the configured one, which is not served.
    let served = ["Move", "Place"].map(|kind| definition(LATE, kind, "Namespaced", &[("v2", true)]));
    let late = [definition(LATE, "Berth", "Namespaced", &[("v2", true)])];
    define(&served).await?;
    let namespace = cluster.namespace("late").await?;
    let targets = json!([
        {"group": LATE, "version": "v1", "resource": "places", "kind": "Place"},
        {"group": LATE, "version": "v1", "resource": "berths", "kind": "Berth"},
    ]);
    let release = Release::upgrade(&cluster, BINDER, &moves_in(LATE, &targets)).await?;
    let commands = api(&cluster, &namespace, LATE, "v2", "Move");
    let log = AuditLog::from_now()?;
    let apply = async |kind: &str, name: &str, spec: Value| {
        let api_version = format!("{LATE}/v2");
        let object =
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec});
        kubectl_apply(&namespace.name, &object.to_string()).await
    };
    apply("Move", "to-berth", json!({"kind": "Berth", "to": "there"})).await?;
    apply("Move", "to-place", json!({"kind": "Place", "to": "there"})).await?;
    let applied = Timestamp::now();
    namespace.until_event("to-place", "TargetNotFound").await;
    namespace.until_event("to-berth", "KindNotServed").await;
    let is_late_look = |request: &Request| {
        let by_binder = request.user == BINDER.user() && request.namespace == namespace.name;
        by_binder && request.resource == "places" && request.at > applied + WAITED
    };
    log.until_logged(1, is_late_look).await;

    for (kind, name) in [("Place", "to-place"), ("Berth", "to-berth")] {
        if kind == "Berth" {
            define(&late).await?;
        }
        let pace = Pace::start(&namespace).await?;
        apply(kind, "there", json!({})).await?;
        until_owned(&commands, name).await;
        ensure!(pace.elapsed() < SOON, "what {name} waits for was noticed after {:?}", pace.elapsed());
    }
    release.restore().await?;
    undefine(&late).await?;
    undefine(&served).await
}

#[tokio::test]
async fn whether_a_target_lives_in_namespaces_is_asked_of_the_cluster() -> Result<()> {
    let cluster = Cluster::changing(&[BINDER]).await?;
    let served = [("Move", "Namespaced"), ("Hall", "Cluster")]
        .map(|(kind, scope)| definition(HALLS, kind, scope, &[("v1", true)]));
    define(&served).await?;
    let namespace = cluster.namespace("scopes").await?;
    let hall = json!([{"group": HALLS, "version": "v1", "resource": "halls", "kind": "Hall"}]);
    let release = Release::upgrade(&cluster, BINDER, &moves_in(HALLS, &hall)).await?;
    kubectl_apply(&namespace.name, &moves("halls.example.com/v1", "Hall", &namespace.name, "")).await?;
    kubectl_apply(&namespace.name, &moves("halls.example.com/v1", "Move", "wide", &namespace.name)).await?;
    until_owned(&api(&cluster, &namespace, HALLS, "v1", "Move"), "wide").await;
    release.restore().await?;
    undefine(&served).await
}
