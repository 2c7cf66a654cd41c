//! Killed after any of its writes, command-runner carries out each command once, in the order of a target, and one at a time.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use e2e::{
    AuditLog, ChaosProxy, Cluster, Effects, Namespace, OwnKind, OwnProcess, RUNNER, Request, WAIT_TIMEOUT,
    eventually, pod_template, yaml,
};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use kube::{
    ResourceExt,
    api::{DynamicObject, ListParams, PostParams},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::carries_out_foreign_commands::has_outcome;

/// The targets, of two kinds.
const TARGETS: [(&str, &str); 5] = [
    ("Deployment", "a"),
    ("Deployment", "b"),
    ("Deployment", "c"),
    ("StatefulSet", "d"),
    ("StatefulSet", "e"),
];
const VERSION: &str = "v1";
/// What the audit log has for a write whose process was killed before the answer, whether it took effect or not.
const CUT_OFF: u16 = 504;
/// The shipped description of restarts of workloads of Kubernetes.
const RESTARTS: &str = include_str!("../../examples/commands/rollout-restarts.yaml");

/// The kind of the test as command-runner's settings describe it: like the shipped one, but that nobody else carries it out.
fn settings(commands: &OwnKind) -> Result<Value> {
    let shipped: Vec<Value> = serde_saphyr::from_multiple(RESTARTS)?;
    let described =
        shipped[0]["metadata"]["annotations"]["catena.dev/binding"].as_str().context("described")?;
    let mut kind: Value = serde_saphyr::from_str(described)?;
    let more = json!({
        "id": "gadgets", "group": commands.group(), "version": VERSION, "resource": "gadgets", "kind": "Gadget",
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        kind[field] = value.clone();
    }
    kind.as_object_mut().context("a map")?.remove("reportsBound");
    Ok(json!({"kinds": [kind], "discovery": {"enabled": false}}))
}

/// Installs the kind of the test, with the shipped schema.
async fn install(commands: &OwnKind) -> Result<()> {
    let shipped: Vec<Value> = serde_saphyr::from_multiple(RESTARTS)?;
    commands.install(&commands.definition(&[shipped[0]["spec"]["versions"][0].clone()])).await
}

async fn create_target(namespace: &Namespace, kind: &str, name: &str) -> Result<String> {
    let object = json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": 1, "serviceName": name, "selector": {"matchLabels": {"app": name}},
            "template": pod_template(name),
        },
    });
    let made = if kind == "Deployment" {
        namespace.create(&serde_json::from_value::<Deployment>(object)?).await?.uid()
    } else {
        namespace.create(&serde_json::from_value::<StatefulSet>(object)?).await?.uid()
    };
    made.context("no uid")
}

/// Creates a command that is bound to its target.
async fn create_command(
    commands: &OwnKind,
    number: usize,
    (kind, name): (&str, &str),
    uid: &str,
) -> Result<DynamicObject> {
    let owner = json!({"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid});
    let command = json!({
        "apiVersion": format!("{}/{VERSION}", commands.group()), "kind": "Gadget",
        "metadata": {"name": format!("{name}-{number}"), "ownerReferences": [owner]},
        "spec": {"targetRef": {"kind": kind, "name": name}},
    });
    Ok(commands.api(VERSION).create(&PostParams::default(), &serde_json::from_value(command)?).await?)
}

/// The time of an event in the life of a command: whole seconds in one form.
fn time<'c>(command: &'c DynamicObject, field: &str) -> Option<&'c str> {
    command.data["status"][field].as_str()
}

async fn until_all_succeeded(commands: &OwnKind, count: usize) -> Result<Vec<DynamicObject>> {
    let all = eventually("every command has succeeded", 5 * WAIT_TIMEOUT, async || {
        let listed = commands.api(VERSION).list(&ListParams::default()).await;
        let all = listed.map_err(|error| error.to_string())?.items;
        match all.iter().find(|command| !has_outcome(command, "True", "Complete")) {
            Some(open) => Err(yaml(open)),
            None => Ok(all),
        }
    })
    .await;
    ensure!(all.len() == count, "{} commands instead of {count}", all.len());
    Ok(all)
}

/// Kills it after writes that are chosen at random, at least as often as asked for, until both kinds of writes were hit, and
/// returns these.
async fn kill(
    times: usize,
    proxy: &ChaosProxy,
    run: &mut OwnProcess,
    chance: &mut StdRng,
) -> Result<Vec<String>> {
    let mut last = Vec::new();
    while last.len() < times || on_targets(&last).min(last.len() - on_targets(&last)) < times / 8 {
        let crashed = proxy.crash_after(chance.random_range(1..=6));
        let came = timeout(WAIT_TIMEOUT, crashed).await;
        came.with_context(|| format!("no write to be killed after; {:#?}\n{}", proxy.writes(), run.log()))??;
        last.extend(proxy.writes().pop());
        run.crash().await?;
    }
    Ok(last)
}

/// How many of these writes are patches of targets; the others are statuses.
fn on_targets(writes: &[String]) -> usize {
    writes.iter().filter(|write| !write.contains("/status")).count()
}

async fn each_is_carried_out_once_in_order(for_each: usize, kills: usize) -> Result<()> {
    let seed = std::env::var("CATENA_CHAOS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(rand::random);
    println!("the seed is {seed}: CATENA_CHAOS_SEED={seed} repeats it");
    let mut chance = StdRng::seed_from_u64(seed);

    let cluster = Cluster::with(&[]).await?;
    let namespace = cluster.namespace("crashes").await?;
    let commands = OwnKind::new(&cluster, &namespace);
    install(&commands).await?;
    let effects = [Effects::of::<Deployment>(&namespace).await, Effects::of::<StatefulSet>(&namespace).await];
    let log = AuditLog::from_now()?;
    let proxy = ChaosProxy::start().await?;

    let mut targets = BTreeMap::new();
    for (kind, name) in TARGETS {
        targets.insert(name, create_target(&namespace, kind, name).await?);
    }
    let mut made: BTreeMap<&str, Vec<DynamicObject>> = BTreeMap::new();
    for number in 0..for_each {
        for (kind, name) in TARGETS {
            let command = create_command(&commands, number, (kind, name), &targets[name]).await?;
            made.entry(name).or_default().push(command);
        }
    }
    // Only now, because the order is that of commands that are there.
    let mut run = OwnProcess::start(OwnProcess::program(RUNNER)?, &proxy, &settings(&commands)?)?;
    let killed_after = kill(kills, &proxy, &mut run, &mut chance).await?;
    let ended = until_all_succeeded(&commands, TARGETS.len() * for_each).await?;

    println!("killed {} times, {} after a patch of a target", killed_after.len(), on_targets(&killed_after));
    let is_patch = |request: &Request, kind: &str, name: &str| {
        request.verb == "patch"
            && request.resource == format!("{}s", kind.to_lowercase())
            && (&*request.namespace, &*request.name) == (&*namespace.name, name)
            && (request.code < 300 || request.code == CUT_OFF)
    };
    for (kind, name) in TARGETS {
        let made = made.get_mut(name).context("commands")?;
        made.sort_by_key(|command| (command.creation_timestamp(), command.uid()));
        let uids: Vec<_> = made.iter().filter_map(ResourceExt::uid).collect();
        eventually(&format!("the order of {kind} {name}"), WAIT_TIMEOUT, async || {
            let told = effects.iter().flat_map(Effects::so_far);
            let ran: Vec<_> = told.filter(|uid| uids.contains(uid)).collect();
            if ran == uids { Ok(()) } else { Err(format!("{ran:?} instead of {uids:?}")) }
        })
        .await;
        let patches = log.until_logged(uids.len(), |request| is_patch(request, kind, name)).await;
        let accepted = patches.iter().filter(|request| request.code < 300).count();
        assert!(accepted <= uids.len(), "{accepted} patches of {kind} {name}");
        let of_it = |uid: &String| ended.iter().find(|command| command.uid().as_ref() == Some(uid));
        let in_order: Vec<_> = uids.iter().filter_map(of_it).collect();
        for pair in in_order.windows(2) {
            let (first, second) = (time(pair[0], "completionTime"), time(pair[1], "startTime"));
            assert!(first.is_some() && first <= second, "{} and {}", yaml(pair[0]), yaml(pair[1]));
        }
    }
    Ok(())
}

#[tokio::test]
async fn killed_after_any_write_it_carries_out_each_command_once_and_in_order() -> Result<()> {
    e2e::needs!(HostProcesses, AuditLog);
    each_is_carried_out_once_in_order(8, 10).await
}

#[tokio::test]
#[ignore = "a smaller one is in the default suite"]
async fn two_hundred_commands_run_once_and_in_order_through_forty_kills() -> Result<()> {
    e2e::needs!(HostProcesses, AuditLog);
    each_is_carried_out_once_in_order(40, 40).await
}
