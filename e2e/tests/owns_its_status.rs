//! A status is that of its controller, whoever else writes to it; conditions of other types are left alone.

use std::{fmt::Debug, time::Duration};

use anyhow::{Context, Result};
use catena_api::{
    BasicDeployment, BasicDeploymentRestart, BasicDeploymentRestartSpec, BasicDeploymentStatus,
    BasicReplicaSet, TargetRef,
};
use e2e::{
    AuditLog, CHAIN, COMMANDED, Cluster, Controller, DEPLOYMENTS, Namespace, REPLICA_SETS, Tally,
    WAIT_TIMEOUT, condition, deployment, eventually, eventually_every, forbid_unless, is_true,
};
use k8s_openapi::{NamespaceResourceScope, api::events::v1::Event};
use kube::{
    Resource,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Somebody else's type of condition.
const THEIRS: &str = "example.com/Audited";
/// A status that only changes numbers is written after 20 s at the latest.
const QUIET: Duration = Duration::from_secs(21);

/// A condition that somebody else invented.
fn made_up(r#type: &str, status: &str) -> Value {
    json!({
        "type": r#type, "status": status, "reason": "MadeUp", "message": "by somebody else",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

/// Writes to a status as another field manager.
async fn meddle<K>(namespace: &Namespace, name: &str, patch: Value) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let params = PatchParams { field_manager: Some("somebody-else".into()), ..PatchParams::default() };
    let patch = match patch {
        Value::Array(_) => Patch::Json::<()>(serde_json::from_value(patch)?),
        patch => {
            namespace.api::<K>().patch_status(name, &params, &Patch::Merge(patch)).await?;
            return Ok(());
        }
    };
    namespace.api::<K>().patch_status(name, &params, &patch).await?;
    Ok(())
}

/// Adds conditions to the existing ones.
fn adding(conditions: impl IntoIterator<Item = Value>) -> Value {
    let add = |condition| json!({"op": "add", "path": "/status/conditions/-", "value": condition});
    conditions.into_iter().map(add).collect()
}

#[tokio::test]
async fn a_condition_that_somebody_has_a_part_of_goes_when_it_holds_no_more() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("shared").await?;
    namespace.create(&deployment("web", 2)).await?;
    namespace.until_ready("web").await;

    let both = || adding(["Reconciling", "Stalled"].map(|r#type| made_up(r#type, "True")));
    meddle::<BasicDeployment>(&namespace, "web", both()).await?;
    meddle::<BasicReplicaSet>(&namespace, "web", both()).await?;
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"replicas": 3}})).await?;
    let web = namespace.until_ready("web").await;
    assert_eq!(web.status.as_ref().map(|status| status.active), Some(3));
    namespace
        .until("web", "says neither any more", |web: &BasicDeployment| {
            web.status.as_ref().is_some_and(|status| {
                let said = ["Reconciling", "Stalled"];
                is_true(&status.conditions, "Ready")
                    && said.iter().all(|r#type| condition(&status.conditions, r#type).is_none())
            })
        })
        .await;
    namespace
        .until("web", "says neither any more", |set: &BasicReplicaSet| {
            set.status.as_ref().is_some_and(|status| {
                let said = ["Reconciling", "Stalled"];
                is_true(&status.conditions, "Ready")
                    && said.iter().all(|r#type| condition(&status.conditions, r#type).is_none())
            })
        })
        .await;
    Ok(())
}

#[tokio::test]
async fn a_status_that_was_restored_is_corrected() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("restored").await?;
    // Paused, so that the status is restored before there is a child.
    let mut web = deployment("web", 3);
    web.spec.paused = true;
    namespace.create(&web).await?;
    let conditions = ["Ready", "Progressing", "Reconciling", "Stalled", "RolledBack"];
    let conditions = conditions.map(|r#type| made_up(r#type, "True"));
    let restored: BasicDeploymentStatus = serde_json::from_value(json!({
        "observedGeneration": 1, "ready": false, "active": 0, "replicas": 3, "progress": "0/3", "revision": 7,
        "selector": "a=b",
        "child": {"apiVersion": "v1", "kind": "Other", "name": "old", "uid": "old", "hash": "old"},
        "blockedBy": {
            "apiVersion": "v1", "kind": "Pod", "name": "web-old", "reason": "ImagePullBackOff",
            "message": "no such image", "since": "2026-01-01T00:00:00Z",
        },
        "conditions": conditions,
    }))?;
    let params = PostParams { field_manager: Some("restorer".into()), ..PostParams::default() };
    eventually("the status is restored", WAIT_TIMEOUT, async || {
        let api = namespace.api::<BasicDeployment>();
        let mut web = api.get("web").await?;
        web.status = Some(restored.clone());
        api.replace_status("web", &params, &web).await
    })
    .await;
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"paused": false}})).await?;

    namespace.until_ready_pods(3).await;
    let is_true_to_life = |web: &BasicDeployment| {
        web.status.as_ref().is_some_and(|status| {
            let types = status.conditions.iter().map(|condition| condition.type_.as_str());
            let mut types: Vec<_> = types.collect();
            types.sort_unstable();
            status.ready
                && status.active == 3
                && status.blocked_by.is_none()
                && status.revision == Some(1)
                && types == ["Progressing", "Ready"]
        })
    };
    namespace.until("web", "says what is so, and nothing of what was restored", is_true_to_life).await;
    Ok(())
}

#[tokio::test]
async fn what_somebody_makes_up_goes_and_conditions_of_others_stay_and_cost_nothing() -> Result<()> {
    e2e::needs!(AuditLog);
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("made-up").await?;
    namespace.create(&deployment("web", 2)).await?;
    namespace.until_ready("web").await;
    namespace.until_set_ready("web").await;
    let log = AuditLog::from_now()?;

    let theirs = || adding([made_up(THEIRS, "False")]);
    let blocker = json!({"status": {"blockedBy": {
        "apiVersion": "v1", "kind": "Pod", "name": "web-x", "reason": "MadeUp", "message": "by somebody else",
    }}});
    meddle::<BasicDeployment>(&namespace, "web", theirs()).await?;
    meddle::<BasicReplicaSet>(&namespace, "web", theirs()).await?;
    meddle::<BasicDeployment>(&namespace, "web", blocker.clone()).await?;
    meddle::<BasicReplicaSet>(&namespace, "web", blocker).await?;

    let is_clean = |web: &BasicDeployment| {
        web.status.as_ref().is_some_and(|status| status.ready && status.blocked_by.is_none())
    };
    let web = namespace.until("web", "names no blocker", is_clean).await;
    let set = namespace
        .until("web", "names no blocker", |set: &BasicReplicaSet| {
            set.status.as_ref().is_some_and(|status| status.blocked_by.is_none())
        })
        .await;
    let written = log.until_quiet(QUIET, 3 * QUIET, |request| request.namespace == namespace.name).await;
    // One patch each, which may meet a newer state; the parent may have reported the child's blocker.
    for controller in [DEPLOYMENTS, REPLICA_SETS] {
        let own = written.iter().filter(|request| request.user == Controller::user(controller)).count();
        assert!(own <= 4, "{own} writes: {:?}", Tally::of(&written));
    }
    for conditions in [web.status.context("status")?.conditions, set.status.context("status")?.conditions] {
        let theirs = condition(&conditions, THEIRS).context("somebody else's condition went")?;
        assert_eq!(theirs.reason, "MadeUp");
    }
    Ok(())
}

#[tokio::test]
async fn what_somebody_makes_up_about_a_command_goes_and_its_binding_stays() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("command").await?;
    let mut web = deployment("web", 1);
    web.spec.parameters.insert("image".into(), "registry.invalid/missing:1".into());
    namespace.create(&web).await?;
    let spec = BasicDeploymentRestartSpec {
        target_ref: TargetRef { name: "web".into(), ..TargetRef::default() },
        ..BasicDeploymentRestartSpec::default()
    };
    namespace.create(&BasicDeploymentRestart::new("again", spec)).await?;
    let runs = |again: &BasicDeploymentRestart| {
        let conditions = again.status.as_ref().map(|status| &status.conditions[..]).unwrap_or_default();
        condition(conditions, "Succeeded").is_some_and(|succeeded| succeeded.reason == "Running")
            && is_true(conditions, "Bound")
    };
    namespace.until("again", "runs, and never ends", runs).await;

    let made_up = json!({"status": {"completionTime": "2026-01-01T00:00:00Z"}});
    meddle::<BasicDeploymentRestart>(&namespace, "again", made_up).await?;
    let is_clean = |again: &BasicDeploymentRestart| {
        runs(again) && again.status.as_ref().is_some_and(|status| status.completion_time.is_none())
    };
    namespace.until("again", "has not ended", is_clean).await;
    Ok(())
}

#[tokio::test]
async fn a_status_that_a_policy_refuses_is_told_as_that_and_the_rest_of_the_work_goes_on() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("refused").await?;
    namespace.create(&deployment("web", 1)).await?;
    namespace.until_ready("web").await;
    let rule = json!({
        "apiGroups": ["catena.dev"], "apiVersions": ["*"], "operations": ["UPDATE"],
        "resources": ["basicdeployments/status", "basicreplicasets/status"],
    });
    for controller in CHAIN {
        let user = controller.user();
        forbid_unless(&cluster, &namespace, &user, rule.clone(), "false", "hands off").await?;
    }

    // The API server enforces the policies a little later: until then the status is accepted.
    let mut replicas = [2, 1].into_iter().cycle();
    let often = Duration::from_secs(1);
    let note = eventually_every(often, "that the status is refused is told", WAIT_TIMEOUT, async || {
        let scale = json!({"spec": {"replicas": replicas.next()}});
        namespace.merge::<BasicDeployment>("web", scale).await.map_err(|error| error.to_string())?;
        let events = namespace.api::<Event>().list(&ListParams::default()).await;
        let events = events.map_err(|error| error.to_string())?.items;
        let told = events.into_iter().map(|event| (event.reason.unwrap_or_default(), event.note));
        let mut told: Vec<_> = told.collect();
        match told.iter().position(|(reason, _)| reason == "StatusRefused") {
            Some(place) => Ok(told.swap_remove(place).1.unwrap_or_default()),
            None => Err(format!("{told:?}")),
        }
    })
    .await;
    for part in ["the status of", "hands off", "e2e-forbids-"] {
        assert!(note.contains(part), "{part} is not in: {note}");
    }
    assert!(!note.contains("template"), "{note}");

    namespace.merge::<BasicDeployment>("web", json!({"spec": {"replicas": 3}})).await?;
    namespace.until_ready_pods(3).await;
    Ok(())
}
