//! Reads the surroundings of a chain.

use std::collections::BTreeMap;

use catena_cluster::{
    CONTAINER_SAYS, Cluster, Gap, Health, Homes, Identity, Pages, State, last_words, last_write,
    protection::{COMPONENT, NAME, OURS, kinds_of},
    read_failure, shortened,
};
use futures::future::join_all;
use http::{Request, header::DATE};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822};
use k8s_openapi::api::{
    apps::v1::{Deployment, DeploymentCondition},
    coordination::v1::Lease as CoreLease,
    core::v1::{ConfigMap, Event, Pod},
};
use kube::{
    Api, Resource, ResourceExt,
    api::{ListParams, LogParams},
    client::Body,
    core::{DynamicObject, Expression, ObjectMeta, Selector, SelectorExt},
};
use serde_json::Value;

use super::{
    Cause, Controllers, Installation, Lease, PodTrouble, Surroundings, Warning, read, settings, unreported,
    warnings,
};
use crate::Node;

/// The namespace of Events about cluster-wide objects.
const WIDE: &str = "default";
/// A namespace with more pages of Events has other problems.
const MAX_EVENT_PAGES: usize = 10;
/// What the date of an answer is off by: it has whole seconds, and the answer takes some time.
const RESOLUTION_OF_DATES: SignedDuration = SignedDuration::from_secs(2);
/// The end of a log in which the last error is looked for.
const LOG_LINES: i64 = 100;

/// Reads the surroundings of the chain of an object.
pub async fn gather(cluster: &Cluster, namespace: Option<&str>) -> Surroundings {
    let (ours, mut gaps) = (|| ListParams::default().labels(OURS), Vec::new());
    let (now, homes, leases, deployments, maps, deleted, warnings) = futures::join!(
        server_time(cluster),
        Homes::read(cluster),
        cluster.all::<CoreLease>(None, ours()),
        cluster.all::<Deployment>(None, ours()),
        cluster.all::<ConfigMap>(None, ours()),
        terminating(cluster, namespace),
        warnings(cluster, namespace, &mut gaps),
    );
    let mut maps = maps.unwrap_or_default();
    let unseen = leases.as_ref().err().or(deployments.as_ref().err()).map(read_failure);
    let (mut leases, mut deployments) = (leases.unwrap_or_default(), deployments.unwrap_or_default());
    let now = now.unwrap_or_else(Timestamp::now);
    leases.retain(|lease| homes.may_have(&lease.metadata));
    deployments.retain(|deployment| homes.may_have(&deployment.metadata));
    let mut controllers = Controllers::new(join(leases, deployments), unseen);
    // Anybody can label a ConfigMap.
    maps.retain(|map| {
        let of = installation(&map.metadata);
        controllers.of(&of.controller).any(|own| (&own.namespace, &own.name) == (&of.namespace, &of.name))
    });
    let looks = look_into_pods(cluster, &mut controllers.seen, now);
    let ((), refused_settings) = futures::join!(looks, settings::refused_settings(cluster, &maps));
    gaps.extend(controllers.unseen.as_ref().map(|why| Gap::new("the controllers of Catena", why)));
    Surroundings {
        now,
        controllers,
        namespace: deleted,
        warnings,
        protected: kinds_of(&maps, &[]),
        refused_settings,
        gaps,
        ..Surroundings::default()
    }
}

/// A controller's Lease and Deployment have the same name.
pub fn join(leases: Vec<CoreLease>, deployments: Vec<Deployment>) -> Vec<Installation> {
    let place = |of: &ObjectMeta| (of.namespace.clone(), of.name.clone());
    let mut seen = BTreeMap::new();
    for CoreLease { metadata, spec } in leases {
        let spec = spec.unwrap_or_default();
        let lease = Some(Lease {
            holder: spec.holder_identity.unwrap_or_default(),
            // By the clock of the controller, or by the one of the API server if that is later.
            renewed: spec.renew_time.and_then(|time| last_write(&metadata, |_| true).max(Some(time.0))),
            lasts: SignedDuration::from_secs(spec.lease_duration_seconds.unwrap_or(30).into()),
            is_held_by_pod: None,
        });
        seen.insert(place(&metadata), Installation { lease, ..installation(&metadata) });
    }
    for Deployment { metadata, spec, status } in deployments {
        let (wanted, status) = (spec.replicas.unwrap_or(1), status.unwrap_or_default());
        let updated = status.updated_replicas.unwrap_or(0);
        let is_refusal = |found: &DeploymentCondition| found.type_.as_deref() == Some("ReplicaFailure");
        let refused = status.conditions.into_iter().flatten().find(is_refusal);
        let with_pods = Installation {
            lease: seen.remove(&place(&metadata)).and_then(|seen| seen.lease),
            pods: Some((status.available_replicas.unwrap_or(0).into(), wanted.into())),
            labels: spec.selector.match_labels.unwrap_or_default(),
            refusal: refused.and_then(|refused| refused.message),
            is_updating: updated != status.replicas.unwrap_or(0) || updated < wanted,
            ..installation(&metadata)
        };
        seen.insert(place(&metadata), with_pods);
    }
    seen.into_values().collect()
}

/// An installation by the labels, the namespace and the name of one of its objects.
fn installation(metadata: &ObjectMeta) -> Installation {
    let label = |key: &str| metadata.labels.as_ref()?.get(key);
    let controller = label(COMPONENT).or_else(|| label(NAME));
    let [controller, name, namespace] = [controller, metadata.name.as_ref(), metadata.namespace.as_ref()]
        .map(|text| text.cloned().unwrap_or_default());
    Installation { controller, name, namespace, ..Installation::default() }
}

/// The namespace, if it is being deleted.
async fn terminating(cluster: &Cluster, namespace: Option<&str>) -> Option<Node> {
    let kind = cluster.kinds.named("", "namespaces")?;
    let namespace = cluster.at(kind, None, namespace?).find().await.ok()??;
    read::alone(namespace).filter(|namespace| namespace.deleted.is_some())
}

/// The warnings about objects of a namespace or about cluster-wide ones, the newest last.
pub async fn warnings(cluster: &Cluster, namespace: Option<&str>, gaps: &mut Vec<Gap>) -> Vec<Warning> {
    let namespace = namespace.unwrap_or(WIDE);
    let url = Event::url_path(&(), Some(namespace));
    let pages = Pages::whole(&cluster.client, url, ListParams::default().fields("type=Warning"));
    let events = read::first_of(pages.first(MAX_EVENT_PAGES).await, &format!("Events in {namespace}"), gaps);
    let mut warnings: Vec<Warning> = events.into_iter().map(warnings::warning).collect();
    warnings.sort_by_key(|warning| warning.at);
    warnings
}

/// The time by the clock of the API server, which may be far from the one of this machine; `None` if the server does not tell it.
async fn server_time(cluster: &Cluster) -> Option<Timestamp> {
    let request = Request::get("/version").body(Body::empty()).ok()?;
    let answer = cluster.client.send(request).await.ok()?;
    told_time(answer.headers().get(DATE)?.to_str().ok()?, Timestamp::now())
}

/// The time in an answer that came now: in whole seconds, which say no more than a clock that agrees with them.
fn told_time(date: &str, now: Timestamp) -> Option<Timestamp> {
    let told = rfc2822::parse(date).ok()?.timestamp();
    Some(if now.duration_since(told).abs() > RESOLUTION_OF_DATES { told } else { now })
}

/// The Event about an image that is being pulled for a pod, unless its kubelet has told something since.
pub async fn pulling(cluster: &Cluster, pod: &Node) -> Option<Warning> {
    let about = format!("involvedObject.uid={},type=Normal", pod.identity.uid);
    let about = ListParams::default().fields(&about);
    let told: Vec<Event> = cluster.all(pod.identity.namespace.as_deref(), about).await.ok()?;
    let last = told.into_iter().map(warnings::warning).max_by_key(|event| event.at);
    last.filter(|event| event.reason == "Pulling")
}

/// Finds out whether a pod of each controller holds its Lease, and the trouble of one that does not do its work, as far as its
/// pods may be read: in one request for each namespace.
async fn look_into_pods(cluster: &Cluster, installations: &mut [Installation], now: Timestamp) {
    let Some(kind) = cluster.kinds.named("", "pods") else { return };
    let mut places: BTreeMap<String, Vec<&mut Installation>> = BTreeMap::new();
    for seen in installations.iter_mut().filter(|seen| seen.labels.contains_key(NAME)) {
        places.entry(seen.namespace.clone()).or_default().push(seen);
    }
    let looks = places.into_iter().map(async |(namespace, installations)| {
        let names = installations.iter().map(|seen| seen.labels[NAME].clone());
        let of_them =
            ListParams::default().labels_from(&Expression::In(NAME.to_owned(), names.collect()).into());
        let Ok(pods) = cluster.list(kind, Some(&namespace), of_them).await else { return };
        let looks = installations.into_iter().map(async |seen| {
            let own = Selector::from_iter(seen.labels.clone());
            let own: Vec<_> = pods.iter().filter(|pod| own.matches(pod.labels())).cloned().collect();
            if let Some(lease) = seen.lease.as_mut().filter(|lease| lease.is_valid(now)) {
                lease.is_held_by_pod = Some(own.iter().any(|pod| pod.name_any() == lease.holder));
            }
            if seen.is_troubled(now) {
                seen.trouble = trouble(cluster, own).await;
            }
        });
        join_all(looks).await;
    });
    join_all(looks).await;
}

/// The trouble of the first of these pods that has one.
async fn trouble(cluster: &Cluster, pods: Vec<DynamicObject>) -> Option<PodTrouble> {
    let judged = pods.into_iter().filter_map(read::alone).filter(|pod| pod.deleted.is_none());
    let is_stuck = |health: &Health| matches!(health.state, State::Stuck | State::Failed);
    // Pods that cannot start come first, those that serve last.
    let rank = |pod: &Node| (pod.health.state == State::Ready, !is_stuck(&pod.health));
    let Node { identity, health, .. } = judged.min_by_key(rank)?;
    let words = words_of(cluster, &identity, &health).await.map(|words| format!(", and says: {words}"));
    let cause = Cause::reported(&identity, &health.reason, &health.message);
    let state = match health.state {
        State::Ready => "is ready, but has not renewed its Lease".to_owned(),
        _ => format!("{} ({})", cause.meaning, cause.reason),
    };
    let (namespace, name) = (identity.namespace.unwrap_or_default(), identity.name);
    Some(PodTrouble {
        told: format!("its pod {namespace}/{name} {state}{}", words.unwrap_or_default()),
        runs: health.state == State::Ready || health.reason == "NotReady",
        is_stuck: is_stuck(&health),
    })
}

/// The last words of the container that ended, or else the last error in the log.
async fn words_of(cluster: &Cluster, pod: &Identity, health: &Health) -> Option<String> {
    if let Some((_, said)) = health.message.split_once(CONTAINER_SAYS) {
        return Some(said.to_owned());
    }
    let crashes = health.state == State::Stuck;
    let log = log(cluster, pod, LogParams { previous: crashes, ..LogParams::default() }).await?;
    last_error(&log).or_else(|| last_words(&log).filter(|_| crashes))
}

/// The end of the log of a pod.
async fn log(cluster: &Cluster, pod: &Identity, params: LogParams) -> Option<String> {
    let pods = Api::<Pod>::namespaced(cluster.client.clone(), pod.namespace.as_deref()?);
    pods.logs(&pod.name, &LogParams { tail_lines: Some(LOG_LINES), ..params }).await.ok()
}

/// The last error since then in the log of the controller that should have reported what a cause lacks, from the pod that holds
/// its Lease.
pub async fn last_error_of(cluster: &Cluster, seen: &Surroundings, cause: &Cause) -> Option<String> {
    let controller = unreported::silent(cause)?;
    let since_seconds = Some(seen.now.duration_since(cause.since?).as_secs().max(1));
    let seen = seen.controllers.of(controller).next()?;
    let lease = seen.lease.as_ref().filter(|lease| lease.is_held_by_pod == Some(true))?;
    let pod = Identity::new("v1", "Pod", Some(&seen.namespace), &lease.holder);
    let said = last_error(&log(cluster, &pod, LogParams { since_seconds, ..LogParams::default() }).await?)?;
    Some(format!("the last error in the log of {controller}: {said}"))
}

/// The last warning or error of a log in JSON or for people.
fn last_error(log: &str) -> Option<String> {
    log.lines().rev().find_map(|line| {
        let Ok(entry) = serde_json::from_str::<Value>(line) else {
            let is_bad = [" ERROR ", " WARN ", "Error:", "error:"].iter().any(|word| line.contains(word));
            return is_bad.then(|| shortened(line));
        };
        let level = entry["level"].as_str().unwrap_or_default();
        let text = |field: &str| entry[field].as_str().filter(|text| !text.is_empty());
        let said = [text("message"), text("error")].into_iter().flatten().collect::<Vec<_>>().join(": ");
        (matches!(level, "ERROR" | "WARN") && !said.is_empty()).then(|| shortened(&said))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_that_of_the_server_as_far_as_its_answers_tell_it() {
        let now: Timestamp = "2026-01-01T00:10:00.8Z".parse().unwrap();
        let told = |date: &str| told_time(date, now).map(|time| time.to_string());
        assert_eq!(told("Thu, 01 Jan 2026 00:00:00 GMT").as_deref(), Some("2026-01-01T00:00:00Z"));
        assert_eq!(told("Thu, 01 Jan 2026 00:10:30 GMT").as_deref(), Some("2026-01-01T00:10:30Z"));
        assert_eq!(told("Thu, 01 Jan 2026 00:09:59 GMT"), Some(now.to_string()));
        assert_eq!(told("yesterday"), None);
    }

    #[test]
    fn the_last_error_of_a_log_is_found_in_json_and_in_text() {
        let json = "{\"level\":\"WARN\",\"message\":\"pods cannot be watched\",\"error\":\"403\"}\n{\"level\":\"INFO\",\"message\":\"a pass\"}\n";
        assert_eq!(last_error(json).as_deref(), Some("pods cannot be watched: 403"));
        let text =
            "2026-01-01T00:00:00Z ERROR the Lease cannot be renewed\n2026-01-01T00:00:01Z  INFO a pass\n";
        assert_eq!(
            last_error(text).as_deref(),
            Some("2026-01-01T00:00:00Z ERROR the Lease cannot be renewed")
        );
        assert_eq!(last_error("all is well"), None);
    }
}
