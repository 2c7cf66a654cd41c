//! Commands for objects of other operators are carried out by configuration alone. The definitions are reduced by hand to the
//! fields that an operator reads and reports, and the test plays the operators.

use anyhow::{Context, Result};
use e2e::{
    ChaosProxy, Cluster, ForeignKinds, Namespace, OwnProcess, RUNNER, WAIT_TIMEOUT, eventually, example, yaml,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
    discovery::ApiResource,
};
use serde_json::{Value, json};

use crate::carries_out_foreign_commands::has_outcome;

const PROJECTS: [&str; 5] = ["argo-rollouts", "cloudnative-pg", "external-secrets", "flux", "strimzi"];

/// An object of another operator.
struct Target {
    /// The entry for its commands.
    id: &'static str,
    spec: Value,
    /// What a command changes, and to which value; `null` for the time of its creation.
    effect: (&'static str, Value),
    /// The part of the object by which its operator reports that this is done, once it has seen that time.
    done: fn(&str) -> Value,
}

fn ready(with: &Value) -> Value {
    let mut status = with.clone();
    status["conditions"] = json!([{
        "type": "Ready", "status": "True", "reason": "Done", "message": "done", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    json!({ "status": status })
}

fn targets() -> [Target; 5] {
    let source = json!({"kind": "GitRepository", "name": "web"});
    let annotation = |key: &str| format!("/metadata/annotations/{}", key.replace('/', "~1"));
    let [hibernation, update, reconciliation, refresh] = [
        "cnpg.io/hibernation",
        "strimzi.io/manual-rolling-update",
        "reconcile.fluxcd.io/requestedAt",
        "force-sync",
    ]
    .map(|key| &*annotation(key).leak());
    [
        Target {
            id: "argo-rollout-restarts",
            spec: json!({"replicas": 2}),
            effect: ("/spec/restartAt", Value::Null),
            done: |at| json!({"status": {"restartedAt": at}}),
        },
        Target {
            id: "cnpg-hibernations",
            spec: json!({"instances": 1}),
            effect: (hibernation, json!("on")),
            done: |_| json!({"status": {"conditions": [{"type": "cnpg.io/hibernation", "status": "True"}]}}),
        },
        Target {
            id: "strimzi-rolling-updates",
            spec: json!({"selector": {}, "pods": []}),
            effect: (update, json!("true")),
            done: |_| json!({"metadata": {"annotations": {"strimzi.io/manual-rolling-update": null}}}),
        },
        Target {
            id: "flux-reconciliations",
            spec: json!({"interval": "10m", "prune": true, "sourceRef": source}),
            effect: (reconciliation, Value::Null),
            done: |at| ready(&json!({"lastHandledReconcileAt": at})),
        },
        Target {
            id: "secret-refreshes",
            spec: json!({}),
            effect: (refresh, Value::Null),
            done: |at| ready(&json!({"refreshTime": at})),
        },
    ]
}

fn text<'v>(value: &'v Value, field: &str) -> Result<&'v str> {
    value[field].as_str().with_context(|| format!("{field} of {value}"))
}

/// The objects of a kind, described by group, version and kind as in settings.
fn api(namespace: &Namespace, kind: &Value) -> Result<Api<DynamicObject>> {
    let kind = GroupVersionKind::gvk(text(kind, "group")?, text(kind, "version")?, text(kind, "kind")?);
    Ok(namespace.api_of(&ApiResource::from_gvk(&kind)))
}

/// Installs a kind of commands, with the schema of the shipped example.
async fn define(cluster: &Cluster, namespace: &Namespace, kind: &Value) -> Result<()> {
    let shipped: Vec<Value> = serde_saphyr::from_multiple(&example("commands/rollout-restarts.yaml")?)?;
    let mut spec = shipped[0]["spec"].clone();
    let (plural, kind) = (text(kind, "resource")?, text(kind, "kind")?);
    spec["names"] = json!({"plural": plural, "singular": kind.to_lowercase(), "kind": kind});
    let reference = "/versions/0/schema/openAPIV3Schema/properties/spec/properties/targetRef/properties/kind";
    *spec.pointer_mut(reference).context("targetRef.kind")? = json!({"type": "string"});
    let metadata = namespace.owns(&format!("{plural}.ops.example.com"));
    let definition = serde_json::from_value(json!({"metadata": metadata, "spec": spec}))?;
    cluster.all::<CustomResourceDefinition>().create(&PostParams::default(), &definition).await?;
    Ok(())
}

async fn create(api: &Api<DynamicObject>, kind: &Value, mut object: Value) -> Result<DynamicObject> {
    object["apiVersion"] = format!("{}/{}", text(kind, "group")?, text(kind, "version")?).into();
    object["kind"] = kind["kind"].clone();
    let object: DynamicObject = serde_json::from_value(object)?;
    Ok(eventually("the kind is served", WAIT_TIMEOUT, async || {
        api.create(&PostParams::default(), &object).await.map_err(|error| error.to_string())
    })
    .await)
}

async fn until_outcome(commands: &Api<DynamicObject>, name: &str, status: &str, reason: &str) {
    eventually(&format!("{name} says {status} {reason}"), WAIT_TIMEOUT, async || {
        let command = commands.get(name).await.map_err(|error| error.to_string())?;
        if has_outcome(&command, status, reason) { Ok(()) } else { Err(yaml(&command)) }
    })
    .await;
}

/// Reports as the operator of the target does.
async fn report(objects: &Api<DynamicObject>, name: &str, report: &Value) -> Result<()> {
    let (params, patch) = (PatchParams::default(), Patch::Merge(report));
    if report["status"].is_null() {
        objects.patch(name, &params, &patch).await?;
        return Ok(());
    }
    // Not every definition has its status as a part of its own.
    match objects.patch_status(name, &params, &patch).await {
        Err(kube::Error::Api(answer)) if answer.code == 404 => objects.patch(name, &params, &patch).await?,
        reported => reported?,
    };
    Ok(())
}

async fn is_carried_out(namespace: &Namespace, kind: &Value, target: &Target) -> Result<()> {
    let of_target = &kind["target"]["kinds"][0];
    let (name, objects) = (target.id, api(namespace, of_target)?);
    let object = json!({"metadata": {"name": name}, "spec": target.spec});
    let object = create(&objects, of_target, object).await?;
    let api_version = format!("{}/{}", text(of_target, "group")?, text(of_target, "version")?);
    let owner =
        json!({"apiVersion": api_version, "kind": of_target["kind"], "name": name, "uid": object.uid()});
    let commands = api(namespace, kind)?;
    let command = json!({
        "metadata": {"name": name, "ownerReferences": [owner]},
        "spec": {"targetRef": {"kind": of_target["kind"], "name": name}},
    });
    let command = create(&commands, kind, command).await?;
    until_outcome(&commands, name, "Unknown", "Running").await;

    let changed = serde_json::to_value(objects.get(name).await?)?;
    let created = command.creation_timestamp().context("no time")?.0.to_string();
    let (field, value) = &target.effect;
    let wanted = if value.is_null() { json!(created) } else { value.clone() };
    assert_eq!(changed.pointer(field), Some(&wanted), "{field} of {}", yaml(&changed));
    report(&objects, name, &(target.done)(&created)).await?;
    until_outcome(&commands, name, "True", "Complete").await;
    Ok(())
}

/// Other tests install the same definitions.
mod alone {
    use super::{
        ChaosProxy, Cluster, Context, ForeignKinds, OwnProcess, PROJECTS, RUNNER, Result, Value, define,
        example, is_carried_out, json, targets,
    };

    #[tokio::test]
    async fn the_examples_for_other_projects_run_once_their_operators_report() -> Result<()> {
        e2e::needs!(NoKindsOfOthers, HostProcesses);
        let cluster = Cluster::alone().await?;
        let namespace = cluster.namespace("operators").await?;
        let foreign = ForeignKinds::install(&PROJECTS).await?;
        let values: Value = serde_saphyr::from_str(&example("command-runner/other-projects-values.yaml")?)?;
        let kinds = values["kinds"].as_array().context("kinds")?;
        let proxy = ChaosProxy::start().await?;
        let settings = json!({"kinds": kinds, "discovery": {"enabled": false}});
        let run = OwnProcess::start(OwnProcess::program(RUNNER)?, &proxy, &settings)?;
        for kind in kinds {
            define(&cluster, &namespace, kind).await?;
        }
        for target in &targets() {
            let kind = kinds.iter().find(|kind| kind["id"] == target.id).context(target.id)?;
            let carried_out = is_carried_out(&namespace, kind, target).await;
            carried_out.with_context(|| format!("{}: {}", target.id, run.log()))?;
        }
        foreign.remove().await
    }
}
