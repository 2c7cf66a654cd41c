//! The requests of basic-deployment-controller over each kind of child, for each step in the life of a `BasicDeployment`.
//! docs/replica-contract.md has the figures.

use std::time::Duration;

use anyhow::{Context, Result};
use catena_api::{BasicDeployment, BasicDeploymentRestart};
use e2e::{
    AuditLog, Cluster, DEPLOYMENTS, JobReplicas, Namespace, Release, Request, Tally, WAIT_TIMEOUT,
    another_image, child_example, commands, deployment, eventually,
};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use serde_json::{Value, json};

/// Objects of each kind, so that a figure is an average.
const OBJECTS: usize = 10;

/// Status updates that only change numbers are up to 20 s late.
const QUIET: Duration = Duration::from_secs(21);

/// A step in the life of a `BasicDeployment`.
struct Step {
    name: &'static str,
    /// The maximum number of writes for one object, on average: what changes, an Event, and a status for each ten seconds.
    max_writes: usize,
}

const CREATE: Step = Step { name: "create, 3 replicas", max_writes: 9 };
const SCALE: Step = Step { name: "scale to 5", max_writes: 7 };
const CHANGE: Step = Step { name: "change the image", max_writes: 10 };
/// The child of the former name hands its replicas over to one with a new name.
const EXCHANGE: Step = Step { name: "change the image, by another child", max_writes: 20 };
const RESTART: Step = Step { name: "restart", max_writes: 12 };
const DELETE: Step = Step { name: "delete", max_writes: 2 };

/// The requests of a step in a namespace.
struct Measured<'a> {
    namespace: &'a Namespace,
    log: AuditLog,
}

impl<'a> Measured<'a> {
    fn begin(namespace: &'a Namespace) -> Result<Self> {
        Ok(Self { namespace, log: AuditLog::from_now()? })
    }

    /// Waits until nothing is written any more, and returns the requests for one object, as a cell of a table.
    async fn end(self, step: &Step) -> Result<String> {
        let name = &self.namespace.name;
        self.log.until_quiet(QUIET, 4 * QUIET, |request| request.namespace == *name).await;
        let mut asked = self.log.by(DEPLOYMENTS, name)?;
        asked.retain(|request| request.verb != "watch");
        let tally = Tally::of(&asked);
        println!("{name}, {}: {tally:?}", step.name);
        let (writes, reads): (Vec<_>, Vec<_>) = asked.into_iter().partition(Request::is_write);
        assert!(writes.len() <= OBJECTS * step.max_writes, "{}: {tally:?}", step.name);
        // A second delete finds nothing where the watch is late.
        let is_in_vain = |request: &&Request| request.code >= 300 && request.verb != "delete";
        assert_eq!(writes.iter().filter(is_in_vain).count(), 0, "{}: {tally:?}", step.name);
        let each = |requests: &[Request]| format!("{:.1}", per_object(requests.len()));
        Ok(format!("{} + {}", each(&writes), each(&reads)))
    }
}

#[expect(clippy::cast_precision_loss, reason = "it is a small number")]
fn per_object(count: usize) -> f64 {
    count as f64 / OBJECTS as f64
}

fn names() -> Vec<String> {
    (0..OBJECTS).map(|number| format!("web-{number}")).collect()
}

async fn all_are_ready(namespace: &Namespace, replicas: i32) {
    eventually(&format!("all serve with {replicas} replicas"), 4 * WAIT_TIMEOUT, async || {
        let listed = namespace.api::<BasicDeployment>().list(&ListParams::default()).await;
        let webs = listed.map_err(|error| error.to_string())?.items;
        let serve = |web: &&BasicDeployment| {
            let status = web.status.as_ref();
            status.is_some_and(|status| {
                status.ready
                    && status.observed_generation == web.metadata.generation
                    && status.active == replicas
            })
        };
        let serving = webs.iter().filter(serve).count();
        if serving == OBJECTS { Ok(()) } else { Err(format!("{serving} of {} serve", webs.len())) }
    })
    .await;
}

async fn change_all(namespace: &Namespace, spec: Value) -> Result<()> {
    let patch = json!({"spec": spec});
    let names = names();
    try_join_all(names.iter().map(|name| namespace.merge::<BasicDeployment>(name, patch.clone()))).await?;
    Ok(())
}

async fn restart_all(namespace: &Namespace) -> Result<()> {
    for web in namespace.api::<BasicDeployment>().list(&ListParams::default()).await? {
        let name = web.metadata.name.as_deref().context("a name")?;
        namespace.create(&commands::restart(&web, &format!("restart-{name}"))).await?;
    }
    eventually("all restarts have succeeded", 4 * WAIT_TIMEOUT, async || {
        let listed = namespace.api::<BasicDeploymentRestart>().list(&ListParams::default()).await;
        let all = listed.map_err(|error| error.to_string())?.items;
        let is_done = |restart: &&BasicDeploymentRestart| {
            commands::condition_of(*restart, "Succeeded").is_some_and(|told| told.status == "True")
        };
        let done = all.iter().filter(is_done).count();
        if done == OBJECTS { Ok(()) } else { Err(format!("{done} of {} have succeeded", all.len())) }
    })
    .await;
    Ok(())
}

/// A row of the table. The pods of some children cannot be replaced in place.
async fn costs_with(namespace: &Namespace, replaces_pods: bool) -> Result<String> {
    let mut cells = Vec::new();
    let measured = Measured::begin(namespace)?;
    for name in names() {
        namespace.create(&deployment(&name, 3)).await?;
    }
    all_are_ready(namespace, 3).await;
    cells.push(measured.end(&CREATE).await?);

    let measured = Measured::begin(namespace)?;
    change_all(namespace, json!({"replicas": 5})).await?;
    all_are_ready(namespace, 5).await;
    cells.push(measured.end(&SCALE).await?);

    let measured = Measured::begin(namespace)?;
    change_all(namespace, json!({"parameters": {"image": another_image()}})).await?;
    all_are_ready(namespace, 5).await;
    cells.push(measured.end(if replaces_pods { &CHANGE } else { &EXCHANGE }).await?);

    if replaces_pods {
        let measured = Measured::begin(namespace)?;
        restart_all(namespace).await?;
        cells.push(measured.end(&RESTART).await?);
    } else {
        cells.push("–".into());
    }

    let measured = Measured::begin(namespace)?;
    for name in names() {
        namespace.delete::<BasicDeployment>(&name).await?;
    }
    namespace.until_pods("no pod is left", <[Pod]>::is_empty).await;
    cells.push(measured.end(&DELETE).await?);
    Ok(cells.join(" | "))
}

/// Its children are of this kind, by an example under examples/children, or of the default one.
async fn row(cluster: &Cluster, release: &Release, example: Option<&str>) -> Result<String> {
    let mut values = example.map_or_else(|| Ok(json!({})), child_example)?;
    if example == Some("job-replicas") {
        // The fake nodes would end its pods, as those of other Jobs.
        let template = &mut values["templates"]["default"];
        let text = template.as_str().context("a text")?;
        *template = format!("{text}  podAnnotations: {{catena.dev/play: run-on}}\n").into();
    }
    release.change(&values).await?;
    DEPLOYMENTS.until_ready(cluster).await;
    // The settings are in force as soon as a child of theirs serves.
    let first = cluster.namespace("first").await?;
    first.create(&deployment("first", 1)).await?;
    let first = first.until_ready("first").await;
    let child = first.status.and_then(|status| status.child).context("a child")?;

    let namespace = cluster.namespace("costs").await?;
    let costs = costs_with(&namespace, example != Some("replicaset")).await?;
    Ok(format!("| {} | {costs} |", child.kind))
}

#[tokio::test]
#[ignore = "it takes ten minutes, and keeps all other tests of basic-deployment-controller waiting"]
async fn no_kind_of_child_costs_more_than_a_few_requests() -> Result<()> {
    e2e::needs!(AuditLog, HostProcesses);
    let cluster = Cluster::changing(&[DEPLOYMENTS]).await?;
    let _controller = JobReplicas::start(&cluster).await?;
    let release = Release::upgrade(&cluster, DEPLOYMENTS, &json!({})).await?;
    let mut rows = Vec::new();
    for example in [None, Some("deployment"), Some("statefulset"), Some("replicaset"), Some("job-replicas")] {
        rows.push(row(&cluster, &release, example).await?);
    }
    release.restore().await?;
    DEPLOYMENTS.until_ready(&cluster).await;
    println!("writes + reads for one object:\n{}", rows.join("\n"));
    Ok(())
}
