//! Specs that follow from the schemas, one after another: the status of a workload reflects the last one, the number of
//! writes is bounded, no other object is affected, and a good spec restores the original state.
//!
//! `CATENA_SEED` repeats a run; `CATENA_OPERATIONS=300` makes a long one.

use anyhow::{Context, Result, ensure};
use axum::http::{Request as HttpRequest, header::CONTENT_TYPE};
use catena_api::{BasicDeployment, BasicReplicaSet, keys};
use e2e::{
    AuditLog, COMMANDED, Cluster, Namespace, Tally, WAIT_TIMEOUT, another_image, condition, deployment,
    eventually, generated, image, pods_of, replica_set,
    schema::{Answer, Generated, of_spec, specs},
};
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, Resource, ResourceExt};
use proptest::{collection::vec, prelude::*, test_runner::TestCaseError};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::{runtime::Handle, task::block_in_place, time::Duration};

/// Number of operations in a run by default.
const OPERATIONS: usize = 8;
/// Runs that look for a shorter sequence with the same failure; each takes as long as the first one.
const SHRINKS: u32 = 4;
/// Pods are the expensive part of an operation.
const AT_MOST: [(&str, i64); 1] = [("replicas", 4)];
/// Maximum number of writes of an operation: two workloads of four pods are replaced one by one.
const MOST_WRITES: usize = 90;
/// Shorter than the first retry of a failure.
const QUIET: Duration = Duration::from_millis(1500);

#[derive(Clone, Debug)]
enum Operation {
    Deployment(Generated),
    Set(Generated),
    /// A command for the deployment: its kind, and its spec.
    Command(&'static str, Generated),
}

fn operations(count: usize) -> impl Strategy<Value = Vec<Operation>> {
    let deployments = of_spec(include_str!("../../crds/basicdeployments.catena.dev.yaml"));
    let sets = of_spec(include_str!("../../crds/basicreplicasets.catena.dev.yaml"));
    let restarts = of_spec(include_str!("../../crds/basicdeploymentrestarts.catena.dev.yaml"));
    let rollbacks = of_spec(include_str!("../../crds/basicdeploymentrollbacks.catena.dev.yaml"));
    let command = |kind: &'static str, schema: &Value| {
        specs(schema, &[]).prop_map(move |generated| Operation::Command(kind, generated))
    };
    let operation = prop_oneof![
        4 => specs(&deployments, &AT_MOST).prop_map(Operation::Deployment),
        3 => specs(&sets, &AT_MOST).prop_map(Operation::Set),
        1 => command("basicdeploymentrestarts", &restarts),
        1 => command("basicdeploymentrollbacks", &rollbacks),
    ];
    vec(operation, count)
}

/// Writes an object with strict field validation, and returns the code of the answer.
async fn write(client: &Client, verb: &str, path: &str, body: &Value) -> Result<u16> {
    let request = HttpRequest::builder().method(verb).uri(format!("{path}?fieldValidation=Strict")).header(
        CONTENT_TYPE,
        if verb == "PATCH" { "application/merge-patch+json" } else { "application/json" },
    );
    match client.request::<Value>(request.body(body.to_string().into_bytes())?).await {
        Ok(_) => Ok(200),
        Err(kube::Error::Api(status)) => Ok(status.code),
        Err(error) => Err(error.into()),
    }
}

/// The merge patch from one value to another: fields that the new one lacks are removed.
fn difference(old: &Value, new: &Value) -> Value {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return new.clone() };
    let mut patch: Map<_, _> = old.keys().map(|key| (key.clone(), Value::Null)).collect();
    for (key, value) in new {
        patch.insert(key.clone(), old.get(key).map_or_else(|| value.clone(), |old| difference(old, value)));
    }
    patch.into()
}

/// The workloads of one run, and their original specs.
struct Story<'c> {
    cluster: &'c Cluster,
    namespace: Namespace,
}

impl<'c> Story<'c> {
    async fn begin(cluster: &'c Cluster) -> Result<Self> {
        let namespace = cluster.namespace("any-spec").await?;
        namespace.create(&deployment("web", 2)).await?;
        namespace.create(&replica_set("set", 2)).await?;
        let story = Self { cluster, namespace };
        story.until_good().await;
        Ok(story)
    }

    async fn until_good(&self) {
        self.namespace.until_ready("web").await;
        self.namespace.until_set_ready("set").await;
        self.namespace.until_ready_pods(4).await;
    }

    fn path(&self, plural: &str) -> String {
        format!("/apis/catena.dev/v1alpha1/namespaces/{}/{plural}", self.namespace.name)
    }

    async fn set_spec(&self, plural: &str, name: &str, spec: &Value) -> Result<u16> {
        let path = format!("{}/{name}", self.path(plural));
        let now: Value = self.cluster.client.request(HttpRequest::get(&path).body(Vec::new())?).await?;
        let change = json!({"spec": difference(&now["spec"], spec)});
        write(&self.cluster.client, "PATCH", &path, &change).await
    }

    /// Performs one operation, and checks its outcome.
    async fn operate(&self, number: usize, operation: &Operation) -> Result<()> {
        let log = AuditLog::from_now()?;
        let (code, answer) = match operation {
            Operation::Deployment(Generated { spec, answer }) => {
                (self.set_spec("basicdeployments", "web", spec).await?, *answer)
            }
            Operation::Set(Generated { spec, answer }) => {
                (self.set_spec("basicreplicasets", "set", spec).await?, *answer)
            }
            Operation::Command(plural, Generated { spec, answer }) => {
                let mut spec = spec.clone();
                // A spec that the schema of its target refuses changes nothing.
                if spec["targetRef"]["name"].is_string() {
                    spec["targetRef"] = json!({"name": "web"});
                }
                let kind = if plural.ends_with("rollbacks") { "Rollback" } else { "Restart" };
                let command = json!({
                    "apiVersion": "catena.dev/v1alpha1", "kind": format!("BasicDeployment{kind}"),
                    "metadata": {"name": format!("command-{number}")}, "spec": spec,
                });
                (write(&self.cluster.client, "POST", &self.path(plural), &command).await?, *answer)
            }
        };
        let is_right = match answer {
            Answer::Takes => code == 200,
            Answer::Refuses => matches!(code, 400 | 422),
            Answer::Either => matches!(code, 200 | 400 | 422),
        };
        ensure!(is_right, "the API server answers with {code}");
        self.has_settled(&log).await
    }

    /// The writes end, and the status is that of the last spec.
    async fn has_settled(&self, log: &AuditLog) -> Result<()> {
        let name = &self.namespace.name;
        let written = log.until_quiet(QUIET, 2 * WAIT_TIMEOUT, |request| &request.namespace == name).await;
        ensure!(written.len() <= MOST_WRITES, "{} writes: {:?}", written.len(), Tally::of(&written));
        eventually("the status is that of the last spec", WAIT_TIMEOUT, async || {
            self.check().await.map_err(|error| format!("{error:#}"))
        })
        .await;
        Ok(())
    }

    async fn check(&self) -> Result<()> {
        let web = self.namespace.api::<BasicDeployment>().get("web").await?;
        let set = self.namespace.api::<BasicReplicaSet>().get("set").await?;
        let status = web.status.as_ref().context("web has no status")?;
        ensure!(status.observed_generation == web.metadata.generation, "web: an older spec is reported on");
        let ready = condition(&status.conditions, "Ready").context("web says nothing of Ready")?;
        ensure!((ready.status == "True") == status.ready, "web: ready is {}, and {ready:?}", status.ready);
        ensure!(!ready.reason.is_empty(), "web gives no reason");
        let child = self.namespace.api::<BasicReplicaSet>().get_opt("web").await?.context("no child")?;
        if status.ready {
            ensure!(
                child.spec.replicas == web.spec.replicas,
                "the child has {} replicas",
                child.spec.replicas
            );
            self.serves(&child).await?;
        }
        let status = set.status.as_ref().context("set has no status")?;
        ensure!(status.observed_generation == set.metadata.generation, "set: an older spec is reported on");
        let ready = condition(&status.conditions, "Ready").context("set says nothing of Ready")?;
        if ready.status == "True" {
            self.serves(&set).await?;
        } else {
            ensure!(!ready.reason.is_empty() && !ready.message.is_empty(), "set gives no reason");
        }
        Ok(())
    }

    /// As many pods serve as the set asks for.
    async fn serves(&self, set: &BasicReplicaSet) -> Result<()> {
        let pods = pods_of(self.namespace.pods().await?, &set.uid().unwrap_or_default());
        let (count, wanted) = (pods.len(), usize::try_from(set.spec.replicas)?);
        ensure!(count == wanted && pods.iter().all(e2e::is_ready), "{count} pods instead of {wanted}");
        Ok(())
    }

    /// The part of the state that has to be restored, without the fields that differ between objects or moments.
    async fn world(&self) -> Result<Value> {
        let web = self.namespace.api::<BasicDeployment>().get("web").await?;
        let (child, set) = (
            self.namespace.api::<BasicReplicaSet>().get("web").await?,
            self.namespace.api::<BasicReplicaSet>().get("set").await?,
        );
        let status = web.status.context("web has no status")?;
        let hash = status.child.map(|child| child.hash);
        let mut child = serde_json::to_value((&child.spec, &child.metadata.labels))?;
        // A restart leaves its token, and so another revision.
        child[0]["restartedAt"].take();
        let mut pods = Vec::new();
        for pod in e2e::alive(self.namespace.pods().await?) {
            let container = pod.spec.as_ref().and_then(|spec| spec.containers.first());
            let owner = pod.owner_references().first().map(|owner| owner.name.clone());
            let mut labels = pod.labels().clone();
            labels.remove(keys::REVISION);
            pods.push(json!([owner, labels, container.map(|it| (&it.image, &it.env, &it.ports))]));
        }
        pods.sort_by_key(Value::to_string);
        let said = (status.ready, status.active, status.replicas, status.progress, status.blocked_by);
        Ok(json!({"web": [web.spec, hash, said], "child": child, "set": set.spec, "pods": pods}))
    }

    /// Restores the original specs of both workloads, with other ones in between.
    async fn return_to_the_beginning(&self) -> Result<()> {
        // Waiting commands would be carried out later.
        for plural in ["basicdeploymentrestarts", "basicdeploymentrollbacks"] {
            ensure!(write(&self.cluster.client, "DELETE", &self.path(plural), &json!({})).await? == 200);
        }
        for image in [another_image(), image()] {
            let log = AuditLog::from_now()?;
            let spec = json!({"replicas": 2, "parameters": {"image": image}});
            for (plural, name) in [("basicdeployments", "web"), ("basicreplicasets", "set")] {
                let code = self.set_spec(plural, name, &spec).await?;
                ensure!(code == 200, "{name}: the API server answers with {code}");
            }
            self.has_settled(&log).await?;
        }
        self.until_good().await;
        Ok(())
    }
}

/// The objects in a namespace after the last change.
async fn exactly<K>(namespace: &Namespace) -> Result<Vec<(Option<String>, Option<String>)>>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    let list = namespace.api::<K>().list(&kube::api::ListParams::default()).await?;
    Ok(list.iter().map(|object| (object.uid(), object.resource_version())).collect())
}

async fn run(cluster: &Cluster, operations: &[Operation]) -> Result<()> {
    let story = Story::begin(cluster).await?;
    let before = story.world().await?;
    for (number, operation) in operations.iter().enumerate() {
        story.operate(number, operation).await.with_context(|| format!("{number}: {operation:?}"))?;
    }
    story.return_to_the_beginning().await?;
    eventually("all is as it was", WAIT_TIMEOUT, async || match story.world().await {
        Ok(after) if after == before => Ok(()),
        after => Err(format!("{before:#} became {after:#?}")),
    })
    .await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn after_any_specs_the_status_is_of_the_last_one_nobody_else_noticed_and_the_way_back_is_open()
-> Result<()> {
    e2e::needs!(AuditLog, FakeNodes);
    let count = std::env::var("CATENA_OPERATIONS").map_or(Ok(OPERATIONS), |count| count.parse())?;
    let cluster = Cluster::with(&COMMANDED).await?;
    let beside = cluster.namespace("beside").await?;
    beside.create(&deployment("web", 2)).await?;
    beside.until_ready("web").await;
    let mut processes = Vec::new();
    for controller in COMMANDED {
        processes.push((controller, controller.process(&cluster).await?.pid));
    }
    let log = AuditLog::from_now()?;
    log.until_quiet(QUIET, WAIT_TIMEOUT, |request| request.namespace == beside.name).await;
    let noticed = async || -> Result<_> {
        Ok((
            exactly::<BasicDeployment>(&beside).await?,
            exactly::<BasicReplicaSet>(&beside).await?,
            exactly::<Pod>(&beside).await?,
        ))
    };
    let before = noticed().await?;

    let outcome = generated::runner(SHRINKS)?.run(&operations(count), |operations| {
        let run = block_in_place(|| Handle::current().block_on(run(&cluster, &operations)));
        run.map_err(|error| TestCaseError::fail(format!("{error:#}")))
    });
    outcome.map_err(|error| anyhow::anyhow!("{error}"))?;

    ensure!(before == noticed().await?, "others noticed: {before:?} became {:?}", noticed().await?);
    for (controller, pid) in processes {
        ensure!(controller.process(&cluster).await?.pid == pid, "{} was started again", controller.name());
    }
    Ok(())
}
