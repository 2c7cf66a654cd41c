//! In any order of events, each command runs at most once, after all older ones, and alone.
//!
//! A pass reads everything from the world and keeps nothing, so that a crash can come between any two of them.

use std::collections::{BTreeMap, BTreeSet};

use catena_api::command::{RecentCommands, SUCCEEDED};
use proptest::prelude::*;

use super::{queue::confirm, *};

#[derive(Clone, Debug)]
enum Event {
    /// One pass of the controller.
    Pass,
    /// The child's own controller has brought it up to date.
    ChildCatchesUp,
    Restart {
        deadline: Option<i64>,
    },
    Rollback {
        to: i64,
    },
    Malformed,
    Misdirected,
    /// Somebody deletes the command with this index.
    Cancel(usize),
    /// The spec or the template gives another text.
    Render(u8),
    Pause(bool),
    Seconds(i64),
    /// The child's replicas stop or resume becoming ready.
    Stuck(bool),
    /// Somebody deletes the child.
    ChildGoes,
    /// Somebody wipes the status of the command with this index.
    Wipe(usize),
    /// `kubectl replace` takes away what no file has: annotations and the restart token.
    Replace,
}

struct World {
    deployment: BasicDeployment,
    rendering: String,
    child: Option<Value>,
    revisions: Vec<Arc<Revision>>,
    commands: Vec<Arc<Command>>,
    now: i64,
    made: usize,
    /// The commands that were carried out, in order.
    carried_out: Vec<String>,
    outcomes: BTreeMap<String, String>,
    is_stuck: bool,
    /// Commands that have lost both proofs, and may run once more.
    lost: BTreeSet<String>,
}

impl World {
    fn new() -> Self {
        Self {
            deployment: deployment(),
            rendering: "r0".into(),
            child: None,
            revisions: Vec::new(),
            commands: Vec::new(),
            now: 1_000,
            made: 0,
            carried_out: Vec::new(),
            outcomes: BTreeMap::new(),
            is_stuck: false,
            lost: BTreeSet::new(),
        }
    }

    fn child(&self) -> Option<Arc<Child>> {
        self.child.clone().map(child)
    }

    fn pin(&self) -> Option<Pin> {
        Pin::on(&self.deployment).filter(|pin| pin.rejects == self.rendering)
    }

    fn recent(&self) -> RecentCommands {
        RecentCommands::on(&self.deployment.metadata)
    }

    fn observe(&self) -> Observed {
        let (child, pin) = (self.child(), self.pin());
        let hash = pin.as_ref().map_or(&self.rendering, |pin| &pin.hash);
        let mut observed = observed(child.map_or(Found::Nothing, Found::Ours));
        observed.desired = Ok(Desired::new(&self.deployment, rendered(hash), replica_sets()));
        observed.deployment = Arc::new(self.deployment.clone());
        observed.rendered = Ok(rendered(&self.rendering));
        observed.pin = pin;
        observed.recent = self.recent();
        observed.revisions = self.revisions.clone();
        observed.commands = Some(self.commands.clone());
        observed.now = Timestamp::from_second(self.now).unwrap();
        observed.since_progress = Duration::from_secs(if self.is_stuck { 60 } else { 0 });
        confirm(&mut observed);
        observed
    }

    /// Makes one pass, and returns whether it wrote anything.
    fn pass(&mut self) -> bool {
        let observed = self.observe();
        match decide(&observed) {
            Action::Record { rendered, number } => self.revisions.push(revision(number, &rendered.hash)),
            Action::Renumber { revision, number } => {
                self.revisions.retain(|other| other.uid != revision.uid);
                self.revisions.push(Arc::new(Revision { number, ..(*revision).clone() }));
            }
            Action::CarryOut { command, patch } => {
                self.carry_out(&command, &observed);
                self.patch(&patch);
            }
            Action::Unpin => self.patch(&json!({"metadata": {"annotations": {keys::PINNED_REVISION: null}}})),
            Action::Create { desired, .. } | Action::Apply { desired, .. } => self.apply(&desired),
            Action::Restart { token, .. } => {
                self.hand(&token);
                outdate(self.child.as_mut().unwrap());
            }
            Action::Tell(news) => {
                for (command, status) in news {
                    self.tell(&command, &status);
                }
            }
            Action::Prune(revisions) => {
                self.revisions.retain(|revision| !revisions.iter().any(|old| old.uid == revision.uid));
            }
            Action::WriteStatus(status) => self.deployment.status = Some(*status),
            Action::Wait(_) | Action::Settle => return false,
            action => panic!("{action:?}"),
        }
        self.revisions.sort_by_key(|revision| revision.number);
        true
    }

    /// The server merges a patch of the deployment, whose restart token only increases.
    fn patch(&mut self, patch: &Value) {
        let annotations = self.deployment.metadata.annotations.get_or_insert_default();
        for (key, value) in patch["metadata"]["annotations"].as_object().unwrap() {
            match value.as_str() {
                Some(value) => drop(annotations.insert(key.clone(), value.to_owned())),
                None => drop(annotations.remove(key)),
            }
        }
        if let Some(token) = patch["spec"]["restartedAt"].as_str() {
            let time = |token: &str| token.parse::<Timestamp>().unwrap();
            let before = self.deployment.spec.restarted_at.replace(token.to_owned());
            assert!(before.as_deref().map(time) < Some(time(token)), "{before:?} is followed by {token}");
        }
    }

    /// A token is never taken back, so that no replicas are replaced for a restart that is older than they are.
    fn hand(&mut self, token: &str) {
        let child = self.child.as_mut().unwrap();
        let before = child["spec"]["restartedAt"].as_str().map(|before| before.parse::<Timestamp>().unwrap());
        assert!(before <= Some(token.parse().unwrap()), "{before:?} is followed by {token}");
        child["spec"]["restartedAt"] = token.into();
    }

    fn apply(&mut self, desired: &Desired) {
        let before = self.child();
        let stored = self.revisions.iter().any(|revision| revision.hash == desired.hash);
        assert!(stored, "{} is not stored", desired.hash);
        let made = || json!({"metadata": {"generation": 0, "annotations": {}}});
        self.child.get_or_insert_with(made)["metadata"]["annotations"][keys::HASH] =
            desired.hash.clone().into();
        let body = desired.body(3, before.as_deref());
        let token = body["spec"]["restartedAt"].as_str().map(str::to_owned);
        if let Some(token) = &token {
            self.hand(token);
        }
        let is_same =
            |before: &Child| before.hash() == desired.hash && before.restarted_at() == token.as_deref();
        if !before.as_deref().is_some_and(is_same) {
            outdate(self.child.as_mut().unwrap());
        }
    }

    /// Whether a command takes effect: it has neither ended nor been replaced.
    fn is_open(&self, command: &Command, has_run: bool) -> bool {
        let has_rolled_back = |later: &Arc<Command>| {
            !is_restart(later) && is_ours(later) && self.has_run(later) && later.order() > command.order()
        };
        let is_late = command.is_expired(Timestamp::from_second(self.now).unwrap());
        let on_child = || self.child.as_ref()?["spec"]["restartedAt"].as_str().map(str::to_owned);
        let token = self.deployment.spec.restarted_at.clone().or_else(on_child);
        let is_gone = match token.map(|token| token.parse::<Timestamp>().unwrap()) {
            _ if !is_restart(command) => self.pin().is_none(),
            token => token < Some(command.created),
        };
        let is_replaced = has_run && is_gone;
        let is_forgotten = !has_run && self.recent().may_have_forgotten(&command.recent());
        let is_out = command.has_ended() || is_late || is_replaced || is_forgotten;
        is_ours(command) && !is_out && !self.commands.iter().any(has_rolled_back)
    }

    fn has_run(&self, command: &Command) -> bool {
        self.recent().has(&command.uid) || command.status.start_time.is_some()
    }

    fn carry_out(&mut self, command: &Command, observed: &Observed) {
        let uid = &command.uid;
        let is_first = !self.carried_out.contains(uid) || self.lost.remove(uid);
        assert!(is_first && !self.has_run(command), "{uid} runs twice");
        assert!(self.is_open(command, false) && !observed.deployment.spec.paused, "{uid} is not open");
        let running = |other: &&Arc<Command>| self.has_run(other) && self.is_open(other, true);
        let newest = self.commands.iter().rev().find(running).cloned();
        let waits = |other: &Command| newest.as_ref().is_some_and(|newest| newest.order() > other.order());
        for other in self.commands.iter().filter(|other| other.uid != *uid) {
            let (is_older, has_run) = (other.order() < command.order(), self.has_run(other));
            if !self.is_open(other, has_run) || (!is_restart(other) && !has_run && waits(other)) {
                continue;
            }
            if has_run {
                assert!(!is_restart(command) && is_older, "{uid} runs while {} does", other.uid);
            } else {
                let goes_first = is_older && is_restart(other) == is_restart(command)
                    || is_restart(command) && !is_restart(other);
                assert!(!goes_first, "{uid} runs before {}", other.uid);
            }
        }
        self.carried_out.push(uid.clone());
    }

    fn tell(&mut self, told: &Command, status: &CommandStatus) {
        let condition = Conditions::find(&status.conditions, SUCCEEDED).unwrap();
        if condition.status != "Unknown" {
            let before = self.outcomes.insert(told.uid.clone(), condition.reason.clone());
            assert_eq!(before, None, "{} ends twice", told.uid);
        }
        if condition.status == "True" {
            let child = self.child().expect("it serves");
            let token = child.restarted_at().and_then(|token| token.parse::<Timestamp>().ok());
            assert!(self.carried_out.contains(&told.uid), "{} has not run", told.uid);
            assert!(!is_restart(told) || token >= Some(told.created), "{} replaced nothing", told.uid);
        }
        for command in self.commands.iter_mut().filter(|command| command.uid == told.uid) {
            Arc::make_mut(command).status = status.clone();
        }
    }

    fn create(&mut self, kind: CommandKind, changes: Value) {
        self.made += 1;
        // Uids are not in the order of creation, and several commands are created within a second.
        let uid = format!("{}-{}", (self.made * 7) % 10, self.made);
        self.commands.push(command(kind, &uid, self.now, changes));
        self.commands.sort_by(|a, b| a.order().cmp(&b.order()));
    }

    fn happens(&mut self, event: &Event) {
        match event {
            Event::Pass => drop(self.pass()),
            Event::ChildCatchesUp => self.catch_up(),
            Event::Restart { deadline } => {
                self.create(CommandKind::Restart, json!({"spec": {"activeDeadlineSeconds": deadline}}));
            }
            Event::Rollback { to } => self.create(CommandKind::Rollback, json!({"spec": {"toRevision": to}})),
            Event::Malformed => self.create(CommandKind::Restart, json!({"spec": {"targetRef": 1}})),
            Event::Misdirected => {
                self.create(CommandKind::Rollback, json!({"spec": {"targetRef": {"name": "api"}}}));
            }
            Event::Cancel(place) => {
                if !self.commands.is_empty() {
                    self.commands.remove(place % self.commands.len());
                }
            }
            Event::Render(number) => self.rendering = format!("r{number}"),
            Event::Pause(paused) => self.deployment.spec.paused = *paused,
            Event::Seconds(seconds) => self.now += seconds,
            Event::Stuck(is_stuck) => self.is_stuck = *is_stuck,
            Event::ChildGoes => self.child = None,
            Event::Wipe(place) => self.wipe(*place),
            Event::Replace => {
                let unproven = self.commands.iter().filter(|command| command.status.start_time.is_none());
                self.lost.extend(unproven.map(|command| command.uid.clone()));
                self.deployment.metadata.annotations = None;
                self.deployment.spec.restarted_at = None;
            }
        }
    }

    fn wipe(&mut self, place: usize) {
        let (count, recent) = (self.commands.len().max(1), self.recent());
        if let Some(command) = self.commands.get_mut(place % count) {
            if !recent.has(&command.uid) {
                self.lost.insert(command.uid.clone());
            }
            Arc::make_mut(command).status = CommandStatus::default();
            self.outcomes.remove(&command.uid);
        }
    }

    fn catch_up(&mut self) {
        if self.is_stuck {
            return;
        }
        if let Some(child) = &mut self.child {
            let generation = child["metadata"]["generation"].clone();
            child["status"] = json!({"active": 3, "updated": 3, "observedGeneration": generation});
        }
    }

    /// Lets everything come to an end.
    fn settle(&mut self) {
        self.deployment.spec.paused = false;
        self.is_stuck = false;
        for _ in 0..400 {
            let wrote = self.pass();
            self.catch_up();
            if !wrote && !self.pass() {
                return;
            }
        }
        panic!("it never comes to rest: {:?}", decide(&self.observe()));
    }
}

fn is_ours(command: &Command) -> bool {
    command.asks.as_ref().is_ok_and(|asks| asks.target.name == "web")
}

fn is_restart(command: &Command) -> bool {
    command.kind == CommandKind::Restart
}

/// Gives the child another spec, which its status has not observed.
fn outdate(child: &mut Value) {
    child["metadata"]["generation"] = (child["metadata"]["generation"].as_i64().unwrap() + 1).into();
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => Just(Event::Pass),
        4 => Just(Event::ChildCatchesUp),
        2 => prop::option::of(1_i64..30).prop_map(|deadline| Event::Restart { deadline }),
        3 => (0_i64..6).prop_map(|to| Event::Rollback { to }),
        1 => Just(Event::Malformed),
        1 => Just(Event::Misdirected),
        1 => (0_usize..8).prop_map(Event::Cancel),
        2 => (0_u8..4).prop_map(Event::Render),
        1 => any::<bool>().prop_map(Event::Pause),
        1 => any::<bool>().prop_map(Event::Stuck),
        1 => Just(Event::ChildGoes),
        1 => (0_usize..8).prop_map(Event::Wipe),
        1 => Just(Event::Replace),
        2 => (0_i64..20).prop_map(Event::Seconds),
    ]
}

#[test]
fn a_rollback_ends_also_if_the_one_that_overtook_it_was_deleted() {
    use Event::{Cancel, Pass, Render, Rollback, Seconds, Stuck};
    let mut world = World::new();
    let on_three = [Pass, Pass, Render(1), Pass, Pass, Render(2), Pass, Pass];
    let overtaken = [Stuck(true), Rollback { to: 1 }, Pass, Pass, Seconds(1), Rollback { to: 2 }, Pass];
    on_three.iter().chain(&overtaken).for_each(|event| world.happens(event));
    assert_eq!(world.carried_out.len(), 2, "{:?}", world.carried_out);
    world.happens(&Cancel(1));
    world.settle();
    assert!(world.commands[0].has_ended());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_command_runs_at_most_once_in_order_and_alone(events in prop::collection::vec(event(), 1..60)) {
        let mut world = World::new();
        for event in &events {
            world.happens(event);
        }
        world.settle();
        for command in &world.commands {
            let ends = is_ours(command) || command.asks.is_err();
            prop_assert_eq!(command.has_ended(), ends, "{} {:?}", &command.uid, &command.status);
        }
        // At rest, the child is on the rendering of spec and template, or a rollback holds it.
        let (child, pin) = (world.child().unwrap(), world.pin());
        prop_assert_eq!(child.hash(), pin.as_ref().map_or(&world.rendering, |pin| &pin.hash));
        let is_recorded = |key| world.deployment.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(key));
        prop_assert_eq!(is_recorded(keys::PINNED_REVISION), pin.is_some());
        let token = world.deployment.spec.restarted_at.as_deref();
        prop_assert!(token.is_none() || token == child.restarted_at());
        let live = world.revisions.last().unwrap();
        prop_assert_eq!(&live.hash, child.hash(), "the highest number is the live one");
        prop_assert!(!world.pass(), "at rest nothing is written");
        prop_assert!(world.revisions.len() <= 11);
    }
}
