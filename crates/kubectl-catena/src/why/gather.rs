//! Reads the surroundings of a chain.

use std::collections::BTreeMap;

use catena_cluster::{Cluster, Gap, Identity, Pages, last_write, read_failure};
use http::{Request, header::DATE};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822};
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        coordination::v1::Lease as CoreLease,
        core::v1::{ConfigMap, Event},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Resource, api::ListParams, client::Body};

use super::{
    Controllers, Installation, Lease, NAME, RefusedSettings, Surroundings, Warning, controller_pods, read,
    settings, warnings,
};
use crate::{
    chain::Node,
    protection::{COMPONENT, OURS, kinds_of},
};

/// The namespace of Events about cluster-wide objects.
const WIDE: &str = "default";
/// A namespace with more pages of Events has other problems.
const MAX_EVENT_PAGES: usize = 10;

/// Reads the surroundings of the chain of an object.
pub async fn gather(cluster: &Cluster, namespace: Option<&str>) -> Surroundings {
    let ours = || ListParams::default().labels(OURS);
    let (lead, leases, deployments, maps, deleted, warnings) = futures::join!(
        lead(cluster),
        cluster.all::<CoreLease>(None, ours()),
        cluster.all::<Deployment>(None, ours()),
        cluster.all::<ConfigMap>(None, ours()),
        terminating(cluster, namespace),
        warnings(cluster, namespace),
    );
    let maps = maps.unwrap_or_default();
    let unseen = match (&leases, &deployments) {
        (Err(error), Err(_)) => Some(read_failure(error)),
        _ => None,
    };
    let leases = leases.unwrap_or_default();
    let of_leases: Vec<ObjectMeta> = leases.iter().map(|lease| lease.metadata.clone()).collect();
    let protected = kinds_of(&maps, &of_leases);
    let mut seen = join(leases, deployments.unwrap_or_default(), lead);
    let mut gaps = Vec::new();
    let ((), refused_settings) =
        futures::join!(look_for_holders(cluster, &mut seen), settings::refused_settings(cluster, &maps));
    controller_pods::look_into_pods(cluster, &mut seen).await;
    if let Some(why) = &unseen {
        gaps.push(Gap::new("the controllers of Catena", why));
    }
    let (warnings, is_all) = warnings.unwrap_or_else(|error| {
        gaps.push(Gap::of("Events", &error));
        (Vec::new(), true)
    });
    if !is_all {
        gaps.push(Gap::new("some Events", "there are too many"));
    }
    let controllers = Controllers { seen, unseen };
    let is_installed = |refused: &RefusedSettings| {
        let Identity { namespace, name, .. } = &refused.config_map;
        let mut installed = controllers.installed(&refused.controller);
        installed.any(|seen| seen.name == *name && Some(&seen.namespace) == namespace.as_ref())
    };
    // Anybody can label a ConfigMap.
    let refused_settings = refused_settings.into_iter().filter(is_installed).collect();
    Surroundings {
        controllers,
        namespace: deleted,
        warnings,
        protected,
        refused_settings,
        gaps,
        ..Surroundings::default()
    }
}

/// A controller's Lease and Deployment have the same name. The clock of this machine has a lead over the API server's.
pub fn join(leases: Vec<CoreLease>, deployments: Vec<Deployment>, lead: SignedDuration) -> Vec<Installation> {
    let mut seen: BTreeMap<(String, String), Installation> = BTreeMap::new();
    let mut of = |metadata: &ObjectMeta, change: &dyn Fn(&mut Installation)| {
        let label = |key: &str| metadata.labels.as_ref()?.get(key).cloned();
        let controller = label(COMPONENT).or_else(|| label(NAME)).unwrap_or_default();
        let name = metadata.name.clone().unwrap_or_default();
        let namespace = metadata.namespace.clone().unwrap_or_default();
        let entry = seen.entry((namespace.clone(), name.clone())).or_default();
        *entry = Installation { controller, name, namespace, ..std::mem::take(entry) };
        change(entry);
    };
    for lease in leases {
        // By the clock of the controller, or by the one of the API server if that is later.
        let written = last_write(&lease.metadata, |_| true);
        let spec = lease.spec.unwrap_or_default();
        let renewed = spec.renew_time.map(|time| {
            let renewed = written.map_or(time.0, |written| written.max(time.0));
            renewed.checked_add(lead).unwrap_or(Timestamp::MAX)
        });
        let lease_of = Lease {
            holder: spec.holder_identity.unwrap_or_default(),
            renewed,
            lasts: SignedDuration::from_secs(spec.lease_duration_seconds.unwrap_or(30).into()),
            is_held_by_pod: None,
        };
        of(&lease.metadata, &|seen| seen.lease = Some(lease_of.clone()));
    }
    for deployment in deployments {
        let wanted = deployment.spec.replicas.unwrap_or(1);
        let labels = deployment.spec.selector.match_labels.unwrap_or_default();
        let selector: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let selector = selector.join(",");
        let status = deployment.status.clone().unwrap_or_default();
        let available = status.available_replicas.unwrap_or(0);
        let updated = status.updated_replicas.unwrap_or(0);
        let is_updating = updated != status.replicas.unwrap_or(0) || updated < wanted;
        of(&deployment.metadata, &|seen| {
            seen.pods = Some((available.into(), wanted.into()));
            seen.selector.clone_from(&selector);
            seen.is_updating = is_updating;
        });
    }
    seen.into_values().collect()
}

/// Finds out whether the holder of each valid Lease is a pod of its Deployment, with one list for each namespace.
async fn look_for_holders(cluster: &Cluster, seen: &mut [Installation]) {
    let Some(kind) = cluster.kinds.named("", "pods") else { return };
    let now = Timestamp::now();
    let mut held: BTreeMap<String, Vec<&mut Installation>> = BTreeMap::new();
    for seen in seen.iter_mut().filter(|seen| seen.lease.as_ref().is_some_and(|lease| lease.is_valid(now))) {
        held.entry(seen.namespace.clone()).or_default().push(seen);
    }
    let looks = held.into_iter().map(async |(namespace, installations)| {
        let names: Vec<&str> = installations.iter().filter_map(|seen| seen.pod_name()).collect();
        if names.is_empty() {
            return;
        }
        let labels = format!("{NAME} in ({})", names.join(","));
        let labelled = ListParams::default().labels(&labels);
        let Ok(pods) = cluster.metadata(kind, Some(&namespace), labelled).await else { return };
        for seen in installations {
            let has_name = seen.pod_name().is_some();
            let Some(lease) = seen.lease.as_mut().filter(|_| has_name) else { continue };
            let is_holder = |pod: &ObjectMeta| {
                pod.name.as_ref() == Some(&lease.holder) && is_selected(&seen.selector, pod)
            };
            lease.is_held_by_pod = Some(pods.iter().any(is_holder));
        }
    });
    futures::future::join_all(looks).await;
}

/// Whether an object has all labels of a selector, such as `a=b,c=d`.
fn is_selected(selector: &str, metadata: &ObjectMeta) -> bool {
    let has = |pair: &str| {
        let (key, value) = pair.split_once('=')?;
        Some(metadata.labels.as_ref()?.get(key)? == value)
    };
    selector.split(',').all(|pair| has(pair) == Some(true))
}

/// The namespace, if it is being deleted.
async fn terminating(cluster: &Cluster, namespace: Option<&str>) -> Option<Node> {
    let kind = cluster.kinds.named("", "namespaces")?;
    let namespace = cluster.at(kind, None, namespace?).find().await.ok()??;
    read::alone(namespace).filter(|namespace| namespace.deleted.is_some())
}

/// The warnings about objects of a namespace or about cluster-wide ones, the newest last, and whether they are all.
async fn warnings(cluster: &Cluster, namespace: Option<&str>) -> kube::Result<(Vec<Warning>, bool)> {
    let url = Event::url_path(&(), Some(namespace.unwrap_or(WIDE)));
    let pages = Pages::whole(&cluster.client, url, ListParams::default().fields("type=Warning"));
    let (events, is_all) = pages.first::<Event>(MAX_EVENT_PAGES).await?;
    let mut warnings: Vec<Warning> = events.into_iter().map(warnings::warning).collect();
    warnings.sort_by_key(|warning| warning.at);
    Ok((warnings, is_all))
}

/// How far the clock of this machine is ahead of the one of the API server, in whole seconds of that; zero if the server does
/// not tell its time.
async fn lead(cluster: &Cluster) -> SignedDuration {
    lead_told_by(cluster).await.unwrap_or_default()
}

async fn lead_told_by(cluster: &Cluster) -> Option<SignedDuration> {
    let request = Request::get("/version").body(Body::empty()).ok()?;
    let answer = cluster.client.send(request).await.ok()?;
    lead_over(answer.headers().get(DATE)?.to_str().ok()?, Timestamp::now())
}

fn lead_over(date: &str, now: Timestamp) -> Option<SignedDuration> {
    Some(now.duration_since(rfc2822::parse(date).ok()?.timestamp()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_of_a_clock_is_read_from_the_date_of_an_answer() {
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        let lead = |date: &str| lead_over(date, now).map(|lead| lead.as_secs());
        assert_eq!(lead("Thu, 01 Jan 2026 00:00:00 GMT"), Some(600));
        assert_eq!(lead("Thu, 01 Jan 2026 00:10:30 GMT"), Some(-30));
        assert_eq!(lead("yesterday"), None);
    }
}
