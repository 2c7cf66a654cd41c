//! Commands of other projects are bound by configuration alone, without any code for them.

use std::{collections::BTreeMap, path::Path, time::Duration};

use anyhow::Result;
use catena_api::keys;
use e2e::{
    AuditLog, BINDER, Cluster, ForeignKinds, Namespace, Release, Request, eventually, explained, kubectl,
    kubectl_apply, succeeds, yaml,
};
use k8s_openapi::api::{admissionregistration::v1::ValidatingAdmissionPolicy, core::v1::Node};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, ListParams, Patch, PatchParams},
    core::GroupVersionKind,
    discovery::ApiResource,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

/// Longer than the API server takes to know new kinds as owners.
const LIMIT: Duration = Duration::from_secs(60);

const PROJECTS: [&str; 7] = [
    "cassandra",
    "cloudnative-pg",
    "flink",
    "kruise",
    "kubeblocks",
    "node-maintenance",
    "percona-xtradb-cluster",
];

const TARGETS: &str = include_str!("../foreign-commands/targets.yaml");

const COMMANDS: &str = include_str!("../foreign-commands/commands.yaml");

/// The values that the pages show.
fn example() -> Result<Value> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/command-binder/other-projects-values.yaml");
    Ok(serde_saphyr::from_str(&std::fs::read_to_string(path)?)?)
}

fn api(cluster: &Cluster, namespace: Option<&Namespace>, kind: &str) -> Result<Api<DynamicObject>> {
    let [group, version, kind] = kind.split('/').collect::<Vec<_>>()[..] else { anyhow::bail!("{kind}") };
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let client = cluster.client.clone();
    Ok(match namespace {
        Some(namespace) => Api::namespaced_with(client, &namespace.name, &resource),
        None => Api::all_with(client, &resource),
    })
}

async fn until(
    api: &Api<DynamicObject>,
    name: &str,
    what: &str,
    is: impl Fn(&DynamicObject) -> bool,
) -> DynamicObject {
    eventually(&format!("{name} {what}"), LIMIT, async || {
        let object = api.get(name).await.map_err(|error| error.to_string())?;
        if is(&object) { Ok(object) } else { Err(yaml(&object)) }
    })
    .await
}

/// Waits until a command is owned by a target and by nothing else, and returns the command.
async fn until_owned_by(api: &Api<DynamicObject>, name: &str, target: &DynamicObject) -> DynamicObject {
    let command = until(api, name, "is owned", |command| !command.owner_references().is_empty()).await;
    let owners: Vec<_> = command.owner_references().iter().map(|owner| Some(owner.uid.clone())).collect();
    assert_eq!(owners, [target.uid()], "{name}");
    command
}

/// Writes and their answers by verb, kind and name, without Events and the Lease.
fn written(log: &AuditLog, namespace: &Namespace) -> Result<BTreeMap<String, usize>> {
    let mut written = BTreeMap::new();
    for request in log.requests()?.iter().filter(|request| counts(request, namespace)) {
        let what = format!("{} {} {}", request.verb, request.resource, request.name);
        *written.entry(what).or_default() += 1;
    }
    Ok(written)
}

fn counts(request: &Request, namespace: &Namespace) -> bool {
    request.user == BINDER.user()
        && (request.namespace.is_empty() || request.namespace == namespace.name)
        && request.is_write()
        && request.code < 300
        && !["events", "leases"].contains(&&*request.resource)
}

async fn may(verb: &str, resource: &str) -> bool {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let (subresource, user) = (format!("--subresource={subresource}"), BINDER.user());
    kubectl(&["auth", "can-i", verb, resource, &subresource, "--all-namespaces", "--as", &user]).await.is_ok()
}

/// The settings that the chart derives from the list of kinds.
async fn its_rights_are_enough_and_not_more() {
    for (verb, resource) in [
        ("patch", "flinkstatesnapshots.flink.apache.org"),
        ("delete", "cassandratasks.control.k8ssandra.io"),
        ("watch", "nodemaintenances.nodemaintenance.medik8s.io"),
        ("patch", "backups.postgresql.cnpg.io"),
        ("get", "nodes"),
        ("list", "flinksessionjobs.flink.apache.org"),
        ("patch", "basicdeploymentrestarts.catena.dev/status"),
    ] {
        assert!(may(verb, resource).await, "may not {verb} {resource}");
    }
    for (verb, resource) in [
        ("delete", "backups.postgresql.cnpg.io"),
        ("update", "flinkstatesnapshots.flink.apache.org"),
        ("create", "opsrequests.operations.kubeblocks.io"),
        ("patch", "cassandratasks.control.k8ssandra.io/status"),
        ("patch", "clusters.postgresql.cnpg.io"),
        ("delete", "perconaxtradbclusters.pxc.percona.com"),
        ("update", "nodes/finalizers"),
        ("patch", "nodes"),
        ("delete", "pods"),
        ("list", "secrets"),
        ("get", "configmaps"),
    ] {
        assert!(!may(verb, resource).await, "may {verb} {resource}");
    }
}

#[tokio::test]
async fn commands_of_other_projects_are_bound_by_configuration_alone() -> Result<()> {
    e2e::needs!(AuditLog, NoKindsOfOthers);
    let cluster = Cluster::changing(&[BINDER]).await?;
    let kinds = ForeignKinds::install(&PROJECTS).await?;
    let release = Release::upgrade(&cluster, BINDER, &example()?).await?;
    let policies = cluster.all::<ValidatingAdmissionPolicy>().list(&ListParams::default()).await?;
    let policies: Vec<_> = policies.iter().map(ResourceExt::name_any).collect();
    for own in ["basicdeploymentrestarts", "basicdeploymentrollbacks"] {
        assert!(
            policies.iter().any(|policy| policy.contains(own)),
            "{own} is guarded by none of {policies:?}"
        );
    }
    let namespace = cluster.namespace("foreign").await?;
    let here = Some(&namespace);
    let tasks = api(&cluster, here, "control.k8ssandra.io/v1alpha1/CassandraTask")?;
    let backups = api(&cluster, here, "postgresql.cnpg.io/v1/Backup")?;
    let percona = api(&cluster, here, "pxc.percona.com/v1/PerconaXtraDBClusterBackup")?;
    let snapshots = api(&cluster, here, "flink.apache.org/v1beta1/FlinkStateSnapshot")?;
    let requests = api(&cluster, here, "operations.kubeblocks.io/v1alpha1/OpsRequest")?;
    let recreations = api(&cluster, here, "apps.kruise.io/v1alpha1/ContainerRecreateRequest")?;
    let maintenances = api(&cluster, None, "nodemaintenance.medik8s.io/v1beta1/NodeMaintenance")?;

    kubectl_apply(&namespace.name, TARGETS).await?;
    let target = async |kind: &str, name: &str| anyhow::Ok(api(&cluster, here, kind)?.get(name).await?);
    let pod = target("/v1/Pod", "web").await?;
    let node = cluster.all::<Node>().list(&ListParams::default().limit(1)).await?.items.remove(0);
    let commands = COMMANDS.replace("POD", &pod.uid().unwrap_or_default()).replace("NODE", &node.name_any());
    let log = AuditLog::from_now()?;
    kubectl_apply(&namespace.name, &commands).await?;

    // In a nested object; one of two kinds; in the core group; cluster-wide.
    let dc = target("cassandra.datastax.com/v1beta1/CassandraDatacenter", "dc1").await?;
    until_owned_by(&tasks, "cleanup", &dc).await;
    let job = target("flink.apache.org/v1beta1/FlinkSessionJob", "job").await?;
    until_owned_by(&snapshots, "savepoint", &job).await;
    until_owned_by(&recreations, "recreate", &pod).await;
    let maintenance =
        until(&maintenances, "e2e-maintenance", "is owned", |m| !m.owner_references().is_empty()).await;
    assert_eq!(Some(&maintenance.owner_references()[0].uid), node.uid().as_ref());
    until_owned_by(&percona, "harmless", &target("pxc.percona.com/v1/PerconaXtraDBCluster", "db").await?)
        .await;
    let db = target("apps.kubeblocks.io/v1/Cluster", "db").await?;
    until_owned_by(&requests, "restart", &db).await;
    // An object that stands for data gets a label and no owner.
    let labelled = |backup: &DynamicObject| backup.labels().contains_key(keys::TARGET_UID);
    let backup = until(&backups, "nightly", "has a label", labelled).await;
    let db = target("postgresql.cnpg.io/v1/Cluster", "db").await?;
    assert_eq!(Some(&backup.labels()[keys::TARGET_UID]), db.uid().as_ref());

    let refused = [
        ("precious", "OwnershipRefused", "percona.com/delete-backup"),
        ("restore", "OwnershipRefused", "makes the cluster"),
        ("empty", "InvalidReference", "names no target"),
        ("crooked", "InvalidReference", "../../nodes"),
        ("astray", "CrossNamespace", "default"),
        ("late", "TargetReplaced", "another"),
    ];
    for (name, reason, expected) in refused {
        let told = namespace.until_event(name, reason).await;
        assert!(told.contains(expected), "{name}: {told}");
    }
    for (api, name) in [
        (&percona, "precious"),
        (&requests, "restore"),
        (&tasks, "astray"),
        (&recreations, "late"),
        (&backups, "nightly"),
    ] {
        assert_eq!(api.get(name).await?.owner_references(), [], "{name}");
    }

    // One write for each bound command, none to the status of a foreign kind, and no others.
    log.until_logged(7, |request| counts(request, &namespace)).await;
    let mut bound: Vec<_> = written(&log, &namespace)?.into_iter().collect();
    bound.sort();
    let expected = [
        "backups nightly",
        "cassandratasks cleanup",
        "containerrecreaterequests recreate",
        "flinkstatesnapshots savepoint",
        "nodemaintenances e2e-maintenance",
        "opsrequests restart",
        "perconaxtradbclusterbackups harmless",
    ]
    .map(|what| (format!("patch {what}"), 1));
    assert_eq!(bound, expected);
    let quiet = AuditLog::from_now()?;
    sleep_until(Instant::now() + Duration::from_secs(8)).await;
    assert_eq!(written(&quiet, &namespace)?, BTreeMap::new());

    // Once the finalizer is gone, nothing prevents the binding.
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    percona.patch("precious", &PatchParams::default(), &patch).await?;
    until(&percona, "precious", "is owned", |backup| !backup.owner_references().is_empty()).await;

    // Also below an owner of another group, and below kinds that usually own nothing.
    for (kind, name) in [
        ("cassandratask", "cleanup"),
        ("containerrecreaterequest", "recreate"),
        ("nodemaintenance", "e2e-maintenance"),
    ] {
        let tree = succeeds(&namespace.name, &["tree", kind, name]).await?.out;
        assert!(tree.contains(&format!("/{name}")), "{tree}");
        explained(&namespace.name, &[kind, name]).await?;
    }

    its_rights_are_enough_and_not_more().await;
    kubectl(&["delete", "nodemaintenance.nodemaintenance.medik8s.io", "e2e-maintenance"]).await?;
    release.restore().await?;
    kinds.remove().await?;
    Ok(())
}

#[tokio::test]
async fn kinds_come_and_go_and_stop_no_other() -> Result<()> {
    const LATER: [&str; 2] = ["etcd-druid", "mariadb"];
    e2e::needs!(NoKindsOfOthers);
    let cluster = Cluster::changing(&[BINDER]).await?;
    let _flink = ForeignKinds::install(&["flink"]).await?;
    // A kind that is configured but not served.
    let release = Release::upgrade(&cluster, BINDER, &example()?).await?;
    let namespace = cluster.namespace("arriving").await?;
    let here = Some(&namespace);
    let snapshots = api(&cluster, here, "flink.apache.org/v1beta1/FlinkStateSnapshot")?;
    let snapshot = async |name: &str| {
        let job = format!(
            "apiVersion: flink.apache.org/v1beta1\nkind: FlinkDeployment\nmetadata: {{name: {name}}}\n"
        );
        let command = format!(
            "apiVersion: flink.apache.org/v1beta1\nkind: FlinkStateSnapshot\nmetadata: {{name: {name}}}\nspec: {{jobReference: {{name: {name}}}}}\n"
        );
        kubectl_apply(&namespace.name, &format!("{job}---\n{command}")).await?;
        until(&snapshots, name, "is owned", |command| !command.owner_references().is_empty()).await;
        anyhow::Ok(())
    };
    snapshot("before").await?;

    // A self-describing kind with a command that is older than its target, and the configured kind.
    let later = ForeignKinds::install(&LATER).await?;
    let tasks = api(&cluster, here, "druid.gardener.cloud/v1alpha1/EtcdOpsTask")?;
    kubectl_apply(
        &namespace.name,
        "
apiVersion: druid.gardener.cloud/v1alpha1
kind: EtcdOpsTask
metadata: {name: defragment}
spec: {etcdName: main}
---
apiVersion: druid.gardener.cloud/v1alpha1
kind: EtcdOpsTask
metadata: {name: for-none}
spec: {ttlSecondsAfterFinished: 60}
---
apiVersion: k8s.mariadb.com/v1alpha1
kind: Backup
metadata: {name: nightly}
spec: {mariaDbRef: {name: db}}
---
apiVersion: k8s.mariadb.com/v1alpha1
kind: MariaDB
metadata: {name: db}
",
    )
    .await?;
    namespace.until_event("defragment", "TargetNotFound").await;
    let etcd = "apiVersion: druid.gardener.cloud/v1alpha1\nkind: Etcd\nmetadata: {name: main}\n";
    kubectl_apply(&namespace.name, etcd).await?;
    let etcd = api(&cluster, here, "druid.gardener.cloud/v1alpha1/Etcd")?.get("main").await?;
    until_owned_by(&tasks, "defragment", &etcd).await;
    assert_eq!(tasks.get("for-none").await?.owner_references(), []);
    let backups = api(&cluster, here, "k8s.mariadb.com/v1alpha1/Backup")?;
    until(&backups, "nightly", "has a label", |backup| backup.labels().contains_key(keys::TARGET_UID)).await;

    // An unusable binding is reported on the definition, and only its kind is no longer bound.
    let patch = json!({"metadata": {"annotations": {keys::BINDING: "target: {name: objct.spec.etcdName}"}}});
    let definition = "etcdopstasks.druid.gardener.cloud";
    kubectl(&["patch", "crd", definition, "--type=merge", "--patch", &patch.to_string()]).await?;
    eventually("an Event says InvalidBinding", LIMIT, async || {
        // Those about a cluster-wide object are in this namespace.
        let about = format!("--field-selector=involvedObject.name={definition}");
        let events = kubectl(&["get", "events", "--namespace=default", &about, "--output=wide"]).await;
        let events = events.map_err(|error| error.to_string())?;
        if events.contains("InvalidBinding") { Ok(()) } else { Err(events) }
    })
    .await;
    snapshot("meanwhile").await?;

    later.remove().await?;
    snapshot("after").await?;
    release.restore().await?;
    Ok(())
}
