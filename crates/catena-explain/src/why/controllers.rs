//! Whether the controllers of Catena are running, judged by their Leases and Deployments.

use std::collections::{BTreeMap, HashSet};

use catena_api::keys;
use catena_cluster::Identity;
use catena_terminal::age;
use jiff::{SignedDuration, Timestamp};

/// The reason when no controller is running.
pub const NOT_RUNNING: &str = "ControllerNotRunning";

/// The controllers of Catena, as far as they can be seen.
#[derive(Default)]
pub struct Controllers {
    pub seen: Vec<Installation>,
    /// Why the list may be incomplete.
    pub unseen: Option<String>,
}

/// A controller as its Lease and its Deployment show it.
#[derive(Default)]
pub struct Installation {
    /// The name of its program.
    pub controller: String,
    /// The name of its Deployment and its Lease.
    pub name: String,
    /// Their namespace.
    pub namespace: String,
    /// Its Lease.
    pub lease: Option<Lease>,
    /// The numbers of its available and of its desired pods.
    pub pods: Option<(i64, i64)>,
    /// The first of its pods that has a trouble; of any pod, if its Lease is not renewed.
    pub trouble: Option<PodTrouble>,
    /// Why its Deployment cannot create pods.
    pub refusal: Option<String>,
    /// The labels of its pods.
    pub labels: BTreeMap<String, String>,
    /// Whether its Deployment has pods of an earlier state beside new ones.
    pub is_updating: bool,
}

/// A Lease for leader election.
#[derive(Default)]
pub struct Lease {
    /// Its holder; empty when it was released.
    pub holder: String,
    /// The time of its last renewal, by the clock of this machine.
    pub renewed: Option<Timestamp>,
    /// How long a renewal lasts.
    pub lasts: SignedDuration,
    /// Whether its holder is one of the controller's pods; `None` if that could not be found out.
    pub is_held_by_pod: Option<bool>,
}

/// A pod of a controller that does not do its work.
pub struct PodTrouble {
    /// Its namespace and name, its state, and the last words of its container or the last error in its log.
    pub told: String,
    /// Whether its container is running.
    pub runs: bool,
    /// Whether it does not proceed by itself.
    pub is_stuck: bool,
}

/// Whether a controller is running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Runs,
    /// It is not: in a sentence, to be read after "because" or alone.
    Down(String),
    /// That is unknown, for this reason.
    Unknown(String),
}

impl Controllers {
    /// Those of these that are installations. Anybody can label a Deployment, but only an installation has a Lease, unless the
    /// chart has none.
    pub fn new(mut seen: Vec<Installation>, unseen: Option<String>) -> Self {
        let leased = seen.iter().filter(|seen| seen.lease.is_some()).map(|seen| seen.controller.clone());
        let leased: HashSet<String> = leased.collect();
        seen.retain(|seen| seen.lease.is_some() || !leased.contains(&seen.controller));
        Self { seen, unseen }
    }

    /// The installations of a controller.
    pub fn of(&self, controller: &str) -> impl Iterator<Item = &Installation> {
        self.seen.iter().filter(move |seen| seen.controller == controller)
    }

    /// Whether a controller is running. Without its Lease, available pods prove it only if it is known to have none.
    pub fn verdict(&self, controller: &str, now: Timestamp) -> Verdict {
        let mut up = self.of(controller).filter(|seen| seen.down(now).is_none()).peekable();
        let down = self.of(controller).find_map(|seen| seen.down(now)).filter(|_| up.peek().is_none());
        match (down, &self.unseen) {
            (_, unseen) if up.any(|seen| seen.lease.is_some() || unseen.is_none()) => Verdict::Runs,
            (Some(down), _) => Verdict::Down(down),
            (None, Some(why)) => Verdict::Unknown(why.clone()),
            (None, None) => Verdict::Down(format!("no {controller} is running: it is not installed")),
        }
    }
}

impl Lease {
    /// Whether somebody holds it.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        let is_recent = |renewed| now.duration_since(renewed) <= self.lasts;
        self.renewed.is_some_and(is_recent) && !self.holder.is_empty()
    }
}

impl Installation {
    /// Why it is not running, if it is not.
    fn down(&self, now: Timestamp) -> Option<String> {
        let (controller, why) = (&self.controller, self.silent(now)?);
        // Pods that were evicted are left when it is scaled to 0.
        let trouble = self.trouble.as_ref().filter(|_| !matches!(self.pods, Some((_, 0))));
        let Some(PodTrouble { told, runs, .. }) = trouble else {
            return Some(format!("no {controller} is running: {why}"));
        };
        Some(match self.pods {
            _ if !runs => format!("{controller} does not start: {told}"),
            // That no pod is available says no more.
            Some((0, _)) => format!("{controller} is running, but does not work: {told}"),
            _ => format!("{controller} is running, but does not work: {told}; {why}"),
        })
    }

    /// Whether its pods are of interest: it does not do its work, or has new pods that do not start.
    pub fn is_troubled(&self, now: Timestamp) -> bool {
        self.is_updating || self.silent(now).is_some()
    }

    fn silent(&self, now: Timestamp) -> Option<String> {
        let place = format!("{}/{}", self.namespace, self.name);
        let refusal = self.refusal.iter().map(|said| format!(", and none can be created: {said}"));
        let refusal: String = refusal.collect();
        match self.pods {
            Some((0, 0)) => return Some(format!("its Deployment {place} is scaled to 0")),
            Some((0, _)) => return Some(format!("no pod of its Deployment {place} is available{refusal}")),
            _ => {}
        }
        let lease = self.lease.as_ref()?;
        let Lease { holder, renewed, is_held_by_pod, .. } = lease;
        let ago = renewed.map(|renewed| age(now, renewed));
        match ago {
            None => Some(format!("nobody has acquired its Lease {place} yet")),
            Some(_) if lease.is_valid(now) => (*is_held_by_pod == Some(false))
                .then(|| format!("its Lease {place} is held by {holder}, which is none of its pods")),
            Some(ago) if holder.is_empty() => Some(format!("its Lease {place} was released {ago} ago")),
            Some(ago) => Some(format!("its Lease {place} was last renewed {ago} ago, by {holder}")),
        }
    }
}

/// The controller of a kind, if it is one of ours.
pub fn controller_of(identity: &Identity) -> Option<&'static str> {
    match (identity.group(), identity.kind.as_str()) {
        (keys::GROUP, "BasicReplicaSet") => Some("basic-replicaset-controller"),
        (keys::GROUP, kind) if kind.starts_with("BasicDeployment") => Some("basic-deployment-controller"),
        _ => None,
    }
}
