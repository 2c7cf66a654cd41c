//! A command is bound once, to the very object that it names, beside its other owners. A command that cannot be bound
//! reports the reason.

use anyhow::{Context, Result};
use catena_api::{
    BasicDeployment, BasicDeploymentRestart, BasicDeploymentRestartSpec, TargetRef, command::BOUND, keys,
};
use e2e::{
    AuditLog, BINDER, COLLECTION_TIMEOUT, COMMANDED, Cluster, Namespace, Pace, Release, Request, Tally,
    WAIT_TIMEOUT, condition, deployment, eventually, kinds_without_admission, kubectl,
};
use futures::future::try_join_all;
use k8s_openapi::{
    api::core::v1::ConfigMap,
    apimachinery::pkg::apis::meta::v1::{Condition, OwnerReference},
};
use kube::{
    Resource, ResourceExt,
    api::{ListParams, ObjectMeta, Patch, PatchParams},
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};
use tokio::time::{Instant, sleep_until};

type Restart = BasicDeploymentRestart;

/// Longer than the API server takes to know new kinds as owners.
const LIMIT: Duration = Duration::from_secs(45);

fn restart(name: &str, target: &str) -> Restart {
    let target_ref = TargetRef { name: target.into(), namespace: None };
    Restart::new(name, BasicDeploymentRestartSpec { target_ref, ..BasicDeploymentRestartSpec::default() })
}

/// A parent that creates nothing, so that its commands stay.
fn parent(name: &str) -> BasicDeployment {
    let mut parent = deployment(name, 0);
    parent.spec.paused = true;
    parent
}

fn bound(restart: &Restart) -> Option<&Condition> {
    condition(&restart.status.as_ref()?.conditions, BOUND)
}

fn is_bound(restart: &Restart) -> bool {
    bound(restart).is_some_and(|bound| bound.status == "True")
}

async fn until_refused(namespace: &Namespace, name: &str, reason: &str) -> String {
    let refused = |restart: &Restart| {
        bound(restart).is_some_and(|bound| bound.status == "False" && bound.reason == reason)
    };
    let restart = namespace.until_within(LIMIT, name, &format!("says {reason}"), refused).await;
    bound(&restart).map(|bound| bound.message.clone()).unwrap_or_default()
}

async fn until_bound(namespace: &Namespace, name: &str) -> Restart {
    namespace.until_within(LIMIT, name, "is bound", is_bound).await
}

#[tokio::test]
async fn a_command_is_bound_to_the_uid_of_its_target_beside_the_owners_that_it_has() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("binds").await?;
    let target = namespace.create(&parent("shop")).await?;
    let other = ConfigMap {
        metadata: ObjectMeta { name: Some("other".into()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    };
    let other = namespace.create(&other).await?;
    let mut owned = restart("owned", "shop");
    let foreign = OwnerReference {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        name: "other".into(),
        uid: other.uid().context("no uid")?,
        controller: None,
        block_owner_deletion: None,
    };
    owned.metadata.owner_references = Some(vec![foreign.clone()]);
    namespace.create(&owned).await?;

    let owned = until_bound(&namespace, "owned").await;
    let added = OwnerReference {
        api_version: e2e::GROUP_VERSION.into(),
        kind: "BasicDeployment".into(),
        name: "shop".into(),
        uid: target.uid().context("no uid")?,
        controller: None,
        block_owner_deletion: None,
    };
    assert_eq!(owned.owner_references(), [foreign.clone(), added]);
    assert_eq!(owned.annotations()[keys::BOUND_TO], target.uid().context("no uid")?);

    // With a controller of its own, it would outlive the target.
    let mut operated = restart("operated", "shop");
    operated.metadata.owner_references = Some(vec![OwnerReference { controller: Some(true), ..foreign }]);
    namespace.create(&operated).await?;
    let message = until_refused(&namespace, "operated", "OwnershipRefused").await;
    assert!(message.contains("the garbage collector") && message.contains("mode: Label"), "{message}");
    Ok(())
}

#[tokio::test]
async fn a_missing_target_is_said_and_its_arrival_noticed_at_once() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("waits").await?;
    // From here on, the API server knows the kind as an owner.
    namespace.create(&parent("first")).await?;
    namespace.create(&restart("first", "first")).await?;
    until_bound(&namespace, "first").await;

    namespace.create(&restart("early", "shop")).await?;
    let message = until_refused(&namespace, "early", "TargetNotFound").await;
    assert!(message.contains("BasicDeployment shop") && message.contains("create it"), "{message}");
    // Old enough that the next look-up is at least 15 s away: they come after about 5, 10, 20 and 40 s.
    sleep_until(Instant::now() + Duration::from_secs(21)).await;
    let pace = Pace::start(&namespace).await?;
    namespace.create(&parent("shop")).await?;
    until_bound(&namespace, "early").await;
    let took = pace.elapsed();
    assert!(took < Duration::from_secs(12), "it took {took:?} at the cluster's pace");
    Ok(())
}

#[tokio::test]
async fn a_command_that_somebody_writes_to_without_pause_is_bound_by_the_first_write() -> Result<()> {
    e2e::needs!(AuditLog);
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("busy").await?;
    namespace.create(&parent("first")).await?;
    namespace.create(&restart("first", "first")).await?;
    until_bound(&namespace, "first").await;
    let mut busy = restart("busy", "shop");
    busy.metadata.annotations = Some(BTreeMap::from([("turn".into(), "none".into())]));
    namespace.create(&busy).await?;
    until_refused(&namespace, "busy", "TargetNotFound").await;

    let log = AuditLog::from_now()?;
    let restarts = namespace.api::<Restart>();
    let writes = async {
        for turn in 0.. {
            let patch = Patch::Merge(json!({"metadata": {"annotations": {"turn": format!("{turn}")}}}));
            restarts.patch_metadata("busy", &PatchParams::default(), &patch).await?;
        }
        Ok(())
    };
    let bound = async {
        namespace.create(&parent("shop")).await?;
        anyhow::Ok(until_bound(&namespace, "busy").await)
    };
    let bound = tokio::select! {
        ended = writes => return ended,
        bound = bound => bound?,
    };
    assert!(bound.annotations().contains_key(keys::BOUND_TO));
    let of_binder = |request: &Request| {
        let is_command = (&*request.name, &*request.resource) == ("busy", "basicdeploymentrestarts");
        request.user == BINDER.user() && is_command && request.is_write()
    };
    log.until_logged(1, |request| of_binder(request) && request.code < 300).await;
    let mut refused = log.by(BINDER, &namespace.name)?;
    refused.retain(|request| request.is_write() && request.code >= 400);
    assert!(refused.is_empty(), "{:?}", Tally::of(&refused));
    Ok(())
}

#[tokio::test]
async fn a_json_patch_with_a_test_for_null_applies_only_while_the_field_is_absent() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("null").await?;
    let patch = |field: &str, value: &Value| {
        let path = format!("/metadata/{field}");
        serde_json::from_value(json!([
            {"op": "test", "path": path, "value": null}, {"op": "add", "path": path, "value": value},
        ]))
        .map(Patch::<Value>::Json)
    };
    let restarts = namespace.api::<Restart>();
    namespace.create(&restart("bare", "nobody")).await?;
    let other = ConfigMap {
        metadata: ObjectMeta { name: Some("other".into()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    };
    let uid = namespace.create(&other).await?.uid();
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": uid});
    for (field, value) in [("annotations", json!({"note": "mine"})), ("ownerReferences", json!([owner]))] {
        restarts.patch_metadata("bare", &PatchParams::default(), &patch(field, &value)?).await?;
        let again = restarts.patch_metadata("bare", &PatchParams::default(), &patch(field, &value)?).await;
        let Err(kube::Error::Api(refused)) = again else { panic!("{field}: {again:?}") };
        assert_eq!(refused.code, 422, "{field}: {refused:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_target_elsewhere_never_owns() -> Result<()> {
    let cluster = Cluster::changing_one_of(&COMMANDED, BINDER).await?;
    // The API server would refuse the command.
    let release = Release::upgrade(&cluster, BINDER, &json!({"kinds": kinds_without_admission()?})).await?;
    let (here, there) = (cluster.namespace("here").await?, cluster.namespace("there").await?);
    there.create(&parent("shop")).await?;
    let mut away = restart("away", "shop");
    away.spec.target_ref.namespace = Some(there.name.clone());
    eventually("the policy is gone", WAIT_TIMEOUT, async || {
        here.create(&away).await.map_err(|error| format!("{error:#}"))
    })
    .await;
    here.create(&restart("astray", "shop")).await?;

    let message = until_refused(&here, "away", "CrossNamespace").await;
    assert!(message.contains(&there.name) && message.contains(&here.name), "{message}");
    // A target of that name in another namespace does not count.
    until_refused(&here, "astray", "TargetNotFound").await;
    for restart in here.api::<Restart>().list(&ListParams::default()).await? {
        assert!(restart.owner_references().is_empty(), "{:?}", restart.owner_references());
    }
    release.restore().await
}

#[tokio::test]
async fn a_command_goes_with_its_target() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("goes").await?;
    namespace.create(&parent("shop")).await?;
    namespace.create(&restart("once", "shop")).await?;
    until_bound(&namespace, "once").await;
    namespace.delete::<BasicDeployment>("shop").await?;
    namespace.until_collected::<Restart>("once").await;
    Ok(())
}

#[tokio::test]
async fn a_target_that_is_made_again_is_another_one() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("replaced").await?;
    namespace.create(&parent("shop")).await?;
    namespace.create(&restart("old", "shop")).await?;
    let before = until_bound(&namespace, "old").await.annotations()[keys::BOUND_TO].clone();

    // The garbage collector orphans only dependents that it has seen.
    let (mut nobody, mut garbage) = (parent("nobody"), restart("garbage", "nobody"));
    nobody.metadata.uid = Some("00000000-0000-0000-0000-000000000000".into());
    garbage.metadata.owner_references = Some(nobody.owner_ref(&()).into_iter().collect());
    namespace.create(&garbage).await?;
    namespace.until_collected::<Restart>("garbage").await;
    let arguments = ["delete", "basicdeployment", "shop", "--cascade=orphan", "--namespace", &namespace.name];
    kubectl(&arguments).await?;
    namespace
        .until_within(COLLECTION_TIMEOUT, "old", "is orphaned", |old: &Restart| {
            old.owner_references().is_empty()
        })
        .await;
    namespace.create(&parent("shop")).await?;
    let message = until_refused(&namespace, "old", "TargetReplaced").await;
    assert!(message.contains(&before) && message.contains("create a new command"), "{message}");

    namespace.create(&restart("new", "shop")).await?;
    until_bound(&namespace, "new").await;
    let old = namespace.api::<Restart>().get("old").await?;
    assert!(old.owner_references().is_empty(), "{:?}", old.owner_references());
    Ok(())
}

#[tokio::test]
async fn an_owner_that_is_there_already_is_not_written_again() -> Result<()> {
    e2e::needs!(AuditLog);
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("owned").await?;
    let log = AuditLog::from_now()?;
    let target = namespace.create(&parent("shop")).await?;
    let mut command = restart("owned", "shop");
    let owner = OwnerReference {
        api_version: e2e::GROUP_VERSION.into(),
        kind: "BasicDeployment".into(),
        name: "shop".into(),
        uid: target.uid().context("no uid")?,
        controller: Some(true),
        block_owner_deletion: None,
    };
    command.metadata.owner_references = Some(vec![owner.clone()]);
    namespace.create(&command).await?;
    let bound = until_bound(&namespace, "owned").await;
    assert_eq!(bound.owner_references(), [owner]);
    let written = written(&log, &namespace)?;
    assert!(!written.contains_key("patch basicdeploymentrestarts owned"), "{written:?}");
    Ok(())
}

fn written(log: &AuditLog, namespace: &Namespace) -> Result<BTreeMap<String, usize>> {
    let mut written = BTreeMap::new();
    for request in log.by(BINDER, &namespace.name)?.into_iter().filter(Request::is_write) {
        // An owner that the API server does not know yet is refused and retried.
        if request.code < 300 {
            let what = format!("{} {} {}", request.verb, request.resource, request.name);
            *written.entry(what).or_default() += 1;
        }
    }
    Ok(written)
}

/// From the last create to the last write of the binder, at the pace of the cluster.
fn span(log: &AuditLog, namespace: &Namespace, pace: &Pace) -> Result<Duration> {
    let requests = log.requests()?;
    let created =
        requests.iter().filter(|r| r.namespace == namespace.name && r.verb == "create").map(|r| r.at);
    let written = log.by(BINDER, &namespace.name)?.into_iter().filter(Request::is_write).map(|r| r.at);
    let (from, last) = (created.max().context("nothing was created")?, written.max().context("no write")?);
    println!("bound after {:#}", last.duration_since(from));
    Ok(pace.between(from, last))
}

mod alone {
    use super::{
        AuditLog, BINDER, BasicDeployment, Cluster, Context, Duration, Instant, ListParams, Pace, Request,
        ResourceExt, Restart, Result, Tally, is_bound, parent, restart, sleep_until, span, try_join_all,
        until_bound, written,
    };

    #[tokio::test]
    async fn a_thousand_commands_for_fifty_targets_are_bound_within_fifteen_seconds_in_one_write_each()
    -> Result<()> {
        const TARGETS: usize = 50;
        const COMMANDS: usize = 1000;
        // Fifteen seconds of a quiet machine, which this keeps busy, are about five at the pace of the cluster.
        const LIMIT: Duration = Duration::from_secs(7);
        // Of a machine that is as busy as can be; the limit judges.
        const PATIENCE: Duration = Duration::from_secs(300);
        e2e::needs!(AuditLog);
        let cluster = Cluster::alone().await?;
        let namespace = cluster.namespace("thousand").await?;
        let name = |number: usize| format!("shop-{number}");
        try_join_all((0..TARGETS).map(async |number| namespace.create(&parent(&name(number))).await)).await?;
        namespace.create(&restart("first", &name(0))).await?;
        until_bound(&namespace, "first").await;
        namespace.delete::<Restart>("first").await?;
        namespace.until_gone::<Restart>("first").await;

        let (log, pace) = (AuditLog::from_now()?, Pace::start(&namespace).await?);
        let created = Instant::now();
        let create = async |number: usize| {
            namespace.create(&restart(&format!("restart-{number}"), &name(number % TARGETS))).await
        };
        try_join_all((0..COMMANDS).map(create)).await?;
        let creating = created.elapsed();
        let restarts = namespace.api::<Restart>();
        let last = format!("restart-{}", COMMANDS - 1);
        namespace.until_within(PATIENCE, &last, "is bound", is_bound).await;
        // Rarely, so that the reads do not slow down the measured work; the audit log has the times.
        loop {
            sleep_until(Instant::now() + Duration::from_secs(1)).await;
            let all = restarts.list(&ListParams::default()).await?;
            let bound = all.iter().filter(|restart| is_bound(restart)).count();
            if bound == COMMANDS {
                break;
            }
            assert!(created.elapsed() < PATIENCE, "{bound} are bound");
        }

        let of_binder = |request: &Request| {
            request.user == BINDER.user()
                && request.namespace == namespace.name
                && request.is_write()
                && request.resource.starts_with("basicdeploymentrestarts")
                && request.code < 300
        };
        log.until_logged(2 * COMMANDS, of_binder).await;
        let mut written = written(&log, &namespace)?;
        // Events are best-effort.
        written.retain(|what, _| what.contains(" basicdeploymentrestarts"));
        let took = span(&log, &namespace, &pace)?;
        println!("{COMMANDS} commands: created in {creating:?}, all bound {took:?} after the last");
        let twice: Vec<_> = written.iter().filter(|(_, times)| **times != 1).collect();
        assert!(twice.is_empty(), "{twice:?}");
        assert_eq!(written.len(), 2 * COMMANDS, "one write and one status write each");
        assert!(took < LIMIT, "it took {took:?}; they were created in {creating:?}");
        for number in [0, 1, COMMANDS - 1] {
            let restart = restarts.get(&format!("restart-{number}")).await?;
            let target = namespace.api::<BasicDeployment>().get(&name(number % TARGETS)).await?;
            assert_eq!(restart.owner_references()[0].uid, target.uid().context("no uid")?);
        }

        // The absence of an effect has no end to wait for.
        let log = AuditLog::from_now()?;
        sleep_until(Instant::now() + Duration::from_secs(10)).await;
        let mut again = log.by(BINDER, &namespace.name)?;
        again.retain(Request::is_write);
        assert!(again.is_empty(), "{:?}", Tally::of(&again));
        Ok(())
    }
}
