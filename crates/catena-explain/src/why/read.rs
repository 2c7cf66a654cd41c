//! Reads the objects beside a chain in which the cause may lie.

use std::collections::BTreeSet;

use catena_api::keys;
use catena_cluster::{Cluster, Gap, Identity, Kind, State};
use kube::{
    api::ListParams,
    core::{DynamicObject, ObjectMeta},
};

use super::{Edge, Related, Surroundings, contest, deletion, edges, gather, placement};
use crate::{Node, grow, with_dependents};

/// A claim leads to its class: further steps lead nowhere.
const MAX_STEPS: usize = 3;
/// One pod explains the others. A chain may have thousands of them, and each of these is looked for in it.
const MAX_OBJECTS_PER_STEP: usize = 16;
/// Of the nodes of ready pods, which are only noted.
const MAX_HOSTS: usize = 4;
/// Of a cluster with more nodes, only the first 2,000 are looked at.
const MAX_PAGES: usize = 4;
/// The first contents of the first kinds explain the others.
const MAX_CONTENTS: usize = 4;

/// Reads the objects beside a chain, and the contents of it and of its namespace.
pub async fn read_related(cluster: &Cluster, asked: &Node, top: &Node, surroundings: &mut Surroundings) {
    let Surroundings { related, gaps, namespace, warnings, pulling, .. } = surroundings;
    let is_in_chain = |named: &Identity| top.all().any(|node| node.identity.is_named_by(named));
    let mut newest = named(&[asked, top]);
    for _ in 0..MAX_STEPS {
        let mut seen = BTreeSet::new();
        newest.sort();
        newest.retain(|(_, to)| seen.insert(to.clone()));
        let mut hosts = 0..MAX_HOSTS;
        newest.retain(|(edge, _)| *edge != Edge::Host || hosts.next().is_some());
        let is_known =
            |to: &Identity| related.find(to).is_some() || related.is_missing(to) || is_in_chain(to);
        let unknown = newest.into_iter().filter(|(_, to)| !is_known(to));
        let found = read(cluster, unknown.take(MAX_OBJECTS_PER_STEP).collect(), related, gaps).await;
        newest = named(&found.iter().collect::<Vec<_>>());
        related.found.extend(found);
    }
    let places = top.all().filter_map(edges::backup_of).filter_map(|backup| backup.namespace);
    let places: BTreeSet<String> =
        places.filter(|place| top.identity.namespace.as_ref() != Some(place)).collect();
    for place in places.iter().take(MAX_STEPS) {
        let read = gather::warnings(cluster, Some(place)).await;
        let what = format!("Events in {place}");
        warnings.extend(first_of(read, &what, gaps));
    }
    let starts = |pod: &&Node| pod.health.reason == "Starting" && edges::node_of(pod).is_some();
    if let Some(pod) = asked.all().chain(top.all()).find(starts) {
        pulling.extend(gather::pulling(cluster, pod).await);
    }
    if top.all().any(edges::needs_nodes) {
        related.nodes = all(cluster, ("", "nodes"), None, gaps).await;
    }
    if let Some(kind) = top.all().find_map(edges::terminating_kind).and_then(|kind| kind_named(cluster, kind))
    {
        let definition =
            Identity::new("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, &kind.full_name());
        let found = read(cluster, vec![(Edge::Definition, definition)], related, gaps).await;
        related.found.extend(found);
    }
    let all_objects = top.all().chain(namespace.as_ref()).chain(&related.found);
    let containers: Vec<Node> =
        all_objects.filter(|node| deletion::waits_for_contents(node)).cloned().collect();
    for container in containers {
        related.contents.extend(contents_of(cluster, &container, gaps).await);
    }
    let of_contents = named(&related.contents.iter().collect::<Vec<_>>());
    let found = read(cluster, of_contents, related, gaps).await;
    related.found.extend(found);
    if top.all().chain(&related.found).any(|claim| placement::waits_for_somebody(claim, related)) {
        related.volumes = all(cluster, ("", "persistentvolumes"), None, gaps).await;
    }
    if top.all().any(|node| contest::told(node).is_some()) {
        for kind in contest::WRITERS {
            related.writers.extend(all(cluster, kind, top.identity.namespace.as_deref(), gaps).await);
        }
    }
}

/// What objects and those below them name. One pod without a node explains the others by its claims: one that is stuck rather
/// than one that is starting.
fn named(objects: &[&Node]) -> Vec<(Edge, Identity)> {
    let has_claims = |node: &&Node| edges::edges(node).iter().any(|(edge, _)| *edge == Edge::Claim);
    let first = objects
        .iter()
        .find_map(|of| of.all().filter(has_claims).min_by_key(|pod| pod.health.state == State::Moving));
    let claimant = first.map(|pod| &pod.identity);
    let all = objects.iter().flat_map(|of| of.all());
    all.flat_map(|node| {
        let is_claimant = claimant == Some(&node.identity);
        edges::edges(node).into_iter().filter(move |(edge, _)| is_claimant || *edge != Edge::Claim)
    })
    .collect()
}

/// Reads objects by name, and records those that do not exist.
async fn read(
    cluster: &Cluster,
    wanted: Vec<(Edge, Identity)>,
    related: &mut Related,
    gaps: &mut Vec<Gap>,
) -> Vec<Node> {
    let reads = wanted.iter().map(async |(_, identity)| {
        let kind = match &*identity.api_version {
            "" => kind_named(cluster, &identity.kind),
            _ => cluster.kinds.of(identity),
        };
        Some(cluster.at(kind?, identity.namespace.as_deref(), &identity.name).find().await)
    });
    let answers = futures::future::join_all(reads).await;
    let mut found = Vec::new();
    for ((edge, identity), answer) in wanted.into_iter().zip(answers) {
        match answer {
            Some(Ok(Some(object))) if matches!(edge, Edge::OldChild | Edge::BlockedBy | Edge::Backup) => {
                let (node, unread) = Box::pin(with_dependents(cluster, object)).await;
                found.extend(node);
                gaps.extend(unread);
            }
            Some(Ok(Some(object))) => found.extend(alone(object)),
            Some(Ok(None)) => related.missing.push(identity),
            // Whoever may not read nodes has the word of the pod.
            Some(Err(_)) if edge == Edge::Host => {}
            Some(Err(error)) => gaps.push(Gap::of(identity.to_string(), &error)),
            None => gaps.push(Gap::new(identity.to_string(), "the server has no such kind")),
        }
    }
    found
}

/// An object without its dependents.
pub fn alone(object: DynamicObject) -> Option<Node> {
    let uid = object.metadata.uid.clone()?;
    grow(&uid, &[object])
}

/// The objects of a kind, which is named by its group and its plural.
async fn all(
    cluster: &Cluster,
    (group, plural): (&str, &str),
    namespace: Option<&str>,
    gaps: &mut Vec<Gap>,
) -> Vec<Node> {
    let Some(kind) = cluster.kinds.named(group, plural) else { return Vec::new() };
    let first = cluster.first(MAX_PAGES, kind, namespace, ListParams::default()).await;
    first_of(first, plural, gaps).into_iter().filter_map(alone).collect()
}

/// The first ones of a list, and a gap if these are not all.
pub fn first_of<T>(first: kube::Result<(Vec<T>, bool)>, what: &str, gaps: &mut Vec<Gap>) -> Vec<T> {
    let first = first.map(|(found, is_all)| (found, !is_all));
    let (found, is_cut) = Gap::or_default(first, what, gaps);
    if is_cut {
        gaps.push(Gap::new(format!("some {what}"), "there are too many"));
    }
    found
}

/// Our own kinds come first, because our controllers name kinds without their group.
fn kind_named<'c>(cluster: &'c Cluster, kind: &str) -> Option<&'c Kind> {
    let ours = cluster.kinds.in_group(keys::GROUP).find(|known| known.resource.kind == kind);
    ours.or_else(|| cluster.kinds.preferred().find(|known| known.resource.kind == kind))
}

/// The first contents of a namespace or a definition that stay although they are deleted: pods first, for which others wait, and
/// of each kind those with a finalizer.
async fn contents_of(cluster: &Cluster, container: &Node, gaps: &mut Vec<Gap>) -> Vec<Node> {
    let namespace = (container.identity.kind == "Namespace").then_some(container.identity.name.as_str());
    let (mut left, mut found) = (deletion::resources_left(container), Vec::new());
    left.sort_by_key(|resource| resource != "pods");
    for resource in left.into_iter().take(MAX_CONTENTS) {
        let (plural, group) = resource.split_once('.').unwrap_or((&resource, ""));
        let Some(kind) = cluster.kinds.named(group, plural) else { continue };
        let objects = cluster.metadata(kind, namespace, ListParams::default()).await;
        let objects = Gap::or_default(objects, &resource, gaps);
        let mut kept: Vec<_> = objects.iter().filter(|kept| kept.deletion_timestamp.is_some()).collect();
        kept.sort_by_key(|kept| kept.finalizers.iter().flatten().next().is_none());
        let kept = kept.into_iter().take(MAX_CONTENTS).map(async |ObjectMeta { namespace, name, .. }| {
            cluster.at(kind, namespace.as_deref(), name.as_deref().unwrap_or_default()).find().await
        });
        let kept = futures::future::join_all(kept).await.into_iter().flatten().flatten();
        found.extend(kept.filter_map(alone));
    }
    found
}
