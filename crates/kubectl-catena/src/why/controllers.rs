//! Whether the controllers of Catena run, from their Leases and Deployments.

use jiff::{SignedDuration, Timestamp};

use crate::age::age;

/// What is known of the controllers of Catena.
#[derive(Debug, Default)]
pub struct Controllers {
    /// Those that were seen.
    pub seen: Vec<Seen>,
    /// Why others may be there, too.
    pub unseen: Option<String>,
}

/// A controller as its Lease and its Deployment show it.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Which one.
    pub controller: String,
    /// What its Deployment and its Lease are called.
    pub name: String,
    /// Where.
    pub namespace: String,
    /// Its Lease: who holds it, when it was renewed, and how long that lasts.
    pub lease: Option<Lease>,
    /// How many of its pods are available, of those wanted.
    pub pods: Option<(i64, i64)>,
}

/// A Lease for leader election.
#[derive(Clone, Debug, Default)]
pub struct Lease {
    /// Who holds it; empty when it was given up.
    pub holder: String,
    /// When it was last renewed.
    pub renewed: Option<Timestamp>,
    /// How long a renewal lasts.
    pub lasts: SignedDuration,
}

/// Whether a controller runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Runs,
    /// It does not, for this reason.
    Down(String),
    /// That cannot be seen, for this reason.
    Unknown(String),
}

impl Controllers {
    /// Whether a controller runs.
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

impl Seen {
    /// Why it does not run, if it does not.
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
            // Made by the chart, not taken yet; only the pods can tell more.
            return self.pods.is_none().then(|| format!("nobody has taken its Lease {namespace}/{name} yet"));
        };
        if renewed + lease.lasts >= now && !lease.holder.is_empty() {
            return None;
        }
        let ago = age(now, renewed);
        Some(if lease.holder.is_empty() {
            format!("its Lease {namespace}/{name} was given up {ago} ago")
        } else {
            format!("its Lease {namespace}/{name} was last renewed {ago} ago, by {}", lease.holder)
        })
    }
}
