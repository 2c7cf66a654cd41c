//! The promises of a queue, whatever happens in whatever order.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use catena_api::command::SUCCEEDED;
use command_kinds::CommandKind;
use proptest::{
    bool::weighted,
    collection::vec,
    prelude::{ProptestConfig, proptest},
};

use super::*;
use crate::{
    command::order,
    line::{concerned, is_open},
};

/// Longest time in which all that can end has ended.
const SETTLING_TIME: Duration = Duration::from_secs(150);

/// Seconds from its creation after which a command expires, if it does.
const EXPIRES: u32 = 60;

/// One whose commands supersede none, and one whose commands supersede others, unless the shop is blocked.
static KINDS: LazyLock<[Arc<CommandKind>; 2]> = LazyLock::new(|| {
    let blocked = json!({"when": "target.spec.blocked", "reason": "Blocked", "message": "it is blocked"});
    [kind("restarts", &json!({})), kind("rollbacks", &json!({"supersedes": true, "wait": [blocked]}))]
});

/// Commands are known by their places in the lists.
struct World {
    now: Timestamp,
    /// What differs in the stored commands.
    stored: Vec<Value>,
    /// The stored commands.
    live: Vec<Arc<Command>>,
    /// What the process sees of them.
    cache: Vec<Arc<Command>>,
    /// Those that are recorded on the target.
    recorded: Vec<usize>,
    has_run: BTreeSet<usize>,
    has_ended: BTreeSet<usize>,
    is_ready: bool,
    is_blocked: bool,
    /// Whether the API server refuses the patches of those that supersede others, and of which it has refused the last one.
    are_refused: bool,
    refused: BTreeSet<usize>,
    /// What the process remembers of runs and of looks at the target.
    known_to_have_run: BTreeSet<usize>,
    woken: BTreeSet<usize>,
    timers: BTreeMap<usize, Timestamp>,
}

impl World {
    fn new(commands: &[(bool, u32, bool, bool)]) -> Self {
        let object = |&(_, second, expires, is_bound): &(bool, u32, bool, bool)| {
            let mut object = json!({
                "metadata": {"creationTimestamp": format!("2026-01-01T11:59:5{second}Z")},
                "spec": {"deadline": if expires { EXPIRES } else { 1_000_000 }},
            });
            if !is_bound {
                object["metadata"]["ownerReferences"] = json!([]);
            }
            object
        };
        let stored: Vec<_> = commands.iter().map(object).collect();
        let of_kind = |(at, object): (usize, &Value)| {
            command(&KINDS[usize::from(commands[at].0)], &at.to_string(), 0, object)
        };
        let live: Vec<_> = stored.iter().enumerate().map(of_kind).collect();
        Self {
            now: NOW.parse().unwrap(),
            cache: live.clone(),
            recorded: Vec::new(),
            has_run: BTreeSet::new(),
            has_ended: BTreeSet::new(),
            is_ready: false,
            is_blocked: false,
            are_refused: false,
            refused: BTreeSet::new(),
            known_to_have_run: BTreeSet::new(),
            woken: (0..live.len()).collect(),
            timers: BTreeMap::new(),
            live,
            stored,
        }
    }

    fn happens(&mut self, event: u8, at: usize) {
        match event {
            0..=5 => self.pass(at),
            6..=9 => self.deliver(at),
            10 => self.bind(at),
            11 => self.change(at, |stored| stored["status"] = Value::Null),
            12 => self.change(at, |stored| {
                stored["metadata"]["deletionTimestamp"] = json!(NOW);
                stored["metadata"]["finalizers"] = json!(["a.dev/hold"]);
            }),
            13 => self.change_target(|world| world.is_ready = true),
            14 => self.change_target(|world| world.recorded.clear()),
            15 => self.change_target(|world| world.is_blocked = !world.is_blocked),
            16 => self.time_passes(self.now + Duration::from_secs(20)),
            17 => self.are_refused = !self.are_refused,
            _ => self.restart(),
        }
    }

    fn bind(&mut self, at: usize) {
        self.change(at, |stored| drop(stored["metadata"].as_object_mut().unwrap().remove("ownerReferences")));
    }

    fn change(&mut self, at: usize, change: impl FnOnce(&mut Value)) {
        change(&mut self.stored[at]);
        self.live[at] = command(&self.live[at].row.kind, &at.to_string(), 0, &self.stored[at]);
    }

    fn change_target(&mut self, change: impl FnOnce(&mut Self)) {
        change(self);
        self.wake(None);
    }

    fn time_passes(&mut self, until: Timestamp) {
        self.now = self.now.max(until);
        let due = self.timers.extract_if(.., |_, due| *due <= self.now);
        self.woken.extend(due.map(|(at, _)| at));
    }

    fn restart(&mut self) {
        self.cache.clone_from(&self.live);
        self.known_to_have_run.clear();
        self.refused.clear();
        self.timers.clear();
        self.woken = (0..self.live.len()).collect();
    }

    fn deliver(&mut self, at: usize) {
        if !Arc::ptr_eq(&self.cache[at], &self.live[at]) {
            self.cache[at] = self.live[at].clone();
            self.woken.insert(at);
        }
    }

    fn line(&self) -> Vec<Arc<Command>> {
        let bound = self.cache.iter().filter(|command| command.row.target_id().is_some());
        let mut line: Vec<_> = bound.cloned().collect();
        line.sort_by(|one, other| order(one, other));
        line
    }

    fn wake(&mut self, by: Option<&Command>) {
        let line = self.line();
        self.woken.extend(concerned(&line, by, self.now).map(|command| place(command)));
    }

    fn look(&self) -> Look {
        let recorded: Vec<_> = self.recorded.iter().map(|at| &self.live[*at]).collect();
        shop(&recorded, &json!({"spec": {"blocked": self.is_blocked}, "status": {"ready": self.is_ready}}))
    }

    fn pass(&mut self, at: usize) {
        self.woken.remove(&at);
        self.timers.remove(&at);
        let own = self.cache[at].clone();
        let may_look = is_open(&own) && own.row.target_id().is_some();
        let line = if may_look { self.line() } else { Vec::new() };
        let mut seen = Observed {
            now: self.now,
            with_status: line.iter().map(|command| command.kind_id.clone()).collect(),
            was_proven: self.known_to_have_run.contains(&at),
            line,
            refused: self.refused.iter().map(|at| at.to_string().into()).collect(),
            ..observed(&own, &[], Look::None)
        };
        if may_look && seen.needs_target() {
            seen.target = self.look();
            let running = seen.running().map(|command| place(command));
            let new: Vec<_> = running.filter(|other| self.known_to_have_run.insert(*other)).collect();
            self.woken.extend(new);
        }
        if seen.concerns_others() {
            self.wake(Some(&own));
        }
        let mut action = decide(&seen);
        if let Action::Run(_) = action {
            seen.is_shown_as(self.live[at].clone());
            action = decide(&seen);
        }
        match action {
            Action::Run(_) if self.are_refused && own.row.run.supersedes => {
                self.timers.insert(at, self.now + Duration::from_secs(12));
                if self.refused.insert(at) {
                    self.wake(Some(&own));
                }
            }
            Action::Run(_) => self.run(at),
            Action::Report(status) => self.report(at, &seen.command, &status),
            Action::Wait(time) => drop(self.timers.insert(at, self.now + time)),
            Action::Settle => {}
        }
    }

    fn run(&mut self, at: usize) {
        let own = &self.live[at];
        let is_known = self.recorded.contains(&at) || self.known_to_have_run.contains(&at);
        assert!(is_open(own) && !own.row.has_started() && !is_known, "{at} ran twice");
        for other in self.running() {
            let is_known = self.recorded.contains(&other) || self.cache[other].row.has_started();
            let is_superseded = own.row.run.supersedes && order(&self.live[other], own).is_lt();
            assert!(!is_known || is_superseded, "{at} ran beside {other}");
        }
        let has_taken_its_place = |newer: &Arc<Command>| {
            let has_run = newer.row.has_started() && newer.row.has_ended();
            has_run && newer.row.run.supersedes && order(newer, own).is_gt()
        };
        assert!(!self.line().iter().any(has_taken_its_place), "{at} ran after a newer one had ended it");
        self.refused.remove(&at);
        self.has_run.insert(at);
        self.known_to_have_run.insert(at);
        self.has_ended.remove(&at);
        self.woken.insert(at);
        self.change_target(|world| {
            world.recorded.push(at);
            world.is_ready = false;
        });
    }

    /// Those that ran, as a record says, and have not ended since.
    fn running(&self) -> Vec<usize> {
        let is_recorded = |at: &usize| self.recorded.contains(at) || self.live[*at].row.has_started();
        let is_running = |at: &usize| is_open(&self.live[*at]) && !self.has_ended.contains(at);
        (0..self.live.len()).filter(|at| is_running(at) && is_recorded(at)).collect()
    }

    fn report(&mut self, at: usize, seen: &Arc<Command>, status: &CommandStatus) {
        if !Arc::ptr_eq(seen, &self.live[at]) {
            // A conflict.
            self.timers.insert(at, self.now + Duration::from_secs(1));
            return;
        }
        assert!(!self.live[at].row.has_ended(), "the end of {at} is changed");
        let is_newer = |other: &usize| order(&self.live[at], &self.live[*other]).is_lt();
        let is_superseded =
            || self.has_run.iter().any(|other| self.live[*other].row.run.supersedes && is_newer(other));
        let told = Conditions::find(&status.conditions, SUCCEEDED).unwrap();
        let is_true = match (&*told.status, &*told.reason) {
            ("True", _) => self.has_run.contains(&at),
            ("False", "Superseded") => is_superseded(),
            ("False", "DeadlineExceeded") => self.stored[at]["spec"]["deadline"] == EXPIRES,
            (outcome, _) => outcome == "Unknown",
        };
        assert!(is_true, "{at}: {told:?}");
        if told.status != "Unknown" {
            self.has_ended.insert(at);
        }
        self.change(at, |stored| stored["status"] = json!(status));
    }

    /// Everything that is to happen happens.
    fn settle(&mut self) {
        let end = self.now + SETTLING_TIME;
        while self.now < end {
            (0..self.live.len()).for_each(|at| self.deliver(at));
            if let Some(at) = self.woken.pop_first() {
                self.pass(at);
            } else if !self.is_ready {
                // Whoever made it something else: one that ended and lost its report waits for it, too.
                self.change_target(|world| world.is_ready = true);
            } else if self.open().is_empty() {
                return;
            } else if let Some(next) = self.timers.values().min() {
                self.time_passes(*next);
            } else {
                return;
            }
        }
    }

    /// Those that have neither ended nor been cancelled, the oldest first.
    fn open(&self) -> Vec<&Arc<Command>> {
        let mut open: Vec<_> = self.live.iter().filter(|command| is_open(command)).collect();
        open.sort_by(|one, other| order(one, other));
        open
    }
}

fn place(command: &Command) -> usize {
    command.metadata.name.as_ref().unwrap().parse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_command_runs_at_most_once_and_alone_and_all_come_to_an_end(
        commands in vec((weighted(0.3), 0..3u32, weighted(0.2), weighted(0.5)), 2..6),
        events in vec((0..19u8, 0..6usize), 0..40),
    ) {
        let mut world = World::new(&commands);
        for (event, at) in events {
            world.happens(event, at % commands.len());
        }
        for at in 0..commands.len() {
            world.bind(at);
        }
        world.settle();
        if let Some(first) = world.open().first() {
            let is_held = (world.is_blocked || world.are_refused) && first.row.run.supersedes;
            assert!(is_held, "{:?} and others are stuck", first.metadata.name);
        }
        world.are_refused = false;
        world.change_target(|world| world.is_blocked = false);
        world.settle();
        let stuck: Vec<_> = world.open().iter().map(|command| place(command)).collect();
        assert!(stuck.is_empty(), "{stuck:?} are stuck");
    }
}
