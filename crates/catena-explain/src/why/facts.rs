//! The input of a diagnosis: the chain of an object, and its surroundings.

use catena_cluster::{Gap, Identity, protection::ProtectedKinds};
use jiff::Timestamp;
use serde_json::Value;

use super::{Cause, Controllers, NOT_RUNNING, Verdict};
use crate::Node;

/// Everything that a diagnosis is based on.
pub struct Facts<'c> {
    /// The object that is asked about.
    pub asked: &'c Node,
    /// The top of the chain that it belongs to.
    pub top: &'c Node,
    /// The surroundings of the chain.
    pub surroundings: &'c Surroundings,
    /// The current time, by the clock of the API server.
    pub now: Timestamp,
}

impl Facts<'_> {
    /// The Event that a kubelet pulls an image of a pod.
    pub fn pull_of(&self, pod: &Node) -> Option<&Warning> {
        self.surroundings.pulling.iter().find(|pull| pull.about == pod.identity.uid)
    }

    /// Whether a controller is running.
    pub fn verdict(&self, controller: &str) -> Verdict {
        self.surroundings.controllers.verdict(controller, self.now)
    }

    /// The cause of an object whose controller is not running, if it is not. Since when is unknown: the object may have waited
    /// for something else before.
    pub fn not_running(&self, object: &Identity, controller: &str) -> Option<Cause> {
        let Verdict::Down(down) = self.verdict(controller) else { return None };
        let all = &self.surroundings.controllers;
        let deployed = all.of(controller).find(|seen| seen.pods.is_some());
        let case = match deployed {
            Some(seen) if seen.pods == Some((0, 0)) => "scaled to 0",
            Some(_) => "not running",
            None if all.unseen.is_some() => "not seen",
            None => "not installed",
        };
        let (place, name) = deployed.map_or(("", ""), |seen| (&seen.namespace, &seen.name));
        let names =
            [("{controller}", controller), ("{down}", &down), ("{place}", place), ("{deployment}", name)];
        Some(Cause::with(object, NOT_RUNNING).in_case(case, &names))
    }
}

/// The surroundings of a chain.
#[derive(Default)]
pub struct Surroundings {
    /// The time at which they were read, by the clock of the API server.
    pub now: Timestamp,
    /// The controllers of Catena.
    pub controllers: Controllers,
    /// The namespace, if it is being deleted.
    pub namespace: Option<Node>,
    /// Objects beside the chain.
    pub related: Related,
    /// Warnings about objects of the namespace, the newest last.
    pub warnings: Vec<Warning>,
    /// The Event about an image that is being pulled, for the first pod that starts.
    pub pulling: Vec<Warning>,
    /// The remark about the owner of the asked object, if it is missing.
    pub lost_owner: Option<String>,
    /// The target of the asked command, if it is missing.
    pub missing_target: Option<Identity>,
    /// Whether the kind of the asked object is declared as one of commands on its definition.
    pub is_declared_command: bool,
    /// The kinds that have an entry in backup-controller's settings, if these can be read.
    pub protected: Option<ProtectedKinds>,
    /// Settings of our controllers that are not in force.
    pub refused_settings: Vec<RefusedSettings>,
    /// Unread parts.
    pub gaps: Vec<Gap>,
    /// Whether dependents of the asked object may be among the unread parts.
    pub hides_dependents: bool,
    /// Whether dependents of any object of the chain may be.
    pub is_incomplete: bool,
}

/// An Event, mostly of type Warning.
#[derive(Clone, Debug, Default)]
pub struct Warning {
    /// The uid of the object that it is about.
    pub about: String,
    /// Its reporter.
    pub by: String,
    /// One word.
    pub reason: String,
    /// For people.
    pub message: String,
    /// The number of times that it was seen; zero if unknown.
    pub count: i32,
    /// The time when it was first seen.
    pub since: Option<Timestamp>,
    /// The time when it was last seen.
    pub at: Option<Timestamp>,
}

/// Objects beside a chain.
#[derive(Default)]
pub struct Related {
    /// Those that exist.
    pub found: Vec<Node>,
    /// Those that are named and do not exist.
    pub missing: Vec<Identity>,
    /// The nodes of the cluster, if a pod has found none.
    pub nodes: Vec<Node>,
    /// The volumes of the cluster, if a claim waits for one that is made by hand.
    pub volumes: Vec<Node>,
    /// Contents that a deleted namespace or definition waits for.
    pub contents: Vec<Node>,
    /// Autoscalers and webhooks, if somebody else changes an object of the chain.
    pub writers: Vec<Node>,
}

impl Related {
    /// An object that exists.
    pub fn find(&self, wanted: &Identity) -> Option<&Node> {
        self.found.iter().flat_map(Node::all).find(|node| node.identity.is_named_by(wanted))
    }

    /// Whether an object is known not to exist.
    pub fn is_missing(&self, wanted: &Identity) -> bool {
        self.missing.iter().any(|missing| missing.is_named_by(wanted))
    }
}

/// Settings that are not in force.
pub struct RefusedSettings {
    /// The controller.
    pub controller: String,
    /// Their ConfigMap, with the report and the words of the controller.
    pub cause: Cause,
    /// The settings themselves.
    pub text: String,
}

impl RefusedSettings {
    /// Whether they have this template.
    pub fn brings(&self, template: &str) -> bool {
        let settings = serde_saphyr::from_str::<Value>(&self.text);
        settings.map_or_else(|_| self.text.contains(template), |all| all["templates"].get(template).is_some())
    }
}

/// A cause, with the objects between it and the one that was asked about: that one first.
#[derive(Clone)]
pub struct Finding<'n> {
    /// The root cause.
    pub cause: Cause,
    /// The asked object first.
    pub path: Vec<&'n Node>,
}

/// Where the cause of an object's state may lie.
#[derive(Default)]
pub struct Step<'n> {
    /// The ways to other objects, the most probable first.
    pub ways: Vec<Vec<&'n Node>>,
    /// Whether mere progress at their ends is no news.
    pub only_obstacles: bool,
    /// The cause if no way leads to one.
    pub own: Option<Cause>,
}

impl<'n> Step<'n> {
    /// The cause lies with the object itself, or with what it names.
    pub fn own(cause: Cause) -> Self {
        Self { own: Some(cause), ..Self::default() }
    }

    /// The cause may lie with the next objects.
    pub fn to(next: impl IntoIterator<Item = &'n Node>, own: Option<Cause>) -> Self {
        Self { ways: next.into_iter().map(|next| vec![next]).collect(), own, ..Self::default() }
    }
}
