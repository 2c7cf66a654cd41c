//! The counts of a proxy, and the faults that are still to come.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tokio::{sync::oneshot, time::Instant};

use super::plan::{Ending, Fault, ListFault, Moment, WatchFault, WriteFault};

/// The requests so far, and the faults that are still to come.
pub(super) struct State {
    /// Faults that did not occur yet.
    pub ahead: Vec<Fault>,
    /// Writes that arrived.
    pub arrived: usize,
    /// Writes that the API server answered.
    pub writes: Vec<Answered>,
    /// Actions of its processes that no process may take.
    pub offences: Vec<String>,
    /// The time at which the last write arrived.
    pub last_write: Instant,
    /// The version of the world after each write.
    pub versions: Vec<String>,
    /// Pages of lists that arrived.
    pub lists: usize,
    /// Events so far, by resource.
    pub events: BTreeMap<String, usize>,
    /// Notified of a crash instead of the owner of the process.
    pub crash_of_a_test: Option<oneshot::Sender<()>>,
    /// The doors of processes that are about to end, or are cut off: their requests are not passed on.
    pub shut: BTreeSet<usize>,
    /// Number of processes whose end was planned.
    pub ends: usize,
    /// Until then, nothing is passed on.
    pub stalled_until: Instant,
    /// Until then, answers come at 1 kB/s.
    pub slow_until: Instant,
    /// The past that is shown to a new process.
    pub travel: Option<Travel>,
}

/// A write that was answered.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    /// The time of its arrival.
    pub at: Instant,
    /// The door of its process.
    pub door: usize,
    /// Method, path and code.
    pub write: String,
}

/// A stale view.
#[derive(Clone, Debug)]
pub(super) struct Travel {
    /// The version of lists.
    pub version: String,
    /// The end of the stale view.
    pub until: Instant,
}

/// The number of requests of each kind, from which a plan can choose.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Writes, without those of Leases and Events.
    pub writes: usize,
    /// Pages of lists.
    pub lists: usize,
    /// Events of each watched resource.
    pub events: BTreeMap<String, usize>,
}

impl State {
    pub(super) fn new(ahead: Vec<Fault>) -> Self {
        let now = Instant::now();
        Self {
            ahead,
            arrived: 0,
            writes: Vec::new(),
            offences: Vec::new(),
            last_write: now,
            versions: Vec::new(),
            lists: 0,
            events: BTreeMap::new(),
            crash_of_a_test: None,
            shut: BTreeSet::new(),
            ends: 0,
            stalled_until: now,
            slow_until: now,
            travel: None,
        }
    }

    pub(super) fn counts(&self) -> Counts {
        Counts { writes: self.arrived, lists: self.lists, events: self.events.clone() }
    }

    /// The writes of a replica between those of another one, if there were more changes of the writer than ends.
    pub(super) fn two_writers(&self) -> Option<String> {
        let turns: Vec<String> = self
            .writes
            .windows(2)
            .filter(|pair| pair[0].door != pair[1].door)
            .map(|pair| format!("{} of replica {}", pair[1].write, pair[1].door))
            .collect();
        (turns.len() > self.ends).then(|| {
            format!("two replicas wrote in turns, after {} planned ends: {}", self.ends, turns.join(", "))
        })
    }

    /// Counts a write, and returns its fault.
    pub(super) fn write(&mut self) -> Option<WriteFault> {
        self.arrived += 1;
        self.last_write = Instant::now();
        let arrived = self.arrived;
        let fault = self.take(|fault| match fault {
            Fault::Write { number, how } if *number == arrived => Some(how.clone()),
            _ => None,
        });
        match fault {
            Some(WriteFault::BlackHole { millis }) => self.stalled_until = after(millis),
            Some(WriteFault::Slow { millis }) => self.slow_until = after(millis),
            _ => {}
        }
        fault
    }

    /// Counts a page of a list, and returns its fault.
    pub(super) fn list(&mut self) -> Option<ListFault> {
        self.lists += 1;
        let lists = self.lists;
        self.take(|fault| match fault {
            Fault::List { number, how } if *number == lists => Some(how.clone()),
            _ => None,
        })
    }

    /// Counts an event, and returns the fault of its watch.
    pub(super) fn event(&mut self, of: &str) -> Option<WatchFault> {
        let count = self.events.entry(of.to_owned()).or_default();
        *count += 1;
        let count = *count;
        self.take(|fault| match fault {
            Fault::Watch { resource, event, how } if resource == of && *event == count => Some(how.clone()),
            _ => None,
        })
    }

    /// The process is to be killed, and its successor is shown the past.
    pub(super) fn travel(&mut self, back: usize, millis: u64) {
        let past = self.versions.iter().rev().nth(back);
        self.travel = past.map(|version| Travel { version: version.clone(), until: after(millis) });
    }

    fn take<T>(&mut self, which: impl Fn(&Fault) -> Option<T>) -> Option<T> {
        let (place, how) =
            self.ahead.iter().enumerate().find_map(|(place, fault)| Some((place, which(fault)?)))?;
        self.ahead.remove(place);
        Some(how)
    }
}

impl WriteFault {
    /// The moment at which the process is killed, if it is.
    pub(super) fn crash(&self) -> Option<Moment> {
        match self {
            Self::Crash(moment) => Some(*moment),
            Self::HandOver(Ending::Killed) => Some(Moment::Unanswered),
            Self::TimeTravel { .. } => Some(Moment::Answered),
            _ => None,
        }
    }
}

fn after(millis: u64) -> Instant {
    Instant::now() + Duration::from_millis(millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_befalls_the_request_of_its_number_once() {
        let crash = WriteFault::Crash(Moment::Unsent);
        let fault = Fault::Write { number: 2, how: crash.clone() };
        let mut state = State::new(vec![fault.clone()]);
        assert_eq!((state.list(), state.event("pods"), state.write()), (None, None, None));
        assert_eq!(state.ahead, [fault]);
        assert_eq!(state.write(), Some(crash));
        assert_eq!(state.write(), None);
        assert!(state.ahead.is_empty());
    }

    #[test]
    fn events_are_numbered_for_each_resource() {
        let how = WatchFault::Close;
        let fault = Fault::Watch { resource: "pods".into(), event: 2, how: how.clone() };
        let mut state = State::new(vec![fault]);
        assert_eq!([state.event("pods"), state.event("secrets"), state.event("secrets")], [None, None, None]);
        assert_eq!(state.event("pods"), Some(how));
    }

    #[test]
    fn writers_that_change_more_often_than_leaders_end_write_at_once() {
        let mut state = State::new(Vec::new());
        let write = |door| Answered { at: Instant::now(), door, write: "POST /pods".into() };
        state.writes = [0, 0, 1, 1].map(write).into();
        assert!(state.two_writers().is_some());
        state.ends = 1;
        assert_eq!(state.two_writers(), None);
        state.writes.push(write(0));
        assert!(state.two_writers().is_some_and(|offence| offence.contains("of replica 0")));
    }
}
