//! The faults of one run as plain data, so that a run can be printed and replayed.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// The faults of one controller during a story.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the controller.
    pub controller: String,
    /// The faults, in any order; each occurs once.
    pub faults: Vec<Fault>,
}

impl Plan {
    /// Whether a new process hears of the past, event by event: it can create a pod of that past again before it hears
    /// that it was deleted, and deletes it then.
    #[must_use]
    pub fn shows_the_past(&self) -> bool {
        let is_past =
            |fault: &Fault| matches!(fault, Fault::Write { how: WriteFault::TimeTravel { .. }, .. });
        self.faults.iter().any(is_past)
    }
}

/// One fault and its request. Numbers count from 1, for each controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fault {
    /// At a write. Those of Leases and Events do not count.
    Write {
        /// Number of the write.
        number: usize,
        /// The fault.
        how: WriteFault,
    },
    /// At a page of a list.
    List {
        /// Number of the page, of all lists.
        number: usize,
        /// The fault.
        how: ListFault,
    },
    /// In a watch.
    Watch {
        /// The watched resource, such as `pods`.
        resource: String,
        /// Number of the event among all events of this resource.
        event: usize,
        /// The fault.
        how: WatchFault,
    },
}

/// The time of a fault, relative to the commit of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Commit {
    /// The API server never receives the write.
    Before,
    /// The write has taken effect.
    After,
}

/// The time of a kill, relative to a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Moment {
    /// Before the API server receives the write.
    Unsent,
    /// After the write took effect, before its answer arrives.
    Unanswered,
    /// After the answer arrived, before any other request.
    Answered,
}

/// The end of a leader whose replica takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ending {
    /// SIGTERM, as in a rollout: it gives the Lease back.
    Terminated,
    /// SIGKILL: the Lease has to expire.
    Killed,
    /// SIGSTOP, until its replica has written.
    Stopped,
    /// None of its requests is passed on until its replica has written.
    CutOff,
}

/// A fault of a write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WriteFault {
    /// The process is killed and started again.
    Crash(Moment),
    /// The process is the leader of two replicas, and ends in the middle of the write.
    HandOver(Ending),
    /// The process is killed after the write, and for a while the new one sees the past.
    TimeTravel {
        /// Age of the shown past, in writes.
        back: usize,
        /// Time for which events are withheld from its watches, in milliseconds.
        millis: u64,
    },
    /// The write is answered with an error.
    Refuse {
        /// The HTTP status.
        code: u16,
        /// Whether it took effect all the same.
        commit: Commit,
    },
    /// The connection closes without an answer.
    Drop(Commit),
    /// The write takes effect and is answered with something that is not JSON.
    Garble,
    /// The write waits before it is passed on.
    Delay {
        /// Duration in milliseconds.
        millis: u64,
    },
    /// From this write on, nothing is passed on or answered, including watches.
    BlackHole {
        /// Duration in milliseconds.
        millis: u64,
    },
    /// From this write on, answers come at 1 kB/s.
    Slow {
        /// Duration in milliseconds.
        millis: u64,
    },
}

/// A fault of a page of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ListFault {
    /// It is answered with an error of this HTTP status.
    Refuse(u16),
    /// It stops after the first KiB, and the connection stays open.
    Stall,
    /// The connection closes halfway.
    Cut,
    /// It is not JSON.
    Garble,
}

/// A fault of a watch at one of its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WatchFault {
    /// The watch ends before the event.
    Close,
    /// Instead of the event comes the error 410, and the watch ends.
    Expire,
    /// The event and all after it are late: the view is stale.
    Freeze {
        /// Delay in milliseconds.
        millis: u64,
    },
    /// The event comes twice.
    Repeat,
    /// The event waits for the next one of the same object and is then left out, as a new list would leave it out: its
    /// state is never observed.
    Hold {
        /// Maximum delay in milliseconds.
        millis: u64,
    },
}

impl Plan {
    /// Reads plans as they are printed.
    pub fn parse_all(text: &str) -> Result<Vec<Self>> {
        serde_json::from_str(text).with_context(|| format!("these are no plans: {text}"))
    }

    /// Prints the plans of one story, so that they can be read again.
    #[must_use]
    pub fn print(plans: &[Self]) -> String {
        serde_json::to_string(plans).unwrap_or_default()
    }
}

impl Fault {
    /// Whether it needs a second replica.
    #[must_use]
    pub fn is_hand_over(&self) -> bool {
        matches!(self, Self::Write { how: WriteFault::HandOver(_), .. })
    }

    /// The kind of fault, for tables.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Write { how, .. } => how.name(),
            Self::List { how, .. } => how.name(),
            Self::Watch { how, .. } => how.name().into(),
        }
    }
}

impl WriteFault {
    fn name(&self) -> String {
        match self {
            Self::Crash(Moment::Unsent) => "crash before a write".into(),
            Self::Crash(Moment::Unanswered) => "crash after a write, before its answer".into(),
            Self::Crash(Moment::Answered) => "crash after the answer of a write".into(),
            Self::HandOver(ending) => format!("leader {} at a write", ending.name()),
            Self::TimeTravel { .. } => "crash, then a stale view".into(),
            Self::Refuse { code, commit } => format!("write answered {code}, {}", commit.name()),
            Self::Drop(commit) => format!("write not answered, {}", commit.name()),
            Self::Garble => "write answered with broken JSON".into(),
            Self::Delay { .. } => "write delayed".into(),
            Self::BlackHole { .. } => "black hole".into(),
            Self::Slow { .. } => "1 kB/s".into(),
        }
    }
}

impl Ending {
    fn name(self) -> &'static str {
        match self {
            Self::Terminated => "terminated",
            Self::Killed => "killed",
            Self::Stopped => "stopped",
            Self::CutOff => "cut off",
        }
    }
}

impl Commit {
    fn name(self) -> &'static str {
        match self {
            Self::Before => "no effect",
            Self::After => "took effect",
        }
    }
}

impl ListFault {
    fn name(&self) -> String {
        match self {
            Self::Refuse(code) => format!("list answered {code}"),
            Self::Stall => "list stops after 1 KiB".into(),
            Self::Cut => "list cut halfway".into(),
            Self::Garble => "list with broken JSON".into(),
        }
    }
}

impl WatchFault {
    fn name(&self) -> &'static str {
        match self {
            Self::Close => "watch closed",
            Self::Expire => "watch answered 410",
            Self::Freeze { .. } => "watch frozen",
            Self::Repeat => "event repeated",
            Self::Hold { .. } => "state unobserved",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_read_as_they_are_printed() {
        let plan = Plan {
            controller: "command-binder".into(),
            faults: vec![
                Fault::Write { number: 3, how: WriteFault::Crash(Moment::Unanswered) },
                Fault::Write { number: 4, how: WriteFault::Refuse { code: 503, commit: Commit::After } },
                Fault::List { number: 1, how: ListFault::Stall },
                Fault::Watch { resource: "pods".into(), event: 2, how: WatchFault::Hold { millis: 9 } },
            ],
        };
        let plans = vec![plan];
        let text = Plan::print(&plans);
        assert_eq!(Plan::parse_all(&text).unwrap(), plans, "{text}");
    }
}
