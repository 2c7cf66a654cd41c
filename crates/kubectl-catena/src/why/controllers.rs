//! Whether the controllers of Catena are running, judged by their Leases and Deployments.

use catena_api::keys;
use catena_cluster::Identity;
use jiff::{SignedDuration, Timestamp};

use super::Cause;
use crate::screen::age;

/// The label with the name of a program, or of the chart if that has another name.
pub const NAME: &str = "app.kubernetes.io/name";
/// The reason when no controller is running.
pub const NOT_RUNNING: &str = "ControllerNotRunning";

/// The controllers of Catena, as far as they can be seen.
#[derive(Debug, Default)]
pub struct Controllers {
    pub seen: Vec<Installation>,
    /// Why the list may be incomplete.
    pub unseen: Option<String>,
}

/// A controller as its Lease and its Deployment show it.
#[derive(Clone, Debug, Default)]
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
    /// The labels of its pods.
    pub selector: String,
    /// Whether its Deployment has pods of an earlier state beside new ones.
    pub is_updating: bool,
}

/// A Lease for leader election.
#[derive(Clone, Debug, Default)]
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

/// A controller that does not do its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Down {
    /// The reason.
    pub why: String,
    /// The state of its pod, if it has one.
    pub pod: Option<PodTrouble>,
}

/// A pod of a controller that does not do its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodTrouble {
    /// Namespace and name.
    pub pod: String,
    /// The state, to be read after its name.
    pub state: String,
    /// The last words of its container, or the last error in its log.
    pub last_words: Option<String>,
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
    /// It is not.
    Down(Down),
    /// That is unknown, for this reason.
    Unknown(String),
}

impl Down {
    /// The fact, to be read after "because" or alone.
    pub fn told(&self, controller: &str) -> String {
        let Self { why, pod } = self;
        match pod {
            None => format!("no {controller} is running: {why}"),
            Some(pod) => {
                let works = if pod.runs { "is running, but does not work" } else { "does not start" };
                format!("{controller} {works}: {}", pod.told())
            }
        }
    }
}

impl PodTrouble {
    /// The pod with its state and its last words.
    pub fn told(&self) -> String {
        let Self { pod, state, last_words, .. } = self;
        let words = last_words.as_ref().map_or_else(String::new, |words| format!(", and says: {words}"));
        format!("its pod {pod} {state}{words}")
    }
}

impl Controllers {
    /// The installations of a controller. Anybody can label a Deployment, but only an installation has a Lease, unless the
    /// chart has none.
    pub fn installed<'c>(&'c self, controller: &'c str) -> impl Iterator<Item = &'c Installation> {
        let all = self.seen.iter().filter(move |seen| seen.controller == controller);
        let has_lease = all.clone().any(|seen| seen.lease.is_some());
        all.filter(move |seen| seen.lease.is_some() || !has_lease)
    }

    /// Whether a controller is running.
    pub fn verdict(&self, controller: &str, now: Timestamp) -> Verdict {
        let downs: Vec<Option<Down>> = self.installed(controller).map(|seen| seen.down(now)).collect();
        if downs.iter().any(Option::is_none) && !downs.is_empty() {
            return Verdict::Runs;
        }
        match (downs.into_iter().flatten().next(), &self.unseen) {
            (Some(why), _) => Verdict::Down(why),
            (None, Some(why)) => Verdict::Unknown(why.clone()),
            (None, None) => Verdict::Down(Down { why: "it is not installed".to_owned(), pod: None }),
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
    fn down(&self, now: Timestamp) -> Option<Down> {
        let why = self.silent(now)?;
        let pod = self.trouble.clone().filter(|_| !matches!(self.pods, Some((_, 0))));
        Some(Down { why, pod })
    }

    /// The value of the label with the name of its pods.
    pub fn pod_name(&self) -> Option<&str> {
        self.selector.split(',').find_map(|pair| pair.strip_prefix(NAME)?.strip_prefix('='))
    }

    /// Whether its pods are of interest: it does not do its work, or has new pods that do not start.
    pub fn is_troubled(&self, now: Timestamp) -> bool {
        self.is_updating || self.silent(now).is_some()
    }

    fn silent(&self, now: Timestamp) -> Option<String> {
        let Self { name, namespace, .. } = self;
        if let Some((0, wanted)) = self.pods {
            return Some(match wanted {
                0 => format!("its Deployment {namespace}/{name} is scaled to 0"),
                wanted => {
                    format!("none of the {wanted} pods of its Deployment {namespace}/{name} is available")
                }
            });
        }
        let lease = self.lease.as_ref()?;
        let Some(renewed) = lease.renewed else {
            // Created by the chart and not acquired yet: only the pods can tell more.
            return self
                .pods
                .is_none()
                .then(|| format!("nobody has acquired its Lease {namespace}/{name} yet"));
        };
        if lease.is_valid(now) {
            let Lease { holder, is_held_by_pod, .. } = lease;
            return (*is_held_by_pod == Some(false)).then(|| {
                format!("its Lease {namespace}/{name} is held by {holder}, which is none of its pods")
            });
        }
        let ago = age(now, renewed);
        Some(if lease.holder.is_empty() {
            format!("its Lease {namespace}/{name} was released {ago} ago")
        } else {
            format!("its Lease {namespace}/{name} was last renewed {ago} ago, by {}", lease.holder)
        })
    }
}

/// The controller of a kind, if it is one of ours.
pub fn controller_of(identity: &Identity) -> Option<&'static str> {
    if identity.group() != keys::GROUP {
        return None;
    }
    match identity.kind.as_str() {
        "BasicReplicaSet" => Some("basic-replicaset-controller"),
        kind if kind.starts_with("BasicDeployment") => Some("basic-deployment-controller"),
        _ => None,
    }
}

/// The responsible controller is not running. Since when is unknown: the object may have waited for something else
/// before.
pub fn not_running(object: &Identity, controller: &str, down: &Down) -> Cause {
    Cause::with(object, NOT_RUNNING).meaning(format!("is not reconciled, because {}", down.told(controller)))
}
