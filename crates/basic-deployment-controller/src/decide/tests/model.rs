//! In any order of events, each command runs at most once, after all older ones, and alone.
//!
//! A pass reads everything from the world and keeps nothing, so that a crash can come between any two of them.

use std::collections::{BTreeMap, BTreeSet};

use catena_api::command::SUCCEEDED;
use proptest::prelude::*;

use super::{queue::prepare, *};
use crate::child::Marks;

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
    /// Open commands that do not run: their status was wiped, or their child or the command that overtook them is gone.
    idle: BTreeSet<String>,
    /// Commands without any trace, which may run once more.
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
            idle: BTreeSet::new(),
            lost: BTreeSet::new(),
        }
    }

    fn child(&self) -> Option<Arc<Child>> {
        self.child.clone().map(child)
    }

    fn observe(&self) -> Observed {
        let child = self.child();
        let own: Vec<_> = child.clone().into_iter().collect();
        let pin = Pin::of(&self.rendering, &own, &self.revisions);
        let hash = pin.as_ref().map_or(&self.rendering, |pin| &pin.hash);
        let marks = kept_marks(hash, pin.as_ref(), child.as_deref());
        let desired = Desired::new(&self.deployment, rendered(hash), replica_sets()).marked(marks);
        let mut observed = observed(child.map_or(Found::Nothing, Found::Ours));
        observed.deployment = Arc::new(self.deployment.clone());
        observed.rendered = Ok(rendered(&self.rendering));
        observed.desired = Ok(desired);
        observed.pin = pin;
        observed.revisions = self.revisions.clone();
        observed.commands = Some(self.commands.clone());
        observed.now = Timestamp::from_second(self.now).unwrap();
        observed.since_progress = Duration::from_secs(if self.is_stuck { 60 } else { 0 });
        prepare(&mut observed);
        observed
    }

    /// Makes one pass, and returns whether it wrote anything.
    fn pass(&mut self) -> bool {
        let observed = self.observe();
        match decide(&observed) {
            Action::Record { rendered, number } => self.revisions.push(revision(number, &rendered.hash)),
            Action::Renumber { revision, number, rejects } => {
                // The command that it named has been overtaken by one that may be gone.
                let replaced = revision.rejects.command.clone();
                self.idle.extend(replaced.filter(|replaced| rejects.command.as_ref() != Some(replaced)));
                self.revisions.retain(|other| other.uid != revision.uid);
                self.revisions.push(Arc::new(Revision { number, rejects, ..(*revision).clone() }));
            }
            Action::Create { desired, .. } => {
                self.apply(&desired);
                if let Some(token) = desired.token {
                    self.set_token(token);
                }
            }
            Action::Apply { desired, .. } => self.apply(&desired),
            Action::Restart { command, token, .. } => {
                self.carry_out(&command.uid, token.is_none());
                let child = self.child.as_mut().unwrap();
                child["metadata"]["annotations"][keys::LAST_COMMAND] = command.uid.clone().into();
                if let Some(token) = token {
                    self.set_token(token);
                }
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

    /// A token only rises, so that no replicas are replaced for a restart that is older than they are.
    fn set_token(&mut self, token: String) {
        let child = self.child.as_mut().unwrap();
        let before = child["spec"]["restartedAt"].as_str().map(|before| before.parse::<Timestamp>().unwrap());
        assert!(before < Some(token.parse().unwrap()), "{before:?} is followed by {token}");
        child["spec"]["restartedAt"] = token.into();
        outdate(child);
    }

    fn apply(&mut self, desired: &Desired) {
        let before = self.child();
        let annotations = &desired.object["metadata"]["annotations"];
        let stored = self.revisions.iter().any(|revision| revision.hash == desired.hash);
        assert!(stored, "{} is not stored", desired.hash);
        let proof = annotations[keys::LAST_COMMAND].as_str().map(str::to_owned);
        let bore = before.as_ref().and_then(|child| child.marks().last_command);
        match proof {
            // A child that is re-created on the rendering of a rollback carries the rollback's proof again.
            Some(proof) if before.is_none() && self.carried_out.contains(&proof) => {}
            Some(proof) if Some(&proof) != bore.as_ref() => self.carry_out(&proof, false),
            // The server removes fields that an apply leaves out.
            proof => assert_eq!(proof, bore, "a proof is lost"),
        }
        let mut child =
            self.child.take().unwrap_or_else(|| json!({"metadata": {"generation": 0, "annotations": {}}}));
        for key in [keys::LAST_COMMAND, keys::ROLLED_BACK_BY, keys::REJECTED_HASH, keys::HASH] {
            let on_child = &mut child["metadata"]["annotations"];
            match &annotations[key] {
                Value::Null => drop(on_child.as_object_mut().and_then(|on_child| on_child.remove(key))),
                value => on_child[key] = value.clone(),
            }
        }
        if before.is_none_or(|before| before.hash() != desired.hash) {
            outdate(&mut child);
        }
        self.child = Some(child);
    }

    fn carry_out(&mut self, uid: &str, replaces_nothing: bool) {
        self.idle.remove(uid);
        let may = replaces_nothing || self.lost.remove(uid);
        assert!(may || !self.carried_out.iter().any(|done| done == uid), "{uid} runs twice");
        let command = self.commands.iter().find(|command| command.uid == uid).expect("it is not cancelled");
        assert!(command.asks.is_ok() && !command.has_ended());
        let open = |other: &&Arc<Command>| !other.has_ended() && other.uid != uid;
        let runs =
            |other: &&Arc<Command>| self.carried_out.contains(&other.uid) && !self.idle.contains(&other.uid);
        // A rollback takes the turn of stuck commands.
        let has_begun = |other: &Arc<Command>| other.status.start_time.is_some();
        let overtakes =
            self.is_stuck && !is_restart(command) && self.commands.iter().filter(open).any(has_begun);
        let mut running = self.commands.iter().filter(open).filter(runs);
        if let Some(other) = running.find(|_| !overtakes) {
            panic!("{uid} runs while {} does", other.uid);
        }
        let waits = |other: &&Arc<Command>| {
            let is_late = other.asks.as_ref().ok().and_then(|asks| asks.deadline).is_some_and(|deadline| {
                self.now - other.created.as_second() >= i64::try_from(deadline.as_secs()).unwrap()
            });
            let is_ours = other.asks.as_ref().is_ok_and(|asks| asks.target.name == "web");
            is_ours && !is_late && !(overtakes && (is_restart(other) || has_begun(other)))
        };
        let first = self.commands.iter().filter(|other| !other.has_ended()).find(waits);
        assert_eq!(first.map(|first| first.uid.as_str()), Some(uid), "an older one waits");
        self.carried_out.push(uid.to_owned());
    }

    fn tell(&mut self, told: &Command, status: &CommandStatus) {
        let condition = conditions::find(&status.conditions, SUCCEEDED).unwrap();
        if condition.status != "Unknown" {
            let before = self.outcomes.insert(told.uid.clone(), condition.reason.clone());
            assert_eq!(before, None, "{} ends twice", told.uid);
            // The child carries the mark of the latest command.
            let is_carrier = self.child().is_some_and(|child| child.bears(&told.uid));
            assert!(
                !(is_restart(told) && is_carrier && condition.reason == "Superseded"),
                "{} runs",
                told.uid
            );
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
        self.commands.sort_by(|a, b| (a.created, &a.uid).cmp(&(b.created, &b.uid)));
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
                    let cancelled = self.commands.remove(place % self.commands.len());
                    if !is_restart(&cancelled) {
                        self.idle_but_for_the_carrier();
                    }
                }
            }
            Event::Render(number) => self.rendering = format!("r{number}"),
            Event::Pause(paused) => self.deployment.spec.paused = *paused,
            Event::Seconds(seconds) => self.now += seconds,
            Event::Stuck(is_stuck) => self.is_stuck = *is_stuck,
            Event::ChildGoes => self.lose_child(),
            Event::Wipe(place) => self.wipe(*place),
        }
    }

    fn lose_child(&mut self) {
        self.child = None;
        self.idle_but_for_the_carrier();
        // The next child is created with the token of restarts. A rollback that no revision names yet leaves no trace.
        let is_proven = |command: &Command| {
            let named = |revision: &Arc<Revision>| revision.rejects.command.as_ref() == Some(&command.uid);
            is_restart(command) || self.revisions.iter().any(named)
        };
        let lost = self.commands.iter().filter(|command| !is_proven(command));
        let lost: Vec<_> = lost.map(|command| command.uid.clone()).collect();
        self.idle.extend(lost.iter().cloned());
        self.lost.extend(lost);
    }

    /// Open restarts stop running, except the one that the child carries.
    fn idle_but_for_the_carrier(&mut self) {
        let child = self.child();
        let is_idle = |restart: &Command| {
            is_restart(restart) && !child.as_ref().is_some_and(|child| child.bears(&restart.uid))
        };
        let idle = self.commands.iter().filter(|command| is_idle(command));
        self.idle.extend(idle.map(|command| command.uid.clone()));
    }

    fn wipe(&mut self, place: usize) {
        let count = self.commands.len().max(1);
        let token = self.child.as_ref().and_then(|child| child["spec"]["restartedAt"].as_str());
        let token = token.map(|token| token.parse::<Timestamp>().unwrap());
        if let Some(command) = self.commands.get_mut(place % count).filter(|command| is_restart(command)) {
            // A child that was created after its failure does not have its token.
            if command.has_failed() && token < Some(command.created) {
                self.lost.insert(command.uid.clone());
            }
            Arc::make_mut(command).status = CommandStatus::default();
            self.idle.insert(command.uid.clone());
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
        2 => (0_i64..20).prop_map(Event::Seconds),
    ]
}

#[test]
fn a_command_does_not_wait_for_a_rollback_whose_overtaker_was_deleted() {
    use Event::{Cancel, Malformed, Pass, Render, Restart, Rollback, Stuck};
    let mut world = World::new();
    let begun = [Render(1), Pass, Render(0), Pass, Pass, Malformed, Malformed, Malformed];
    let overtaken =
        [Rollback { to: 0 }, Stuck(true), Pass, Pass, Pass, Malformed, Malformed, Rollback { to: 3 }];
    begun.iter().chain(&overtaken).for_each(|event| world.happens(event));
    world.happens(&Pass);
    let [first, second] = &*world.carried_out.clone() else { panic!("{:?}", world.carried_out) };
    world.happens(&Restart { deadline: None });
    let place = world.commands.iter().position(|command| command.uid == *second).unwrap();
    world.happens(&Cancel(place));
    world.settle();
    assert_eq!(world.outcomes[first], "Superseded");
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
            let is_ours = command.asks.as_ref().is_ok_and(|asks| asks.target.name == "web");
            let is_malformed = command.asks.is_err();
            prop_assert_eq!(command.has_ended(), is_ours || is_malformed, "{} {:?}", &command.uid, &command.status);
        }
        // At rest, the child is on the rendering of spec and template, or a rollback holds it.
        let child = world.child().unwrap();
        let Marks { rejected, .. } = child.marks();
        if child.hash() == world.rendering {
            prop_assert_ne!(rejected.as_ref(), Some(&world.rendering));
        } else {
            prop_assert_eq!(rejected.as_ref(), Some(&world.rendering));
        }
        let live = world.revisions.last().unwrap();
        prop_assert_eq!(&live.hash, child.hash(), "the highest number is the live one");
        prop_assert!(!world.pass(), "at rest nothing is written");
        prop_assert!(world.revisions.len() <= 11);
    }
}
