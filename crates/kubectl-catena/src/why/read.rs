//! Reads the objects beside a chain in which the cause may lie.

use catena_api::keys;
use catena_cluster::{Cluster, Gap, Identity, Kind};
use kube::{
    api::ListParams,
    core::{DynamicObject, ObjectMeta},
};

use super::{Edge, Related, contents, contest, edges, facts};
use crate::chain::{Node, grow, with_dependents};

/// A claim leads to its class: further steps lead nowhere.
const MAX_STEPS: usize = 3;
/// One pod explains the others. A chain may have thousands of them, and each of these is looked for in it.
const MAX_OBJECTS_PER_STEP: usize = 16;
/// Of a cluster with more nodes, only the first 2,000 are looked at.
const MAX_PAGES: usize = 4;
/// The first contents of each kind explain the others.
const MAX_CONTENTS: usize = 4;

/// Reads the objects beside a chain, and the contents of it and of its namespace.
pub async fn related(cluster: &Cluster, top: &Node, namespace: Option<&Node>) -> (Related, Vec<Gap>) {
    let (mut related, mut gaps) = (Related::default(), Vec::new());
    let is_in_chain = |named: &Identity| top.all().any(|node| facts::is_same(&node.identity, named));
    let mut newest: Vec<(Edge, Identity)> = top.all().flat_map(edges::edges).collect();
    for _ in 0..MAX_STEPS {
        newest.sort();
        newest.dedup();
        let unknown = newest.into_iter().filter(|(_, to)| !related.knows(to) && !is_in_chain(to));
        let unknown = unknown.take(MAX_OBJECTS_PER_STEP).collect();
        let found = read(cluster, unknown, &mut related, &mut gaps).await;
        newest = found.iter().flat_map(Node::all).flat_map(edges::edges).collect();
        related.found.extend(found);
    }
    if top.all().any(edges::needs_nodes) {
        related.nodes = all(cluster, ("", "nodes"), None, &mut gaps).await;
    }
    if let Some(kind) = top.all().find_map(edges::terminating_kind).and_then(|kind| kind_named(cluster, kind))
    {
        let found =
            read(cluster, vec![(Edge::Definition, definition_of(kind))], &mut related, &mut gaps).await;
        related.found.extend(found);
    }
    let containers =
        top.all().chain(namespace).chain(&related.found).filter(|node| edges::needs_contents(node));
    let containers: Vec<Node> = containers.cloned().collect();
    for container in containers {
        related.contents.extend(contents_of(cluster, &container, &mut gaps).await);
    }
    if top.all().any(|node| contest::told(node).is_some()) {
        let namespace = top.identity.namespace.as_deref();
        for kind in contest::WRITERS {
            related.writers.extend(all(cluster, kind, namespace, &mut gaps).await);
        }
    }
    (related, gaps)
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
    match cluster.first(MAX_PAGES, kind, namespace, ListParams::default()).await {
        Ok((found, is_all)) => {
            if !is_all {
                gaps.push(Gap::new(format!("some {plural}"), "there are too many"));
            }
            found.into_iter().filter_map(alone).collect()
        }
        Err(error) => {
            gaps.push(Gap::of(plural, &error));
            Vec::new()
        }
    }
}

/// Our own kinds come first, because our controllers name kinds without their group.
fn kind_named<'c>(cluster: &'c Cluster, kind: &str) -> Option<&'c Kind> {
    let ours = cluster.kinds.in_group(keys::GROUP).find(|known| known.resource.kind == kind);
    ours.or_else(|| cluster.kinds.preferred().find(|known| known.resource.kind == kind))
}

fn definition_of(kind: &Kind) -> Identity {
    Identity::new("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, &kind.full_name())
}

/// The first contents of a namespace or a definition that are held by a finalizer.
async fn contents_of(cluster: &Cluster, container: &Node, gaps: &mut Vec<Gap>) -> Vec<Node> {
    let namespace = (container.identity.kind == "Namespace").then_some(container.identity.name.as_str());
    let mut found = Vec::new();
    for resource in contents::resources_left(container) {
        let (plural, group) = resource.split_once('.').unwrap_or((&resource, ""));
        let Some(kind) = cluster.kinds.named(group, plural) else { continue };
        match cluster.metadata(kind, namespace, ListParams::default()).await {
            Ok(objects) => {
                let held = objects.iter().filter(|metadata| is_held(metadata)).take(MAX_CONTENTS);
                let held = held.map(async |ObjectMeta { namespace, name, .. }| {
                    cluster.at(kind, namespace.as_deref(), name.as_deref().unwrap_or_default()).find().await
                });
                let held = futures::future::join_all(held).await.into_iter().flatten().flatten();
                found.extend(held.filter_map(alone));
            }
            Err(error) => gaps.push(Gap::of(&resource, &error)),
        }
        if !found.is_empty() {
            break;
        }
    }
    found
}

fn is_held(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some() && metadata.finalizers.iter().flatten().next().is_some()
}
