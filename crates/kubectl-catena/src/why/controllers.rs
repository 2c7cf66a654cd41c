//! Whether the controllers of Catena are running, judged by their Leases and Deployments.

use jiff::{SignedDuration, Timestamp};

use crate::age::age;

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
}

/// A Lease for leader election.
#[derive(Clone, Debug, Default)]
pub struct Lease {
    /// Its holder; empty when it was released.
    pub holder: String,
    /// The time of its last renewal.
    pub renewed: Option<Timestamp>,
    /// How long a renewal lasts.
    pub lasts: SignedDuration,
}

/// Whether a controller is running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Runs,
    /// It is not, for this reason.
    Down(String),
    /// That is unknown, for this reason.
    Unknown(String),
}

impl Controllers {
    /// Whether a controller is running.
    pub fn verdict(&self, controller: &str, now: Timestamp) -> Verdict {
        let found = self.seen.iter().filter(|seen| seen.controller == controller);
        let downs: Vec<Option<String>> = found.map(|seen| seen.down(now)).collect();
        if downs.iter().any(Option::is_none) && !downs.is_empty() {
            return Verdict::Runs;
        }
        match (downs.into_iter().flatten().next(), &self.unseen) {
            (Some(why), _) => Verdict::Down(why),
            (None, Some(why)) => Verdict::Unknown(why.clone()),
            (None, None) => Verdict::Down("it is not installed".to_owned()),
        }
    }
}

impl Installation {
    /// Why it is not running, if it is not.
    fn down(&self, now: Timestamp) -> Option<String> {
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
        if renewed + lease.lasts >= now && !lease.holder.is_empty() {
            return None;
        }
        let ago = age(now, renewed);
        Some(if lease.holder.is_empty() {
            format!("its Lease {namespace}/{name} was released {ago} ago")
        } else {
            format!("its Lease {namespace}/{name} was last renewed {ago} ago, by {}", lease.holder)
        })
    }
}
