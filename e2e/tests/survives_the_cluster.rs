//! Whatever the cluster takes away from a controller — rights, templates, whole kinds — is reported, and after its return
//! the controller continues by itself. Each test changes a controller that others need.

use std::time::Duration;

use anyhow::{Context, Result};
use catena_api::{BasicDeployment, BasicReplicaSet};
use e2e::{
    AuditLog, CHAIN, Cluster, Controller, DEPLOYMENTS, REPLICA_SETS, Release, Tally, Undo, WAIT_TIMEOUT,
    condition, deployment, eventually, kubectl, replica_set, until_root_cause,
};
use k8s_openapi::{
    api::{
        core::v1::ConfigMap,
        rbac::v1::{ClusterRole, ClusterRoleBinding},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::{from_value, json};
use tokio::time::{Instant, sleep_until};

/// A failing watch is tolerated for half a minute.
const LONG: Duration = Duration::from_secs(150);

/// Sooner than other failing watches are given up: a kind that is no longer served does not return by itself.
const AT_ONCE: Duration = Duration::from_secs(20);

async fn pids(cluster: &Cluster) -> Result<[i32; 2]> {
    Ok([DEPLOYMENTS.process(cluster).await?.pid, REPLICA_SETS.process(cluster).await?.pid])
}

/// The API server applies a changed role a moment later.
async fn until_forbidden(controller: Controller, what: &[&str]) {
    let user = controller.user();
    let asked = [&["auth", "can-i"], what, &["--all-namespaces", "--as", &user]].concat();
    eventually("it is forbidden", WAIT_TIMEOUT, async || match kubectl(&asked).await {
        Err(_) => Ok(()),
        Ok(answer) => Err(answer),
    })
    .await;
}

#[tokio::test]
async fn a_missing_permission_is_named_and_used_as_soon_as_it_is_there() -> Result<()> {
    let cluster = Cluster::changing(&CHAIN).await?;
    let namespace = cluster.namespace("forbidden").await?;
    let pids_before = pids(&cluster).await?;
    let roles = cluster.all::<ClusterRole>();
    let undo = Undo::keep(&roles, REPLICA_SETS.name()).await?;
    let mut role = roles.get(REPLICA_SETS.name()).await?;
    for rule in role.rules.iter_mut().flatten() {
        if rule.resources.iter().flatten().any(|resource| resource == "pods") {
            rule.verbs.retain(|verb| verb != "create");
        }
    }
    roles.replace(REPLICA_SETS.name(), &PostParams::default(), &role).await?;
    until_forbidden(REPLICA_SETS, &["create", "pods"]).await;

    namespace.create(&deployment("web", 2)).await?;
    let web = namespace
        .until("web", "names what is forbidden", |web: &BasicDeployment| {
            let blocker = web.status.as_ref().and_then(|status| status.blocked_by.as_ref());
            blocker.is_some_and(|blocker| blocker.reason == "Forbidden")
        })
        .await;
    let blocker = web.status.and_then(|status| status.blocked_by).context("blockedBy")?;
    for part in ["cannot create resource \"pods\"", "ServiceAccount"] {
        assert!(blocker.message.contains(part), "{part} is not in: {}", blocker.message);
    }

    undo.now(cluster.client.clone()).await?;
    namespace.until_ready("web").await;
    assert_eq!(pids(&cluster).await?, pids_before, "a controller was restarted");
    Ok(())
}

#[tokio::test]
async fn a_controller_that_lost_all_its_rights_goes_on_when_it_gets_them_back() -> Result<()> {
    e2e::needs!(AuditLog);
    let cluster = Cluster::changing(&CHAIN).await?;
    let namespace = cluster.namespace("powerless").await?;
    namespace.create(&deployment("web", 1)).await?;
    namespace.until_ready("web").await;
    let pids_before = pids(&cluster).await?;
    let bindings = cluster.all::<ClusterRoleBinding>();
    let undo = Undo::keep(&bindings, DEPLOYMENTS.name()).await?;
    bindings.delete(DEPLOYMENTS.name(), &DeleteParams::default()).await?;
    until_forbidden(DEPLOYMENTS, &["patch", "basicreplicasets.catena.dev"]).await;

    let log = AuditLog::from_now()?;
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"replicas": 3}})).await?;
    log.until_logged(1, |request| {
        request.user == DEPLOYMENTS.user() && request.namespace == namespace.name && request.code == 403
    })
    .await;
    // Not even its status can be written, so that only time ends the backoff.
    sleep_until(Instant::now() + Duration::from_secs(4)).await;
    let requests = log.by(DEPLOYMENTS, &namespace.name)?;
    let refused = requests.iter().filter(|request| request.code == 403).count();
    assert!((1..=10).contains(&refused), "{refused} requests in vain: {:?}", Tally::of(&requests));
    undo.now(cluster.client.clone()).await?;
    namespace.until_ready("web").await;
    namespace.until_ready_pods(3).await;
    assert_eq!(pids(&cluster).await?, pids_before, "a controller was restarted");
    Ok(())
}

#[tokio::test]
async fn a_broken_template_is_told_where_it_is_used_and_harms_no_other() -> Result<()> {
    let cluster = Cluster::changing(&CHAIN).await?;
    let namespace = cluster.namespace("template").await?;
    let pids_before = pids(&cluster).await?;
    let mut set = replica_set("uses-it", 1);
    set.spec.template = "e2e".into();
    namespace.create(&set).await?;

    let broken = json!({"templates": {"e2e": "apiVersion: v1\nkind: Pod\nmetadata: {name: {% if %}"}});
    let release = Release::upgrade(&cluster, REPLICA_SETS, &broken).await?;
    let stalled = namespace
        .until("uses-it", "says that its template is broken", |set: &BasicReplicaSet| {
            set.status.as_ref().is_some_and(|status| {
                let stalled = condition(&status.conditions, "Stalled");
                stalled.is_some_and(|stalled| stalled.status == "True" && stalled.reason == "TemplateFailed")
            })
        })
        .await;
    let conditions = stalled.status.context("status")?.conditions;
    let message = &condition(&conditions, "Stalled").context("Stalled")?.message;
    assert!(message.contains("\"e2e\""), "{message}");
    namespace.create(&deployment("other", 2)).await?;
    namespace.until_ready("other").await;
    let (ready, said) = REPLICA_SETS.process(&cluster).await?.readiness().await?;
    assert_eq!(ready, 200, "{said}");

    let good = "apiVersion: v1\nkind: Pod\nmetadata: {name: {{ name ~ \"-\" ~ suffix }}}\nspec:\n  \
        securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}\n  containers:\n  - name: main\n    \
        image: {{ parameters.image }}\n    \
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}\n";
    release.change(&json!({"templates": {"e2e": good}})).await?;
    namespace.until_set_ready("uses-it").await;
    assert_eq!(pids(&cluster).await?, pids_before, "a controller was restarted");
    namespace.delete::<BasicReplicaSet>("uses-it").await?;
    release.restore().await
}

#[tokio::test]
async fn a_kind_that_is_taken_away_is_told_and_found_again() -> Result<()> {
    e2e::needs!(Processes);
    let cluster = Cluster::changing(&CHAIN).await?;
    let namespace = cluster.namespace("kind").await?;
    namespace.create(&deployment("web", 2)).await?;
    namespace.until_ready("web").await;
    let [_, replica_sets_before] = pids(&cluster).await?;
    let definitions = cluster.all::<CustomResourceDefinition>();
    let name = "basicreplicasets.catena.dev";
    let undo = Undo::keep(&definitions, name).await?;
    definitions.delete(name, &DeleteParams::default()).await?;

    let told = |web: &BasicDeployment| {
        web.status.as_ref().is_some_and(|status| {
            let ready = condition(&status.conditions, "Ready");
            ready.is_some_and(|ready| {
                ready.status == "False"
                    && ready.reason == "KindNotServed"
                    && ready.message.contains("does not serve the kind BasicReplicaSet")
                    && ready.message.contains("install its CustomResourceDefinition")
            })
        })
    };
    namespace
        .until_soon(AT_ONCE, "web", "says that its children are of no kind that is served", told)
        .await?;

    // Started without the kind, it stays up and reports the missing kind.
    let killed = DEPLOYMENTS.process(&cluster).await?;
    killed.kill()?;
    let process = killed.until_replaced(&cluster).await;
    namespace.create(&deployment("late", 1)).await?;
    namespace.until_within(LONG, "late", "says that its children are of no kind that is served", told).await;
    // Its readiness does not depend on it: the chart that brings the kind may wait for this controller to be ready.
    let ready = DEPLOYMENTS.until_ready(&cluster).await;
    assert_eq!(ready.pid, process.pid, "it was restarted");
    let metrics = process.metrics().await?;
    assert!(metrics.contains("catena_kind_observed{kind=\"BasicReplicaSet\"} 0"), "{metrics}");
    until_root_cause(&namespace.name, "basicdeployment/late", "KindNotServed").await;
    assert_eq!(DEPLOYMENTS.process(&cluster).await?.pid, process.pid, "it was restarted");

    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../crds/basicreplicasets.catena.dev.yaml");
    // As the field manager of helm: the next upgrade of the release is refused if fields of others differ.
    kubectl(&["apply", "--server-side", "--field-manager=helm", "--filename", file]).await?;
    let is_ready = |web: &BasicDeployment| web.status.as_ref().is_some_and(|status| status.ready);
    namespace.until_within(LONG, "web", "is ready", is_ready).await;
    namespace.until_within(LONG, "late", "is ready", is_ready).await;
    namespace.until_ready_pods(3).await;
    DEPLOYMENTS.until_ready(&cluster).await;
    REPLICA_SETS.until_ready(&cluster).await;
    assert_eq!(pids(&cluster).await?, [process.pid, replica_sets_before], "a controller was restarted");
    // With the labels of the release.
    undo.now(cluster.client.clone()).await
}

/// A page that is too large is asked for again with fewer objects.
#[tokio::test]
async fn the_api_server_goes_on_with_a_list_in_pages_of_another_size() -> Result<()> {
    let cluster = Cluster::with(&[]).await?;
    let namespace = cluster.namespace("pages").await?;
    for number in 0..6 {
        namespace
            .create(&from_value::<ConfigMap>(json!({"metadata": {"name": format!("page-{number}")}}))?)
            .await?;
    }
    let mut names = Vec::new();
    let mut next: Option<String> = None;
    for size in [3, 1, 2, 500] {
        let pages = ListParams { limit: Some(size), continue_token: next.take(), ..ListParams::default() };
        let page = namespace.api::<ConfigMap>().list(&pages).await?;
        next = page.metadata.continue_.filter(|token| !token.is_empty());
        names.extend(page.items.iter().map(ResourceExt::name_any).filter(|name| name.starts_with("page-")));
        if next.is_none() {
            break;
        }
    }
    assert_eq!(names, (0..6).map(|number| format!("page-{number}")).collect::<Vec<_>>());
    Ok(())
}
