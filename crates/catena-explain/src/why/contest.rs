//! Somebody who changes the child of a BasicDeployment again and again, so that it never comes to rest.

use catena_api::keys;
use catena_cluster::{Identity, condition, last_write, list, number};
use catena_terminal::duration;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ManagedFieldsEntry};
use serde_json::Value;

use super::{Cause, Facts, Finding, objects};
use crate::Node;

/// The reason of an object whose controller has repeated a write too often.
pub const REASON: &str = "RepeatedWrites";
/// How recent a change of a spec is that counts.
const CHANGE_WINDOW: SignedDuration = SignedDuration::from_mins(1);
/// Two changes in a shorter time are hardly those of a person.
const CHANGE_INTERVAL: SignedDuration = SignedDuration::from_secs(5);
/// So many changes are no correction of a mistake.
const MIN_CHANGES: i64 = 5;

/// The contest about the asked object, or about the one above or below it.
pub fn check<'n>(facts: &Facts<'n>) -> Option<Finding<'n>> {
    let asked = facts.asked;
    // A finished command or a revision does not.
    let depends = asked.serving.is_some() || objects::is_waiting(asked);
    let mut all = facts.top.all().filter(|node| depends && node.deleted.is_none());
    all.find_map(|node| {
        let (child, cause) = contested(node).or_else(|| Some((node, alternating(node, facts.now)?)))?;
        let is_in_line = node.find(&asked.identity.uid).or_else(|| asked.find(&node.identity.uid)).is_some();
        let is_child = |node: &Node| node.identity.uid == child.identity.uid;
        let path = objects::path_to(asked, &is_child).unwrap_or_else(|| vec![asked, child]);
        is_in_line.then_some(Finding { cause, path })
    })
}

/// The object that somebody keeps changing: the child that the message of its parent names. Otherwise the parent, whose
/// message says more: a child whose label is what the fight is about belongs to nobody meanwhile.
fn contested(node: &Node) -> Option<(&Node, Cause)> {
    let said = told(node)?;
    let change = change_in(&said.message);
    let child = child_in(&said.message, node).filter(|_| change.is_some());
    let at = child.unwrap_or(node);
    let mut cause = Cause::with(&at.identity, REASON);
    if let Some((by, _)) = change {
        let what = if child.is_some() { "is" } else { "has a child that is" };
        cause = cause.meaning(format!("{what} changed again and again by {by}"));
    }
    Some((at, cause.message(said.message).since(Some(said.last_transition_time.0))))
}

/// The cause of an object whose spec changes faster than people do it, as the numbers of its revisions show: a revision that comes
/// back has a new one. They may all be as new because they were restored or adopted, but then no generation counts the changes.
fn alternating(node: &Node, now: Timestamp) -> Option<Cause> {
    let is_recent = |at: &Timestamp| now.duration_since(*at) < CHANGE_WINDOW;
    let owns = |entry: &ManagedFieldsEntry, field: &str| {
        entry.fields_v1.as_ref().is_some_and(|owned| owned.0.get(field).is_some())
    };
    let revisions = node.children.iter().filter_map(|Node { object, .. }| {
        let written = last_write(&object.metadata, |entry| owns(entry, "f:revision"))?;
        Some((number(object, "/revision")?, written))
    });
    let mut revisions: Vec<(i64, Timestamp)> = revisions.collect();
    revisions.sort_unstable();
    let [.., (former, before), (last, newest)] = &revisions[..] else { return None };
    let old = revisions.iter().rev().find(|(_, at)| !is_recent(at)).map_or(0, |(number, _)| *number);
    let gap = newest.duration_since(*before);
    let is_counted = node.object.metadata.generation >= Some(last - old);
    if !is_recent(newest) || gap > CHANGE_INTERVAL || last - old < MIN_CHANGES || !is_counted {
        return None;
    }
    let writers = node.object.metadata.managed_fields.iter().flatten().filter(|entry| {
        let is_new = entry.time.as_ref().is_some_and(|at| is_recent(&at.0));
        is_new && entry.subresource.is_none() && owns(entry, "f:spec")
    });
    let mut writers: Vec<_> = writers.collect();
    let latest = writers.iter().filter_map(|entry| entry.time.as_ref()).max().cloned();
    writers.retain(|entry| entry.time == latest);
    let by = writers.iter().filter_map(|entry| entry.manager.as_deref()).collect::<Vec<_>>().join(" or ");
    let by = if by.is_empty() { "somebody" } else { &by };
    let [former, last, gap] = [former.to_string(), last.to_string(), duration(gap)];
    let names = [("{former}", &*former), ("{last}", &last), ("{gap}", &gap), ("{by}", by)];
    Some(Cause::with(&node.identity, REASON).in_case("alternating spec", &names))
}

/// Whom a message blames, and for which field, in the words of the kit. The writes of a field manager may leave no trace on the
/// object, where the last writer of other fields may have nothing to do with it.
fn change_in(message: &str) -> Option<(String, &str)> {
    let (by, of) = message.split_once(" keeps changing ")?;
    let named = by.split_once("the field manager ").and_then(|(_, quoted)| serde_json::from_str(quoted).ok());
    Some((named.unwrap_or_else(|| "somebody else".to_owned()), of.split_once(" of ")?.0))
}

/// The field manager of the parents.
const PARENT: &str = "basic-deployment-controller";
/// The kinds of objects that make somebody else write: an autoscaler scales, and a webhook changes what is written.
pub const WRITERS: [(&str, &str); 2] = [
    ("autoscaling", "horizontalpodautoscalers"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
];

/// Who may write the contested children beside their controller, as far as autoscalers, webhooks and field managers tell.
pub fn writers(facts: &Facts) -> impl Iterator<Item = String> {
    let contested = facts.top.all().filter_map(|node| Some((node, told(node)?.message)));
    contested.filter_map(|(node, said)| Some(writers_of(child_in(&said, node)?, &said, facts))).flatten()
}

/// The child that a message of its parent names.
fn child_in<'n>(message: &str, parent: &'n Node) -> Option<&'n Node> {
    let named = |Identity { kind, name, .. }: &Identity| format!(" of {kind} {name:?}");
    parent.children.iter().find(|child| message.contains(&named(&child.identity)))
}

fn writers_of(child: &Node, said: &str, facts: &Facts) -> Vec<String> {
    let name = &child.identity;
    let (by, field) = change_in(said).unwrap_or_default();
    let by_object = facts.surroundings.related.writers.iter().filter_map(|writer| {
        let scaled = &writer.object.data["spec"]["scaleTargetRef"];
        if scaled["name"] == *name.name && scaled["kind"] == *name.kind {
            return Some(format!("{} scales {name}", writer.identity));
        }
        let matching = list(&writer.object, "/webhooks").filter(|webhook| changes(webhook, name));
        let matching: Vec<&str> = matching.filter_map(|webhook| webhook["name"].as_str()).collect();
        let names = matching.join(", ");
        (!names.is_empty())
            .then(|| format!("{} may change {name} when it is written: {names}", writer.identity))
    });
    let path = format!("/f:{}", field.replace('.', "/f:"));
    let owners = child.object.metadata.managed_fields.iter().flatten().filter_map(|entry| {
        entry.fields_v1.as_ref()?.0.pointer(&path)?;
        entry.manager.as_deref().filter(|manager| ![PARENT, &by].contains(manager))
    });
    let owners = owners.map(|manager| format!("the field manager {manager} also owns {field} of {name}"));
    by_object.chain(owners).collect()
}

/// Whether a webhook is called for the objects of a kind.
fn changes(webhook: &Value, object: &Identity) -> bool {
    let has = |list: &Value, wanted: &str| {
        list.as_array().into_iter().flatten().any(|item| item == "*" || *item == wanted)
    };
    let plural = format!("{}s", object.kind.to_lowercase());
    let is_for_kind =
        |rule: &Value| has(&rule["apiGroups"], object.group()) && has(&rule["resources"], &plural);
    let place = webhook.pointer("/namespaceSelector/matchLabels/kubernetes.io~1metadata.name");
    let is_for_it = place.is_none_or(|place| place.as_str() == object.namespace.as_deref());
    is_for_it && webhook["rules"].as_array().into_iter().flatten().any(is_for_kind)
}

/// The report of a BasicDeployment that its controller has changed its child back again and again.
pub fn told(node: &Node) -> Option<Condition> {
    let is_parent = (node.identity.group(), node.identity.kind.as_str()) == (keys::GROUP, "BasicDeployment");
    let said = condition(&node.object, "Ready").filter(|_| is_parent)?;
    (said.status == "False" && said.reason == REASON).then_some(said)
}
