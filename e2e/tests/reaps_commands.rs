//! A finished command is deleted after its time to live: not before, not if it changed, and not if something would
//! create it again.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Result, ensure};
use catena_api::{
    BasicDeployment, BasicDeploymentRestart, BasicDeploymentRestartSpec, BasicDeploymentRollback,
    BasicDeploymentRollbackSpec, BasicDeploymentSpec, TargetRef,
};
use e2e::{
    AuditLog, BINDER, Cluster, GROUP_VERSION, Namespace, REAPER, Request, Tally, WAIT_TIMEOUT, condition,
    deployment, eventually, kubectl_apply, succeeds, texts, uids,
};
use futures::{StreamExt, TryStreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use kube::{
    ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;
use tokio::time::{Instant, sleep_until};

type Restart = BasicDeploymentRestart;

fn restart(name: &str, ttl: Option<i32>) -> Restart {
    let target_ref = TargetRef { name: "nothing".into(), namespace: None };
    let spec = BasicDeploymentRestartSpec {
        target_ref,
        ttl_seconds_after_finished: ttl,
        ..BasicDeploymentRestartSpec::default()
    };
    Restart::new(name, spec)
}

/// Finishes a command in place of the target's controller, and returns the completion time.
async fn finish(namespace: &Namespace, name: &str) -> Result<Timestamp> {
    let now: Timestamp = Timestamp::now().to_string().parse()?;
    finish_at(namespace, name, now).await?;
    Ok(now)
}

async fn finish_at(namespace: &Namespace, name: &str, time: Timestamp) -> Result<()> {
    let succeeded = json!({
        "type": "Succeeded", "status": "True", "reason": "Restarted", "message": "", "lastTransitionTime": time,
    });
    let status = json!({
        "apiVersion": GROUP_VERSION, "kind": "BasicDeploymentRestart", "metadata": {"name": name},
        "status": {"completionTime": time, "conditions": [succeeded]},
    });
    let params = PatchParams::apply("e2e").force();
    namespace.api::<Restart>().patch_status(name, &params, &Patch::Apply(status)).await?;
    Ok(())
}

async fn names(namespace: &Namespace) -> Result<Vec<String>> {
    let found = namespace.api::<Restart>().list_metadata(&ListParams::default()).await?;
    Ok(found.iter().map(ResourceExt::name_any).collect())
}

#[tokio::test]
async fn a_finished_rollback_goes_too() -> Result<()> {
    let cluster = Cluster::with(&[BINDER, REAPER]).await?;
    let namespace = cluster.namespace("rollback-ttl").await?;
    let spec = BasicDeploymentRollbackSpec {
        target_ref: TargetRef { name: "nothing".into(), namespace: None },
        ttl_seconds_after_finished: Some(0),
        ..BasicDeploymentRollbackSpec::default()
    };
    namespace.create(&BasicDeploymentRollback::new("done", spec)).await?;
    let now = Timestamp::now();
    let failed = json!({
        "type": "Succeeded", "status": "False", "reason": "Failed", "message": "", "lastTransitionTime": now,
    });
    let status = json!({
        "apiVersion": GROUP_VERSION, "kind": "BasicDeploymentRollback", "metadata": {"name": "done"},
        "status": {"completionTime": now, "conditions": [failed]},
    });
    let params = PatchParams::apply("e2e").force();
    namespace.api::<BasicDeploymentRollback>().patch_status("done", &params, &Patch::Apply(status)).await?;
    namespace.until_gone::<BasicDeploymentRollback>("done").await;
    Ok(())
}

#[tokio::test]
async fn a_finished_command_goes_after_its_ttl_and_not_before() -> Result<()> {
    let cluster = Cluster::with(&[BINDER, REAPER]).await?;
    let namespace = cluster.namespace("ttl").await?;
    for (name, ttl) in [
        ("soon", Some(3)),
        ("at-once", Some(0)),
        ("late", Some(600)),
        ("for-ever", None),
        ("unfinished", Some(0)),
    ] {
        namespace.create(&restart(name, ttl)).await?;
    }
    // A time alone proves nothing: it may come from a restored or an invented status.
    let claimed = json!({"status": {"completionTime": "2020-01-01T00:00:00Z"}});
    namespace
        .api::<Restart>()
        .patch_status("unfinished", &PatchParams::default(), &Patch::Merge(claimed))
        .await?;
    let mut finished = Timestamp::MIN;
    for name in ["at-once", "late", "for-ever", "soon"] {
        finished = finish(&namespace, name).await?;
    }
    namespace.until_gone::<Restart>("at-once").await;
    namespace.until_gone::<Restart>("soon").await;
    let lasted = Timestamp::now().duration_since(finished);
    // A completion time has whole seconds.
    ensure!(lasted >= SignedDuration::from_secs(2), "it was gone after {lasted:#}");
    assert_eq!(names(&namespace).await?, ["for-ever", "late", "unfinished"]);

    finish(&namespace, "unfinished").await?;
    namespace.until_gone::<Restart>("unfinished").await;
    assert_eq!(names(&namespace).await?, ["for-ever", "late"]);
    Ok(())
}

#[tokio::test]
async fn a_command_that_a_tool_would_create_again_stays_and_says_why() -> Result<()> {
    let cluster = Cluster::with(&[BINDER, REAPER]).await?;
    let namespace = cluster.namespace("gitops").await?;
    let annotations = |key: &str| (Some(texts! { key => "x" }), None);
    let labels = |key: &str| (None, Some(texts! { key => "x" }));
    let tools: BTreeMap<&str, (Option<BTreeMap<_, _>>, Option<BTreeMap<_, _>>)> = BTreeMap::from([
        ("argo-cd", annotations("argocd.argoproj.io/tracking-id")),
        ("flux", labels("kustomize.toolkit.fluxcd.io/name")),
        ("helm", annotations("meta.helm.sh/release-name")),
    ]);
    for (name, (annotations, labels)) in &tools {
        let mut command = restart(name, Some(0));
        command.metadata.annotations.clone_from(annotations);
        command.metadata.labels.clone_from(labels);
        namespace.create(&command).await?;
        finish(&namespace, name).await?;
    }
    for name in tools.keys() {
        let note = namespace.until_event(name, "KeptAsDeclared").await;
        ensure!(note.contains("delete it there"), "{note}");
    }
    eventually("why says that it stays", WAIT_TIMEOUT, async || {
        let said = succeeds(&namespace.name, &["why", "basicdeploymentrestart/helm"]).await;
        let said = said.map_err(|error| error.to_string())?.out;
        let note = "command-reaper keeps it, as a command that a tool declares";
        if said.contains("its TTL has been over for") && said.contains(note) { Ok(()) } else { Err(said) }
    })
    .await;
    assert_eq!(names(&namespace).await?, tools.keys().copied().collect::<Vec<_>>());
    Ok(())
}

#[tokio::test]
async fn a_command_that_a_tool_makes_anew_each_time_goes_although_it_is_marked() -> Result<()> {
    let cluster = Cluster::with(&[BINDER, REAPER]).await?;
    let namespace = cluster.namespace("hooks").await?;
    let tracked = "argocd.argoproj.io/tracking-id";
    let mut hook = restart("hook", Some(0));
    hook.metadata.annotations = Some(texts! { tracked => "x", "argocd.argoproj.io/hook" => "PostSync" });
    let mut generated = restart("", Some(0));
    generated.metadata.name = None;
    generated.metadata.generate_name = Some("generated-".into());
    generated.metadata.annotations = Some(texts! { tracked => "x" });
    let mut labelled = restart("labelled", Some(0));
    labelled.metadata.labels = Some(texts! { "app.kubernetes.io/instance" => "shop" });
    for command in [hook, generated, labelled] {
        let name = namespace.create(&command).await?.name_any();
        finish(&namespace, &name).await?;
        namespace.until_gone::<Restart>(&name).await;
    }
    Ok(())
}

#[tokio::test]
async fn a_restart_goes_when_it_is_done_and_one_that_a_tool_declares_runs_once() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("chain").await?;
    namespace.create(&deployment("web", 2)).await?;
    let web = namespace.until_ready("web").await;
    let before = uids(&namespace.until_ready_pods(2).await);
    let mut command = restart("once", Some(1));
    command.spec.target_ref.name = "web".into();
    namespace.create(&command).await?;
    namespace.until_gone::<Restart>("once").await;
    let restarted = uids(&namespace.until_ready_pods(2).await);
    ensure!(restarted.is_disjoint(&before), "not every pod was replaced");

    // A tool that applies missing objects as fast as it can.
    command = restart("declared", Some(0));
    command.spec.target_ref.name = "web".into();
    command.metadata.annotations = Some(texts! { "argocd.argoproj.io/tracking-id" => "shop:catena.dev" });
    let tool = async || -> Result<()> {
        loop {
            match namespace.create(&command).await {
                Err(kube::Error::Api(status)) if status.is_already_exists() => {}
                created => drop(created?),
            }
            sleep_until(Instant::now() + Duration::from_millis(50)).await;
        }
    };
    let watched = async {
        namespace.until_event("declared", "KeptAsDeclared").await;
        let again = uids(&namespace.until_ready_pods(2).await);
        ensure!(again.is_disjoint(&restarted), "not every pod was replaced");
        let command = namespace.api::<Restart>().get("declared").await?;
        // Later commands are queued behind it, which shows that it has no successor.
        let mut marker = restart("marker", Some(0));
        marker.spec.target_ref.name = "web".into();
        marker.spec.active_deadline_seconds = Some(1);
        namespace.create(&marker).await?;
        namespace.until_gone::<Restart>("marker").await;
        assert_eq!(namespace.api::<Restart>().get("declared").await?.uid(), command.uid());
        Ok(())
    };
    tokio::select! {
        ended = tool() => ended?,
        ended = watched => ended?,
    }
    let after = namespace.api::<BasicDeployment>().get("web").await?;
    // A restart changes one field.
    let spec = BasicDeploymentSpec { restarted_at: after.spec.restarted_at.clone(), ..web.spec };
    assert_eq!(after.spec, spec);
    Ok(())
}

#[tokio::test]
async fn a_command_that_is_applied_again_and_again_runs_twice_and_not_without_an_end() -> Result<()> {
    let cluster = Cluster::with(&[BINDER, REAPER]).await?;
    let namespace = cluster.namespace("again").await?;
    // A pipeline without any mark of its own.
    let manifest = "{apiVersion: catena.dev/v1alpha1, kind: BasicDeploymentRestart, metadata: {name: restart}, \
                    spec: {targetRef: {name: web}, ttlSecondsAfterFinished: 0}}";
    kubectl_apply(&namespace.name, manifest).await?;
    finish(&namespace, "restart").await?;
    namespace.until_gone::<Restart>("restart").await;

    kubectl_apply(&namespace.name, manifest).await?;
    let note = namespace.until_event("restart", "CreatedAgain").await;
    ensure!(note.contains("runs once more"), "{note}");
    let second = namespace.api::<Restart>().get("restart").await?;
    finish(&namespace, "restart").await?;
    // Another command shows that the reaper has passed.
    namespace.create(&restart("other", Some(0))).await?;
    finish(&namespace, "other").await?;
    namespace.until_gone::<Restart>("other").await;
    let said = kubectl_apply(&namespace.name, manifest).await?;
    ensure!(said.contains("unchanged"), "{said}");
    assert_eq!(namespace.api::<Restart>().get("restart").await?.uid(), second.uid());
    Ok(())
}

#[tokio::test]
async fn a_command_that_changed_or_was_replaced_unseen_is_not_hit() -> Result<()> {
    e2e::needs!(AuditLog, Processes);
    let cluster = Cluster::changing(&[BINDER, REAPER]).await?;
    let namespace = cluster.namespace("unseen").await?;
    let reaper = REAPER.process(&cluster).await?;
    let due = Timestamp::now() + SignedDuration::from_secs(30);
    for name in ["changed", "replaced"] {
        namespace.create(&restart(name, Some(0))).await?;
        finish_at(&namespace, name, due).await?;
    }
    // It came before, so it is known by now.
    namespace.create(&restart("known", Some(0))).await?;
    finish(&namespace, "known").await?;
    namespace.until_gone::<Restart>("known").await;

    // It stops while they become due, for less than its Lease lasts.
    let until = async |at: Timestamp| {
        let left = Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default();
        sleep_until(Instant::now() + left).await;
    };
    until(due - SignedDuration::from_secs(8)).await;
    let log = AuditLog::from_now()?;
    let frozen = reaper.freeze()?;
    let mark = json!({"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": "x"}}});
    namespace.merge::<Restart>("changed", mark).await?;
    namespace.delete::<Restart>("replaced").await?;
    namespace.until_gone::<Restart>("replaced").await;
    let replaced = namespace.create(&restart("replaced", None)).await?;
    until(due + SignedDuration::from_secs(1)).await;
    drop(frozen);

    namespace.until_event("changed", "KeptAsDeclared").await;
    namespace.create(&restart("marker", Some(0))).await?;
    finish(&namespace, "marker").await?;
    namespace.until_gone::<Restart>("marker").await;
    assert_eq!(namespace.api::<Restart>().get("replaced").await?.uid(), replaced.uid());
    let asked = log.by(REAPER, &namespace.name)?;
    println!("{:?}", Tally::of(&asked));
    let hit = |request: &&Request| {
        request.is("delete", "basicdeploymentrestarts")
            && request.code == 200
            && ["changed", "replaced"].contains(&request.name.as_str())
    };
    assert_eq!(asked.iter().filter(hit).count(), 0, "{:?}", Tally::of(&asked));
    Ok(())
}

#[tokio::test]
async fn a_command_whose_finalizer_holds_it_is_deleted_once_and_waited_for() -> Result<()> {
    e2e::needs!(AuditLog);
    let cluster = Cluster::with(&[BINDER, REAPER]).await?;
    let namespace = cluster.namespace("finalizer").await?;
    let log = AuditLog::from_now()?;
    let mut held = restart("held", Some(0));
    held.metadata.finalizers = Some(vec!["example.com/hold".into()]);
    namespace.create(&held).await?;
    finish(&namespace, "held").await?;
    namespace
        .until("held", "is being deleted", |held: &Restart| held.metadata.deletion_timestamp.is_some())
        .await;
    namespace.merge::<Restart>("held", json!({"metadata": {"labels": {"some": "event"}}})).await?;
    namespace.create(&restart("other", Some(0))).await?;
    finish(&namespace, "other").await?;
    namespace.until_gone::<Restart>("other").await;
    namespace.merge::<Restart>("held", json!({"metadata": {"finalizers": null}})).await?;
    namespace.until_gone::<Restart>("held").await;
    let asked = log.by(REAPER, &namespace.name)?;
    // A deletion that another write overtook is refused and retried.
    let hits = asked.iter().filter(|request| request.name == "held" && request.code == 200);
    assert_eq!(hits.count(), 1, "{asked:?}");
    Ok(())
}

#[tokio::test]
async fn no_command_is_forgotten_when_the_reaper_dies_and_none_goes_early() -> Result<()> {
    const COUNT: usize = 20;
    e2e::needs!(Processes);
    let cluster = Cluster::changing(&[BINDER, REAPER]).await?;
    let namespace = cluster.namespace("killed").await?;
    let process = REAPER.process(&cluster).await?;
    for number in 0..COUNT {
        namespace.create(&restart(&format!("restart-{number}"), Some(6))).await?;
    }
    let began = Instant::now();
    for number in 0..COUNT {
        finish(&namespace, &format!("restart-{number}")).await?;
    }
    process.kill()?;
    process.until_replaced(&cluster).await;
    eventually("all of them are gone", WAIT_TIMEOUT, async || match names(&namespace).await {
        Ok(names) if names.is_empty() => Ok(()),
        Ok(names) if names.len() < COUNT && began.elapsed() < Duration::from_secs(5) => {
            panic!("{} went before their time", COUNT - names.len())
        }
        other => Err(other),
    })
    .await;
    REAPER.until_ready(&cluster).await;
    Ok(())
}

#[tokio::test]
async fn a_thousand_finished_commands_go_with_one_delete_each_and_then_there_is_silence() -> Result<()> {
    const COUNT: usize = 1000;
    e2e::needs!(AuditLog, Processes);
    let cluster = Cluster::changing(&[BINDER, REAPER]).await?;
    let namespace = cluster.namespace("thousand").await?;
    let process = REAPER.process(&cluster).await?;
    let log = AuditLog::from_now()?;
    let all = || stream::iter(0..COUNT).map(|number| format!("restart-{number}"));
    all()
        .map(Ok::<_, anyhow::Error>)
        .try_for_each_concurrent(16, async |name| {
            // All of them at the same time, once the last one is finished.
            namespace.create(&restart(&name, Some(0))).await?;
            Ok(())
        })
        .await?;
    // Its last write about them: changes during a deletion are looked at again.
    eventually("the binder has told that there is no target", 2 * WAIT_TIMEOUT, async || {
        let commands = namespace.api::<Restart>().list(&ListParams::default()).await;
        let commands = commands.map_err(|error| error.to_string())?;
        let is_told = |command: &&Restart| {
            command.status.as_ref().is_some_and(|status| condition(&status.conditions, "Bound").is_some())
        };
        let told = commands.iter().filter(is_told).count();
        if told == COUNT { Ok(()) } else { Err(told.to_string()) }
    })
    .await;
    let due = Timestamp::now() + SignedDuration::from_secs(10);
    all()
        .map(Ok::<_, anyhow::Error>)
        .try_for_each_concurrent(16, async |name| finish_at(&namespace, &name, due).await)
        .await?;
    let full = process.resident()?;
    let late = Timestamp::now().duration_since(due);
    eventually("all of them are gone", 2 * WAIT_TIMEOUT, async || match names(&namespace).await {
        Ok(names) if names.is_empty() => Ok(()),
        Ok(names) => Err(names.len().to_string()),
        Err(error) => Err(format!("{error:#}")),
    })
    .await;
    let took = Timestamp::now().duration_since(due);
    let of_reaper = |request: &Request| request.user == REAPER.user() && request.namespace == namespace.name;
    let asked = log.until_logged(COUNT, of_reaper).await;
    let memory = process.resident()? / (1 << 20);
    println!(
        "{COUNT} finished by {late:#} after their time, gone {took:#} after it: {:?}; {} MiB, then {memory} MiB",
        Tally::of(&asked),
        full / (1 << 20)
    );
    let deletes = asked.iter().filter(|request| request.is("delete", "basicdeploymentrestarts")).count();
    assert_eq!((deletes, asked.len()), (COUNT, COUNT), "{:?}", Tally::of(&asked));

    namespace.create(&restart("for-ever", None)).await?;
    finish(&namespace, "for-ever").await?;
    namespace.create(&restart("late", Some(600))).await?;
    finish(&namespace, "late").await?;
    let log = AuditLog::from_now()?;
    // The absence of an effect has no end to wait for.
    sleep_until(Instant::now() + Duration::from_secs(15)).await;
    let mut asked = log.requests()?;
    asked.retain(|request| {
        let may_be_about_them = request.namespace.is_empty() || request.namespace == namespace.name;
        request.user == REAPER.user() && may_be_about_them && request.verb != "watch"
    });
    assert!(asked.is_empty(), "{:?}", Tally::of(&asked));
    Ok(())
}
