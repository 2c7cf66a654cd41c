//! Reads the objects beside a chain in which the cause may lie.

use std::collections::BTreeSet;

use catena_api::keys;
use catena_cluster::{Cluster, Gap, Identity, Kind, State};
use futures::future::join_all;
use kube::{api::ListParams, core::DynamicObject, discovery::ApiResource};

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
    let mut reader = Reader { cluster, related, gaps };
    let is_in_chain = |named: &Identity| top.all().any(|node| node.identity.is_named_by(named));
    let mut newest = named([asked, top]);
    let definition = top.all().find_map(edges::terminating_kind).and_then(|kind| reader.kind_named(kind));
    newest.extend(definition.map(|kind| {
        let name = kind.full_name();
        let crd = Identity::new("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, &name);
        (Edge::Definition, crd)
    }));
    for _ in 0..MAX_STEPS {
        let mut seen = BTreeSet::new();
        newest.sort();
        let unknown = newest.into_iter().filter(|(_, to)| {
            let is_known = || reader.related.find(to).is_some() || reader.related.is_missing(to);
            seen.insert(to.clone()) && !is_known() && !is_in_chain(to)
        });
        let mut hosts = 0..MAX_HOSTS;
        let unknown = unknown.filter(|(edge, _)| *edge != Edge::Host || hosts.next().is_some());
        let unknown = unknown.take(MAX_OBJECTS_PER_STEP).collect();
        let found = reader.read(unknown).await;
        newest = named(&found);
        reader.related.found.extend(found);
    }
    let places = top.all().filter_map(edges::backup_of).filter_map(|backup| backup.namespace);
    let places: BTreeSet<String> =
        places.filter(|place| top.identity.namespace.as_ref() != Some(place)).collect();
    for place in places.iter().take(MAX_STEPS) {
        warnings.extend(gather::warnings(cluster, Some(place), reader.gaps).await);
    }
    let starts = |pod: &&Node| pod.health.reason == "Starting" && edges::node_of(pod).is_some();
    if let Some(pod) = asked.all().chain(top.all()).find(starts) {
        pulling.extend(gather::pulling(cluster, pod).await);
    }
    let containers = top.all().chain(namespace.as_ref()).chain(&reader.related.found);
    let containers: Vec<Node> =
        containers.filter(|node| deletion::waits_for_contents(node)).cloned().collect();
    for container in containers {
        let contents = reader.contents_of(&container).await;
        reader.related.contents.extend(contents);
    }
    let of_contents = reader.read(named(&reader.related.contents)).await;
    reader.related.found.extend(of_contents);
    if top.all().any(|node| contest::told(node).is_some()) {
        for kind in contest::WRITERS {
            let writers = reader.all(kind, top.identity.namespace.as_deref()).await;
            reader.related.writers.extend(writers);
        }
    }
    if top.all().any(edges::needs_nodes) {
        reader.related.nodes = reader.all(("", "nodes"), None).await;
    }
    let waits = |claim: &Node| placement::waits_for_somebody(claim, reader.related);
    if top.all().chain(&reader.related.found).any(waits) {
        reader.related.volumes = reader.all(("", "persistentvolumes"), None).await;
    }
}

/// What objects and those below them name. One pod without a node explains the others by its claims: one that is stuck rather
/// than one that is starting.
fn named<'n>(objects: impl IntoIterator<Item = &'n Node> + Clone) -> Vec<(Edge, Identity)> {
    let has_claims = |node: &&Node| edges::edges(node).iter().any(|(edge, _)| *edge == Edge::Claim);
    let first =
        |of: &'n Node| of.all().filter(has_claims).min_by_key(|pod| pod.health.state == State::Moving);
    let claimant = objects.clone().into_iter().find_map(first);
    let all = objects.into_iter().flat_map(Node::all);
    all.flat_map(|node| {
        let is_claimant = claimant.is_some_and(|pod| pod.identity == node.identity);
        edges::edges(node).into_iter().filter(move |(edge, _)| is_claimant || *edge != Edge::Claim)
    })
    .collect()
}

/// Reads objects beside a chain, and records what does not exist or could not be read.
struct Reader<'r> {
    cluster: &'r Cluster,
    related: &'r mut Related,
    gaps: &'r mut Vec<Gap>,
}

impl<'r> Reader<'r> {
    /// The objects of these names that exist.
    async fn read(&mut self, wanted: Vec<(Edge, Identity)>) -> Vec<Node> {
        let reads = wanted.iter().map(async |(_, identity)| {
            let kind = match &*identity.api_version {
                "" => self.kind_named(&identity.kind),
                _ => self.cluster.kinds.of(identity),
            };
            Some(self.cluster.at(kind?, identity.namespace.as_deref(), &identity.name).find().await)
        });
        let answers = join_all(reads).await;
        let mut found = Vec::new();
        for ((edge, identity), answer) in wanted.into_iter().zip(answers) {
            match answer {
                Some(Ok(Some(object))) if matches!(edge, Edge::OldChild | Edge::BlockedBy | Edge::Backup) => {
                    let (node, unread) = Box::pin(with_dependents(self.cluster, object)).await;
                    found.extend(node);
                    self.gaps.extend(unread);
                }
                Some(Ok(Some(object))) => found.extend(alone(object)),
                Some(Ok(None)) => self.related.missing.push(identity),
                // Whoever may not read nodes has the word of the pod.
                Some(Err(_)) if edge == Edge::Host => {}
                Some(Err(error)) => self.gaps.push(Gap::of(identity.to_string(), &error)),
                None => self.gaps.push(Gap::new(identity.to_string(), "the server has no such kind")),
            }
        }
        found
    }

    /// The objects of a kind, which is named by its group and its plural.
    async fn all(&mut self, (group, plural): (&str, &str), namespace: Option<&str>) -> Vec<Node> {
        let Some(kind) = self.cluster.kinds.named(group, plural) else { return Vec::new() };
        let first = self.cluster.first(MAX_PAGES, kind, namespace, ListParams::default()).await;
        first_of(first, plural, self.gaps).into_iter().filter_map(alone).collect()
    }

    /// The first contents of a namespace or a definition that stay although they are deleted: pods first, for which others wait,
    /// and of each kind those with a finalizer.
    async fn contents_of(&mut self, container: &Node) -> Vec<Node> {
        let namespace = (container.identity.kind == "Namespace").then_some(container.identity.name.as_str());
        let (mut left, mut kept) = (deletion::resources_left(container), Vec::new());
        left.sort_by_key(|resource| resource != "pods");
        for resource in left.into_iter().take(MAX_CONTENTS) {
            let Some(kind) = self.cluster.kinds.defined_by(&resource) else { continue };
            let objects = self.cluster.metadata(kind, namespace, ListParams::default()).await;
            let mut objects = Gap::or_default(objects, &resource, self.gaps);
            objects.retain(|object| object.deletion_timestamp.is_some());
            objects.sort_by_key(|object| object.finalizers.iter().flatten().next().is_none());
            let ApiResource { api_version, kind, .. } = &kind.resource;
            let first = objects.iter().take(MAX_CONTENTS);
            kept.extend(
                first.map(|object| (Edge::Contents, Identity::in_metadata(api_version, kind, object))),
            );
        }
        self.read(kept).await
    }

    /// Our own kinds come first, because our controllers name kinds without their group.
    fn kind_named(&self, kind: &str) -> Option<&'r Kind> {
        let ours = self.cluster.kinds.in_group(keys::GROUP).find(|known| known.resource.kind == kind);
        ours.or_else(|| self.cluster.kinds.preferred().find(|known| known.resource.kind == kind))
    }
}

/// An object without its dependents.
pub fn alone(object: DynamicObject) -> Option<Node> {
    let uid = object.metadata.uid.clone()?;
    grow(&uid, &[object])
}

/// The first ones of a list, and a gap if these are not all.
pub fn first_of<T>(first: kube::Result<(Vec<T>, bool)>, what: &str, gaps: &mut Vec<Gap>) -> Vec<T> {
    let first = first.map(|(found, is_all)| (found, !is_all));
    let (found, is_cut) = Gap::or_default(first, what, gaps);
    gaps.extend(is_cut.then(|| Gap::new(format!("some {what}"), "there are too many")));
    found
}
