//! What a test leaves behind, which would disturb the tests after it: looked for at its end, so that the right one fails.

use std::{collections::BTreeSet, sync::OnceLock, thread};

use anyhow::{Result, ensure};
use catena_api::{BasicDeployment, BasicReplicaSet, keys::SETTINGS_VERSION};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::{
        admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
        apps::v1::Deployment,
        coordination::v1::Lease,
        core::v1::{ConfigMap, Namespace, Pod},
        networking::v1::Ingress,
        rbac::v1::{ClusterRole, ClusterRoleBinding},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, ObjectMeta, Patch, PatchParams},
};
use parking_lot::Mutex;
use serde_json::json;

use crate::{
    COLLECTION_TIMEOUT, ClusterWide, Controller, Namespaced, Process, WAIT_TIMEOUT, eventually,
    system::NAMESPACE,
};

/// A test in the course of the suite.
struct Run {
    test: String,
    began: Timestamp,
    ended: Option<Timestamp>,
}

/// All tests are in one process.
static RUNS: Mutex<Vec<Run>> = Mutex::new(Vec::new());
/// The cluster-wide objects before the first test.
static BEFORE: OnceLock<BTreeSet<String>> = OnceLock::new();

/// The precision of a creation time.
const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// Notes that a test begins, and, once, what exists before.
pub(crate) async fn begin(client: &Client) -> kube::Result<usize> {
    if BEFORE.get().is_none() {
        let found = cluster_wide(client).await?;
        BEFORE.get_or_init(|| found.into_iter().map(|(name, _)| name).collect());
    }
    let test = thread::current().name().unwrap_or("a test").to_owned();
    let mut runs = RUNS.lock();
    runs.push(Run { test, began: Timestamp::now(), ended: None });
    Ok(runs.len() - 1)
}

/// Waits until a controller that a test changed has only the pods that its Deployment wants, of which one holds the Lease, and that all of them
/// have taken the settings of the release: otherwise the next test would begin in the middle of a hand-over, or under the
/// settings of this one.
pub(crate) async fn until_settled(client: &Client, controller: Controller) {
    let of_it = ListParams::default().labels(&format!("app.kubernetes.io/name={}", controller.name()));
    let what =
        format!("{} has only pods that stay and have its settings, and one of them leads", controller.name());
    eventually(&what, 2 * WAIT_TIMEOUT, async || {
        let said = |error: kube::Error| error.to_string();
        let pods = Api::<Pod>::namespaced(client.clone(), NAMESPACE).list(&of_it).await.map_err(said)?;
        let deployments = Api::<Deployment>::namespaced(client.clone(), NAMESPACE);
        let deployment = deployments.get_opt(controller.name()).await.map_err(said)?;
        if let Some(deployment) = deployment.filter(|deployment| !is_rolled_out(deployment)) {
            return Err(format!("its Deployment is not rolled out: {:?}", deployment.status));
        }
        let leases = Api::<Lease>::namespaced(client.clone(), NAMESPACE);
        let lease = leases.get_opt(controller.name()).await.map_err(said)?;
        let holder = lease.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default();
        let (going, staying): (Vec<_>, Vec<_>) =
            pods.iter().partition(|pod| pod.metadata.deletion_timestamp.is_some());
        // A release that was taken away has neither.
        let leads = pods.items.is_empty() || staying.iter().any(|pod| pod.name_any() == holder);
        if !going.is_empty() || !leads {
            let names = |pods: &[&Pod]| pods.iter().map(|pod| pod.name_any()).collect::<Vec<_>>();
            return Err(format!(
                "going: {:?}, staying: {:?}, leading: {holder:?}",
                names(&going),
                names(&staying)
            ));
        }
        take_their_settings(client, controller, &staying).await.map_err(|error| format!("{error:#}"))
    })
    .await;
}

fn is_rolled_out(deployment: &Deployment) -> bool {
    let wanted = deployment.spec.replicas.unwrap_or(1);
    deployment.status.as_ref().is_some_and(|status| {
        let pods = [status.replicas, status.updated_replicas, status.available_replicas];
        status.observed_generation == deployment.metadata.generation
            && pods.iter().all(|pods| pods.unwrap_or_default() == wanted)
    })
}

/// Fails unless all these pods have taken the newest settings of their release.
async fn take_their_settings(client: &Client, controller: Controller, pods: &[&Pod]) -> Result<()> {
    let newest = Api::<ConfigMap>::namespaced(client.clone(), NAMESPACE).get_opt(controller.name()).await?;
    let Some(version) = newest.as_ref().and_then(|newest| newest.annotations().get(SETTINGS_VERSION)) else {
        return Ok(());
    };
    for pod in pods {
        let page = format!("settings?version={version}");
        let (code, said) = Process::of(controller, pod)?.page(&page).await?;
        ensure!(code == 200, "{}: {code} {said}", pod.name_any());
    }
    Ok(())
}

/// Ends a test, and fails if it left anything: a namespace that its finalizers keep, or a cluster-wide object. Of what
/// may be another's that still runs, the last one of these judges.
pub(crate) async fn end(client: &Client, run: usize, namespaces: &[String]) {
    let (began, ended) = {
        let mut runs = RUNS.lock();
        let ended = Timestamp::now();
        runs[run].ended = Some(ended);
        (runs[run].began, ended)
    };
    eventually("the namespaces of the test are gone", COLLECTION_TIMEOUT, async || {
        let mut left = Vec::new();
        for name in namespaces {
            let found = Api::<Namespace>::all(client.clone()).get_opt(name).await;
            left.extend(found.map_err(|error| vec![error.to_string()])?.map(|found| what_keeps(&found)));
        }
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await;
    eventually("no cluster-wide object of the test is left", WAIT_TIMEOUT, async || {
        let found = cluster_wide(client).await.map_err(|error| vec![error.to_string()])?;
        let during = |made: Timestamp| made + SECOND >= began && made <= ended + SECOND;
        let left = found.into_iter().filter(|(name, made)| is_new(name) && during(*made));
        let left: Vec<_> =
            left.filter_map(|(name, made)| Some(format!("{name} by {}", makers(made)?))).collect();
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await;
}

/// Takes all finalizers from what a failed test left in its namespaces: otherwise they would never end, and each test that
/// has to wait for that would fail too.
pub(crate) async fn release(client: &Client, namespaces: &[String]) -> Result<()> {
    for namespace in namespaces {
        release_in::<ConfigMap>(client, namespace).await?;
        release_in::<BasicDeployment>(client, namespace).await?;
        release_in::<BasicReplicaSet>(client, namespace).await?;
        release_in::<Ingress>(client, namespace).await?;
        release_in::<Pod>(client, namespace).await?;
    }
    Ok(())
}

async fn release_in<K: Namespaced>(client: &Client, namespace: &str) -> Result<()> {
    let api = Api::<K>::namespaced(client.clone(), namespace);
    let listed = api.list_metadata(&ListParams::default()).await?;
    for held in listed.items.iter().filter(|object| !object.finalizers().is_empty()) {
        let patch = Patch::Merge(json!({"metadata": {"uid": held.uid(), "finalizers": null}}));
        api.patch_metadata(&held.name_any(), &PatchParams::default(), &patch).await?;
    }
    Ok(())
}

fn is_new(name: &str) -> bool {
    BEFORE.get().is_some_and(|before| !before.contains(name))
}

/// The tests that may have made an object, unless one of them still runs.
fn makers(made: Timestamp) -> Option<String> {
    let runs = RUNS.lock();
    let ran = |run: &&Run| run.began <= made + SECOND && run.ended.is_none_or(|ended| ended + SECOND >= made);
    let candidates: Vec<&Run> = runs.iter().filter(ran).collect();
    let names: Vec<&str> = candidates.iter().map(|run| run.test.as_str()).collect();
    candidates.iter().all(|run| run.ended.is_some()).then(|| names.join(" or "))
}

/// All cluster-wide objects of the kinds that tests make, with their creation times. Those of a namespace go with it, and
/// those of the charts are changed by upgrades.
async fn cluster_wide(client: &Client) -> kube::Result<Vec<(String, Timestamp)>> {
    let mut found = Vec::new();
    found.extend(all::<CustomResourceDefinition>(client).await?);
    found.extend(all::<ClusterRole>(client).await?);
    found.extend(all::<ClusterRoleBinding>(client).await?);
    found.extend(all::<ValidatingAdmissionPolicy>(client).await?);
    found.extend(all::<ValidatingAdmissionPolicyBinding>(client).await?);
    Ok(found)
}

async fn all<K: ClusterWide>(client: &Client) -> kube::Result<Vec<(String, Timestamp)>> {
    let listed = Api::<K>::all(client.clone()).list_metadata(&ListParams::default()).await?;
    let is_a_tests = |metadata: &ObjectMeta| {
        let of_a_chart =
            metadata.labels.as_ref().and_then(|labels| labels.get("app.kubernetes.io/part-of")).is_some();
        !of_a_chart && metadata.owner_references.is_none() && metadata.deletion_timestamp.is_none()
    };
    let named = listed.items.into_iter().filter(|object| is_a_tests(&object.metadata)).map(|object| {
        let made = object.metadata.creation_timestamp.map_or(Timestamp::MIN, |time| time.0);
        (format!("{}/{}", K::kind(&()), object.metadata.name.unwrap_or_default()), made)
    });
    Ok(named.collect())
}

/// A namespace, and the reason why it still exists in the words of the API server.
pub(crate) fn what_keeps(namespace: &Namespace) -> String {
    let status = namespace.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref()).unwrap_or_default();
    let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let told = conditions.iter().filter(|condition| condition.status == "True");
    let told: Vec<_> = told.filter_map(|condition| condition.message.as_deref()).collect();
    format!("{} ({phase}): {}", namespace.name_any(), told.join("; "))
}
