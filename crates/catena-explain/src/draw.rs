//! The tree as text: a line for each object, or for several similar objects that are well.

use catena_cluster::{Health, State};
use catena_terminal::{Cell, Table, Tone, age, cut};
use jiff::Timestamp;

use super::Node;

/// Characters of a message beside a tree.
const MAX_NOTE: usize = 99;

/// How a tree is drawn.
pub struct Drawing<'d> {
    /// The uid of the asked object.
    pub asked: &'d str,
    /// Whether similar objects that are well share a line.
    pub is_grouped: bool,
    /// The current time.
    pub now: Timestamp,
}

/// Draws a tree.
#[must_use]
pub fn draw(top: &Node, drawing: &Drawing) -> String {
    let mut table = Table::of(["OBJECT", "STATE", "SERVING", "AGE", "REVISION", "NOTE"]);
    table.push(line(top, "", 0, drawing));
    branches(&top.children, "", drawing, &mut table);
    table.render()
}

fn branches(children: &[Node], indent: &str, drawing: &Drawing, table: &mut Table) {
    // Similar siblings share the line of the first.
    let mut lines: Vec<(&Node, usize)> = Vec::new();
    for child in children {
        let is_alike =
            |(first, _): &&mut (&Node, usize)| drawing.is_grouped && are_alike(first, child, drawing);
        match lines.iter_mut().find(is_alike) {
            Some((_, others)) => *others += 1,
            None => lines.push((child, 0)),
        }
    }
    for (index, (first, others)) in lines.iter().enumerate() {
        let (branch, below) =
            if index + 1 == lines.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        table.push(line(first, &format!("{indent}{branch}"), *others, drawing));
        if *others == 0 {
            branches(&first.children, &format!("{indent}{below}"), drawing, table);
        }
    }
}

fn are_alike(one: &Node, other: &Node, drawing: &Drawing) -> bool {
    let may_share = |node: &Node| {
        let mut below = node.children.iter().flat_map(Node::all);
        node.identity.uid != drawing.asked
            && node.finalizers.is_empty()
            && node.deleted.is_none()
            && below.all(|below| node.health.state.is_healthy() && below.health.state.is_healthy())
    };
    let Node { identity, health, .. } = one;
    may_share(one)
        && may_share(other)
        && (&identity.api_version, &identity.kind) == (&other.identity.api_version, &other.identity.kind)
        && (health.state, &health.reason) == (other.health.state, &other.health.reason)
        && (is_history(one) || one.revision == other.revision)
}

fn is_history(node: &Node) -> bool {
    node.identity.kind == "ControllerRevision"
}

fn line(node: &Node, branch: &str, others: usize, drawing: &Drawing) -> [Cell; 6] {
    let is_asked = node.identity.uid == drawing.asked && !branch.is_empty();
    let name = match others {
        0 if is_asked => format!("{} ◀", node.identity),
        0 => node.identity.to_string(),
        // One of those that are not well is named, for a closer look.
        others if node.health.state.is_healthy() => format!("{} × {}", others + 1, node.identity.kind),
        others => format!("{} and {others} more", node.identity),
    };
    let revision = node.revision.clone().filter(|_| others == 0 || !is_history(node));
    let serving = node.serving.clone().filter(|_| others == 0);
    [
        Cell::toned(if is_asked { Tone::Strong } else { Tone::Plain }, format!("{branch}{name}")),
        Cell::toned(node.health.state.tone(), state_word(&node.health)),
        serving.unwrap_or_default().into(),
        node.created.map(|created| age(drawing.now, created)).unwrap_or_default().into(),
        revision.unwrap_or_default().into(),
        Cell::toned(Tone::Quiet, note(node, drawing.now)),
    ]
}

/// The state in one word: the reason, if the object is not well.
fn state_word(health: &Health) -> String {
    match health.state {
        State::Present => String::new(),
        State::Ready => "Ready".to_owned(),
        State::Done => "Done".to_owned(),
        state if health.reason.is_empty() => format!("{state:?}"),
        _ => health.reason.clone(),
    }
}

/// Further facts: deletion, finalizers with their holders, a missing binding, the message.
fn note(node: &Node, now: Timestamp) -> String {
    let mut parts = Vec::new();
    if let Some(since) = node.deleted {
        parts.push(format!("terminating for {}", age(now, since)));
    }
    let holders = node.finalizers.iter().map(|finalizer| match &finalizer.held_by {
        Some(holder) => format!("{} (held by {holder})", finalizer.name),
        None => finalizer.name.clone(),
    });
    let holders = holders.collect::<Vec<_>>().join(", ");
    if !holders.is_empty() {
        let word = if node.finalizers.len() == 1 { "finalizer" } else { "finalizers" };
        parts.push(format!("{word} {holders}"));
    }
    if node.unbound {
        parts.push("not bound yet".to_owned());
    }
    if !node.health.state.is_healthy() && !node.health.message.is_empty() {
        let line = node.health.message.lines().next().unwrap_or_default();
        parts.push(cut(line, MAX_NOTE).into_owned());
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use kube::core::DynamicObject;
    use serde_json::{Value, json};

    use super::*;
    use crate::grow;

    fn object(kind: &str, name: &str, owner: Option<&str>, metadata: Value, rest: Value) -> DynamicObject {
        let api_version = match kind {
            "Pod" => "v1",
            "ControllerRevision" => "apps/v1",
            _ => "catena.dev/v1alpha1",
        };
        let owners = owner.map(|uid| json!([{"apiVersion": "x", "kind": "x", "name": "x", "uid": uid}]));
        let mut object = json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {
                "name": name, "namespace": "shop", "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z",
                "ownerReferences": owners, "annotations": {"catena.dev/template-hash": "0123456789abcdef"},
            },
        });
        if let Value::Object(more) = metadata {
            object["metadata"].as_object_mut().unwrap().extend(more);
        }
        if let Value::Object(more) = rest {
            object.as_object_mut().unwrap().extend(more);
        }
        serde_json::from_value(object).unwrap()
    }

    fn pod(name: &str, status: Value) -> DynamicObject {
        let mut pod = object("Pod", name, Some("web-set"), json!({}), json!({}));
        pod.data["status"] = status;
        pod
    }

    fn stuck(name: &str) -> DynamicObject {
        let waiting =
            json!({"reason": "ImagePullBackOff", "message": "Back-off pulling image \"missing:1\""});
        pod(
            name,
            json!({"phase": "Pending", "containerStatuses": [{"name": "main", "state": {"waiting": waiting}}]}),
        )
    }

    fn serving(name: &str) -> DynamicObject {
        pod(name, json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}))
    }

    fn chain() -> Vec<DynamicObject> {
        let numbers = json!({"spec": {"replicas": 9}, "status": {"active": 3, "revision": 2, "conditions": [
            {"type": "Ready", "status": "False", "reason": "Progressing", "message": "3 of 9 replicas are serving"},
        ]}});
        let target = json!({"spec": {"targetRef": {"name": "web"}}});
        let held = json!({
            "deletionTimestamp": "2026-01-01T00:07:00Z", "finalizers": ["example.com/cleanup"],
            "managedFields": [{"manager": "operator", "fieldsV1": {"f:metadata": {"f:finalizers": {"v:\"example.com/cleanup\"": {}}}}}],
        });
        let mut all = vec![
            object("BasicDeployment", "web", None, json!({}), numbers.clone()),
            object("BasicReplicaSet", "web-set", Some("web"), json!({}), numbers),
            object("Pod", "web-held", Some("web-set"), held, json!({})),
            object("BasicDeploymentRestart", "later", None, json!({}), target),
            object("ControllerRevision", "web-r1", Some("web"), json!({}), json!({"revision": 1})),
            object("ControllerRevision", "web-r2", Some("web"), json!({}), json!({"revision": 2})),
            object("Pod", "other", Some("other-set"), json!({}), json!({})),
        ];
        all.extend(["web-1", "web-2", "web-3"].map(serving));
        all.extend(["web-a", "web-b", "web-c", "web-d", "web-e", "web-f"].map(stuck));
        all
    }

    fn drawn(asked: &str, is_grouped: bool) -> String {
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        strip_str(&draw(&grow("web", &chain()).unwrap(), &Drawing { asked, is_grouped, now })).to_string()
    }

    #[test]
    fn similar_objects_share_a_line_and_holders_are_named() {
        insta::assert_snapshot!(drawn("web", true));
    }

    #[test]
    fn the_asked_object_is_never_hidden_in_a_group() {
        let text = drawn("web-2", true);
        assert!(text.contains("Pod/web-2 ◀") && text.contains("2 × Pod"), "{text}");
    }

    #[test]
    fn without_grouping_each_object_has_a_line() {
        let text = drawn("web", false);
        assert_eq!(text.matches("Pod/").count(), 10, "{text}");
        assert!(!text.contains('×') && !text.contains("other"), "{text}");
    }
}
