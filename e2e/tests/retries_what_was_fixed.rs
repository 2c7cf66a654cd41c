//! What refused a write is watched while it does: its change is followed by a retry, long before the backoff is over.

use std::time::Duration;

use anyhow::{Result, ensure};
use catena_api::BasicReplicaSet;
use e2e::{
    AuditLog, CHAIN, Cluster, Controller, DEPLOYMENTS, Namespace, Pace, REPLICA_SETS, Tally, WAIT_TIMEOUT,
    deployment, eventually, eventually_every, forbid_unless, kubectl_with_input, permit, replica_set,
};
use futures::future::try_join_all;
use k8s_openapi::api::{
    admissionregistration::v1::ValidatingWebhookConfiguration,
    core::v1::{LimitRange, ResourceQuota, ServiceAccount},
};
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

/// Number of refusals after which the next retry comes in 40 s.
const REFUSALS: usize = 4;
/// Time limit for that many.
const LONG: Duration = Duration::from_secs(150);
/// Time limit for a retry after a fix, at the pace of the cluster: far below the backoff.
const SOON: Duration = Duration::from_secs(20);

/// Something that refuses what a controller creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refuses {
    Quota,
    Limits,
    Policy,
    Webhook,
}

/// A controller, and the resource and group of the objects that it creates.
#[derive(Clone, Copy)]
struct Creates {
    controller: Controller,
    resource: &'static str,
    group: &'static str,
}

const PODS: Creates = Creates { controller: REPLICA_SETS, resource: "pods", group: "" };
const SETS: Creates = Creates { controller: DEPLOYMENTS, resource: "basicreplicasets", group: "catena.dev" };

impl Creates {
    fn rule(self) -> Value {
        let versions = ["*"];
        json!({
            "apiGroups": [self.group], "apiVersions": versions, "operations": ["CREATE"],
            "resources": [self.resource],
        })
    }

    /// Within the limits and the Pod Security level of the namespace, so that nothing else refuses it.
    fn probe(self) -> Value {
        if self.resource != "pods" {
            return json!(replica_set("probe", 0));
        }
        let security = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
        let memory = json!({"requests": {"memory": "64Mi"}, "limits": {"memory": "64Mi"}});
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"},
            "spec": {
                "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [{
                    "name": "main", "image": "probe", "securityContext": security, "resources": memory,
                }],
            },
        })
    }

    /// Waits until admission refuses it: it hears of what was created a moment later.
    async fn until_refused(self, namespace: &Namespace) {
        let user = self.controller.user();
        let create =
            ["create", "--namespace", &namespace.name, "--as", &user, "--dry-run=server", "--filename", "-"];
        eventually("admission refuses it", WAIT_TIMEOUT, async || {
            match kubectl_with_input(&create, &self.probe().to_string()).await {
                Ok((false, _)) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }

    /// Waits until the controller has been refused so often that it retries late.
    async fn until_patient(self, log: &AuditLog, namespace: &Namespace) {
        eventually("it backs off", LONG, async || {
            let requests = log.by(self.controller, &namespace.name).map_err(|error| error.to_string())?;
            let writes = requests.iter().filter(|request| request.resource == self.resource);
            let refused = writes.filter(|request| request.is_write() && request.code >= 400).count();
            if refused >= REFUSALS { Ok(()) } else { Err(format!("{refused} refusals")) }
        })
        .await;
    }

    /// Waits until it creates something, soon after the obstacle is gone.
    async fn until_accepted(self, log: &AuditLog, namespace: &Namespace, obstacle: Refuses) -> Result<()> {
        let pace = Pace::start(namespace).await?;
        let what = format!("it tries again soon after the {obstacle:?} is gone");
        eventually_every(Duration::from_secs(1), &what, WAIT_TIMEOUT, async || {
            let requests = log.by(self.controller, &namespace.name).map_err(|error| error.to_string())?;
            let mut writes = requests.iter().filter(|request| request.resource == self.resource);
            let is_accepted = writes.any(|request| request.is_write() && request.code < 300);
            if is_accepted { Ok(()) } else { Err(format!("{:?}", Tally::of(&requests))) }
        })
        .await;
        ensure!(pace.elapsed() < SOON, "{what}: after {:?} at the cluster's pace", pace.elapsed());
        Ok(())
    }
}

impl Refuses {
    async fn begin(self, cluster: &Cluster, namespace: &Namespace, creates: Creates) -> Result<()> {
        match self {
            Self::Quota => {
                let counted = match creates.group {
                    "" => creates.resource.to_owned(),
                    group => format!("count/{}.{group}", creates.resource),
                };
                let quota = json!({"metadata": {"name": "none"}, "spec": {"hard": {counted: "0"}}});
                namespace.create::<ResourceQuota>(&serde_json::from_value(quota)?).await?;
            }
            Self::Limits => {
                let limits = json!([{"type": "Container", "min": {"memory": "256Mi"}}]);
                let range = json!({"metadata": {"name": "large"}, "spec": {"limits": limits}});
                namespace.create::<LimitRange>(&serde_json::from_value(range)?).await?;
            }
            Self::Policy => {
                let user = creates.controller.user();
                forbid_unless(cluster, namespace, &user, creates.rule(), "false", "not yet").await?;
            }
            Self::Webhook => {
                let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace.name}});
                let webhook = json!({
                    "name": "silent.e2e-retries.dev", "clientConfig": {"url": "https://127.0.0.1:1/"},
                    "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": [creates.rule()],
                    "namespaceSelector": selector,
                });
                let metadata = namespace.owns(&webhook_name(namespace));
                let configuration = json!({"metadata": metadata, "webhooks": [webhook]});
                let configuration: ValidatingWebhookConfiguration = serde_json::from_value(configuration)?;
                cluster.all().create(&PostParams::default(), &configuration).await?;
            }
        }
        creates.until_refused(namespace).await;
        Ok(())
    }

    async fn end(self, cluster: &Cluster, namespace: &Namespace, creates: Creates) -> Result<()> {
        match self {
            Self::Quota => namespace.delete::<ResourceQuota>("none").await?,
            Self::Limits => {
                // A changed range counts, too.
                let limits = json!([{"type": "Container", "min": {"memory": "16Mi"}}]);
                namespace.merge::<LimitRange>("large", json!({"spec": {"limits": limits}})).await?;
            }
            Self::Policy => permit(cluster, namespace, &creates.controller.user()).await?,
            Self::Webhook => {
                let all = cluster.all::<ValidatingWebhookConfiguration>();
                all.delete(&webhook_name(namespace), &DeleteParams::default()).await?;
            }
        }
        Ok(())
    }
}

fn webhook_name(namespace: &Namespace) -> String {
    format!("e2e-retries-{}", namespace.name)
}

/// Each obstacle in a namespace of its own, all at once.
async fn each_is_retried(creates: Creates, obstacles: &[Refuses]) -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let cluster = &cluster;
    let log = &AuditLog::from_now()?;
    let stories = obstacles.iter().map(async |obstacle| {
        let namespace = cluster.namespace("fixed").await?;
        obstacle.begin(cluster, &namespace, creates).await?;
        namespace.create(&deployment("web", 2)).await?;
        creates.until_patient(log, &namespace).await;
        obstacle.end(cluster, &namespace, creates).await?;
        creates.until_accepted(log, &namespace, *obstacle).await?;
        namespace.until_ready("web").await;
        anyhow::Ok(())
    });
    try_join_all(stories).await?;
    Ok(())
}

#[tokio::test]
async fn pods_are_retried_as_soon_as_what_refused_them_is_gone() -> Result<()> {
    e2e::needs!(AuditLog);
    each_is_retried(PODS, &[Refuses::Quota, Refuses::Limits, Refuses::Policy, Refuses::Webhook]).await
}

#[tokio::test]
async fn a_child_is_retried_as_soon_as_what_refused_it_is_gone() -> Result<()> {
    e2e::needs!(AuditLog);
    each_is_retried(SETS, &[Refuses::Quota, Refuses::Policy, Refuses::Webhook]).await
}

#[tokio::test]
async fn pods_are_retried_as_soon_as_their_service_account_exists() -> Result<()> {
    e2e::needs!(AuditLog);
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("account").await?;
    let log = AuditLog::from_now()?;
    let mut set = replica_set("web", 1);
    set.spec.template = "robot".into();
    namespace.create(&set).await?;
    PODS.until_patient(&log, &namespace).await;
    let account = json!({"metadata": {"name": "robot"}});
    namespace.create::<ServiceAccount>(&serde_json::from_value(account)?).await?;
    namespace
        .until_soon(SOON, "web", "has its pod soon after the account exists", |set: &BasicReplicaSet| {
            set.status.as_ref().is_some_and(|status| status.active == 1)
        })
        .await?;
    namespace.delete::<BasicReplicaSet>("web").await?;
    namespace.until_gone::<BasicReplicaSet>("web").await;
    Ok(())
}
