//! The explanation of an object: its chain and surroundings, read and diagnosed.

use std::time::Duration;

use anyhow::{Context, Result};
use catena_cluster::{Cluster, NotFound, Target};
use jiff::Timestamp;
use tokio::time::timeout;

use super::{Answer, Facts, Surroundings, diagnose, gather, left_behind, read};
use crate::chain::{LostOwner, Scope, fetch, grow};

/// A command that has another answer to give waits no longer for an explanation.
const ASIDE_TIMEOUT: Duration = Duration::from_secs(10);

/// The explanation for a command that has another answer to give; `None` if it cannot be found out, or not soon.
pub async fn explanation_aside(cluster: &Cluster, target: &Target) -> Option<Answer> {
    timeout(ASIDE_TIMEOUT, Box::pin(explanation(cluster, target))).await.ok()?.ok()
}

/// Finds out why an object is not as it should be.
pub async fn explanation(cluster: &Cluster, target: &Target) -> Result<Answer> {
    let is_namespaced = cluster.kinds.find(&target.kind)?.is_namespaced;
    let namespace = is_namespaced.then_some(cluster.namespace.as_str());
    let scope = Scope { whole: true, all_kinds: false };
    let (fetched, surroundings) =
        futures::join!(Box::pin(fetch(cluster, target, scope)), Box::pin(gather::gather(cluster, namespace)));
    let fetched = match fetched {
        Err(error) if error.is::<NotFound>() => {
            return Box::pin(left_behind::or_left_behind(cluster, target, error)).await;
        }
        fetched => fetched?,
    };
    let gone = "the object was deleted just now";
    let top = grow(&fetched.top, &fetched.objects).context(gone)?;
    let asked = top.find(&fetched.asked).context(gone)?;
    let mut gaps = fetched.gaps;
    gaps.extend(surroundings.gaps.iter().cloned());
    let (related, unread) = read::related(cluster, &top, surroundings.namespace.as_ref()).await;
    gaps.extend(unread);
    let lost_owner = fetched.lost_owners.iter().find(|lost| lost.of == fetched.asked);
    let surroundings = Surroundings {
        gaps,
        lost_owner: lost_owner.map(LostOwner::remark),
        missing_target: fetched.missing_target,
        is_declared_command: fetched.is_declared_command,
        related,
        hides_dependents: fetched.hides_dependents,
        is_incomplete: fetched.is_incomplete,
        ..surroundings
    };
    Ok(diagnose::diagnose(&Facts { asked, top: &top, surroundings: &surroundings, now: Timestamp::now() }))
}

#[cfg(test)]
mod tests {
    use catena_cluster::{BASIC_DEPLOYMENTS, testing::serving};
    use serde_json::{Value, json};

    use super::*;

    /// The kinds of a server cost two requests more.
    const MAX_REQUESTS: usize = 26 - 2;

    fn not_ready(api_version: &str, kind: &str, owner: &Value) -> Value {
        let conditions =
            json!([{"type": "Ready", "status": "False", "reason": "Progressing", "message": "0 of 1"}]);
        let child = json!({"apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet", "name": "web"});
        json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {"name": "web", "namespace": "shop", "uid": kind, "ownerReferences": owner},
            "spec": {"replicas": 1},
            "status": {"child": child, "conditions": conditions},
        })
    }

    fn owner(kind: &str) -> Value {
        json!([{"apiVersion": "catena.dev/v1alpha1", "kind": kind, "name": "web", "uid": kind}])
    }

    /// Each controller has a Lease, a Deployment and a ConfigMap, and the pod is told by its owners as the blocker.
    fn server(uri: &str) -> Option<Value> {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let plural = path.rsplit('/').next()?;
        let items = match plural {
            "web" if path.contains("/basicdeployments/") => {
                return Some(not_ready("catena.dev/v1alpha1", "BasicDeployment", &Value::Null));
            }
            "web" if path.contains("/basicreplicasets/") => {
                return Some(not_ready("catena.dev/v1alpha1", "BasicReplicaSet", &owner("BasicDeployment")));
            }
            "web" | "shop" | "version" => return None,
            "basicreplicasets" => vec![not_ready("", "BasicReplicaSet", &owner("BasicDeployment"))],
            "pods" if query.contains("replicaset-uid") => {
                let waiting = json!({"reason": "ImagePullBackOff", "message": "not found"});
                let container = json!({"name": "main", "state": {"waiting": waiting}});
                vec![json!({
                    "metadata": {"name": "web-1", "namespace": "shop", "uid": "p", "ownerReferences": owner("BasicReplicaSet")},
                    "spec": {"nodeName": "n1"}, "status": {"phase": "Pending", "containerStatuses": [container]},
                })]
            }
            "leases" | "configmaps" => {
                let labels = json!({"app.kubernetes.io/name": "basic-deployment-controller"});
                let metadata = json!({
                    "name": "c", "namespace": "catena-system", "labels": labels,
                    "annotations": {"catena.dev/settings-version": "v1"},
                });
                let renewed = Timestamp::now().to_string();
                vec![json!({"metadata": metadata, "spec": {"holderIdentity": "c-1", "renewTime": renewed}})]
            }
            _ => vec![],
        };
        Some(json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}))
    }

    #[tokio::test]
    async fn an_explanation_costs_few_requests_and_none_twice() {
        let (cluster, requests) = serving(server);
        let target = Target { kind: BASIC_DEPLOYMENTS.into(), name: "web".into() };
        let answer = explanation(&cluster, &target).await.unwrap();
        assert_eq!(answer.root_cause.unwrap().reason, "ImagePullBackOff");
        let mut requests = requests.lock().unwrap().clone();
        let number = requests.len();
        assert!(number <= MAX_REQUESTS, "{number}: {requests:#?}");
        requests.sort();
        requests.dedup();
        assert_eq!(requests.len(), number, "{requests:#?}");
    }
}
