//! The pod that keeps a child from serving, read live.

use std::{collections::HashMap, time::Duration};

use basic_deployment_controller::{blocking_pod::works_for, child::Child, child_kind::api_resource};
use catena_api::{
    BlockedBy,
    contract::{PodController, Pods},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Client;
use operator_kit::write::Ownership;
use operator_watch::{ApiError, Cause, Live, ObjectId, Verb, Watch};
use pod_state::{PodProblem, PrunedPod};
use tokio::time::timeout;

/// Pods per page: a page of whole pods is in memory at once.
const PAGE_SIZE: u32 = 100;
/// Number of pages that are read at most.
const PAGES: usize = 5;
/// Number of controllers of pods that are looked up at most: anybody can give a pod a controller.
const MAX_CONTROLLERS: usize = 10;
/// Time limit of a look.
const LOOK_TIMEOUT: Duration = Duration::from_secs(10);

/// A look for one pod of a child.
struct Look<'a> {
    client: &'a Client,
    child: &'a Child,
    controller: Option<&'a PodController>,
    /// Whether each controller of pods works for the child, by its uid.
    controllers: HashMap<String, bool>,
}

/// The first pod of a child that keeps it from serving: one with a known problem, otherwise one that has been starting
/// for too long.
pub async fn blocker(client: &Client, child: &Child, pods: &Pods) -> Result<Option<BlockedBy>, ApiError> {
    // With an empty selector, it would look into the pods of others.
    let Some(selector) = child.outputs.pods.as_deref().filter(|selector| !selector.trim().is_empty()) else {
        return Ok(None);
    };
    let look = Look { client, child, controller: pods.controller.as_ref(), controllers: HashMap::new() };
    let why = format!("there was no answer within {} s", LOOK_TIMEOUT.as_secs());
    let unanswered = |_| ApiError::new(Verb::Read, subject(child), Cause::Silent, why);
    timeout(LOOK_TIMEOUT, look.first(selector)).await.map_err(unanswered)?
}

fn subject(child: &Child) -> (String, &str) {
    (format!("the pods of {}", child.kind.kind), &child.name)
}

impl Look<'_> {
    async fn first(mut self, selector: &str) -> Result<Option<BlockedBy>, ApiError> {
        let pods = Watch::<PrunedPod>::all(self.client, &());
        let pods = pods.in_namespace(&self.child.namespace).labelled(selector);
        let (now, mut starting, mut token) = (Timestamp::now(), None, None);
        for _ in 0..PAGES {
            let page = pods.read(PAGE_SIZE, token).await;
            let (page, next) = page.map_err(|error| ApiError::of(Verb::Read, &error, subject(self.child)))?;
            for pod in &page {
                let state = pod.state();
                let Some(problem) = state.reportable_problem(now) else { continue };
                if (problem.is_conclusive || starting.is_none()) && self.is_own(&pod.metadata).await? {
                    let blocker = blocked_by(&pod.metadata, problem);
                    if problem.is_conclusive {
                        return Ok(Some(blocker));
                    }
                    starting = Some(blocker);
                }
            }
            token = next;
            if token.is_none() {
                break;
            }
        }
        Ok(starting)
    }

    /// Whether a pod is one of the child's, and has its current template as far as its kind tells.
    async fn is_own(&mut self, pod: &ObjectMeta) -> Result<bool, ApiError> {
        let Some(owner) = Ownership::controller_of(pod) else { return Ok(false) };
        let Some(kind) = self.controller else { return Ok(owner.uid == self.child.uid) };
        if !kind.is_kind_of(owner) {
            return Ok(false);
        }
        if let Some(known) = self.controllers.get(&owner.uid) {
            return Ok(*known);
        }
        if self.controllers.len() == MAX_CONTROLLERS || !ObjectId::is_name(&owner.name) {
            return Ok(false);
        }
        let resource = api_resource(&kind.api_version, &kind.kind, Some(&kind.resource));
        let found = Live::metadata(self.client, &resource, &self.child.namespace, &owner.name).await?;
        let is_own = found.is_some_and(|found| {
            found.uid.as_ref() == Some(&owner.uid) && works_for(&found, self.child, kind)
        });
        self.controllers.insert(owner.uid.clone(), is_own);
        Ok(is_own)
    }
}

fn blocked_by(pod: &ObjectMeta, problem: &PodProblem) -> BlockedBy {
    let (name, since) = (pod.name.as_deref().unwrap_or_default(), Some(Time(problem.since)));
    BlockedBy::new(["v1", "Pod", name], &problem.reason, &problem.message, since)
}
