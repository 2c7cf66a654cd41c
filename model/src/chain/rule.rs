//! The rules that hold in every history of the chain.

use std::collections::{BTreeMap, BTreeSet};

use catena_api::{
    command::{RecentCommands, SUCCEEDED},
    keys::{BACKUP_FINALIZER, HASH, KEPT},
};
use clap::ValueEnum;
use operator_kit::report::Conditions;

use super::{
    content::{
        CHILDREN, COMMANDS, NAME, Object, Operation, Server, Stored, condition, desire, kind_of,
        kind_of_child, metadata, serves,
    },
    controllers::Controller,
    process::Process,
    revision,
    scope::Scope,
    settings::{DEADLINE, DECLARED, TRIES},
    write::{Purpose, Write},
};
use crate::server::object::{Key, Kind, Owner, Text};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub enum Rule {
    Once,
    Order,
    Alone,
    Waiting,
    Final,
    Seen,
    Own,
    Meant,
    Ready,
    Complete,
    Bound,
    Reaped,
    Proven,
    Budget,
    Rest,
}

impl Rule {
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Once => "a command takes effect at most once, and no restart is taken back",
            Self::Order => "no restart overtakes an older one",
            Self::Alone => "commands of one target run one at a time",
            Self::Waiting => "only a command that still waits is carried out",
            Self::Final => "the outcome of a command is final",
            Self::Seen => {
                "a rollback rejects the present rendering for the revision before the one that its author saw"
            }
            Self::Own => "no object of another owner is written, and none is adopted for a dead one",
            Self::Meant => "each write meets the object that it was decided for",
            Self::Ready => "ready is reported only of a child that serves the present spec",
            Self::Complete => {
                "success is reported only when all replicas are newer than the restart, or of the revision of the rollback"
            }
            Self::Bound => "a command is bound only to its living target",
            Self::Reaped => {
                "only a finished command is reaped, and none that is declared elsewhere or recorded as kept"
            }
            Self::Proven => "no protected object goes before its own backup is proven",
            Self::Budget => {
                "an exchange of children has no more replicas, and keeps no fewer serving, than its budget says"
            }
            Self::Rest => "the chain comes to rest in the desired state",
        }
    }
}

/// The facts about a history by which the next write is judged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ledger {
    /// The rules that were broken, as bits.
    broken: u16,
    /// The effects of commands: the uids of the command and its target.
    effects: BTreeSet<(Text, Text)>,
    /// The objects of backups, by their uid.
    backups: BTreeMap<Text, Text>,
    /// The revisions before those that the author of a rollback saw, by the uid of the rollback.
    seen: BTreeMap<Text, BTreeSet<Text>>,
    /// Objects with a proven backup.
    proven: BTreeSet<Text>,
    /// Objects that a person releases.
    pub released: BTreeSet<Text>,
    /// Objects that were created by a process after its end.
    pub left_behind: BTreeSet<Text>,
    /// The number of tries in vain to back up an object.
    pub tries: BTreeMap<Text, u8>,
    /// Names of commands that were reaped: the next one of the same name is kept.
    pub reaped: BTreeSet<Text>,
}

impl Ledger {
    pub fn breaks(&mut self, rule: Rule) {
        self.broken |= 1 << rule as u16;
    }

    pub fn has_broken(&self, rule: Rule) -> bool {
        self.broken & (1 << rule as u16) != 0
    }

    /// A backup succeeded or failed.
    pub fn ends(&mut self, backup: &Object, is_success: bool) {
        // A backup of somebody else proves nothing.
        let Some(of) = self.backups.get(&backup.meta.uid).cloned() else { return };
        if is_success {
            self.proven.insert(of);
        } else {
            *self.tries.entry(of).or_default() += 1;
        }
    }

    /// The author of a rollback has seen what was recorded until the end of the second in which he created it.
    pub fn sees(&mut self, server: &Server) {
        let is_new = |object: &&Stored| object.meta.created == server.clock;
        let rollbacks = server.objects().filter(|object| object.meta.key.kind == Kind::Rollback);
        for rollback in rollbacks.filter(is_new) {
            let targets = server.objects().filter(|object| object.meta.key.kind == Kind::Deployment);
            let previous = targets.filter_map(|target| revision::previous(server, target));
            self.seen.entry(rollback.meta.uid.clone()).or_default().extend(previous);
        }
    }

    /// An object is gone. `held` is its last state while a finalizer held it.
    pub fn loses(&mut self, held: &Object, server: &Server, scope: &Scope) {
        let uid = &held.meta.uid;
        let is_protected = held.meta.key.kind == Kind::Deployment && held.meta.is_held_by(BACKUP_FINALIZER);
        let is_given_up = scope.own.releases && self.tries_in_vain(uid, server) >= usize::from(TRIES);
        if is_protected && !is_given_up && !self.proven.contains(uid) && !self.released.contains(uid) {
            self.breaks(Rule::Proven);
        }
    }

    /// The number of backups of an object that failed, were refused, or took too long.
    fn tries_in_vain(&self, uid: &Text, server: &Server) -> usize {
        let is_overdue = |backup: &&Stored| {
            self.backups.get(&backup.meta.uid) == Some(uid)
                && backup.status.value().is_null()
                && server.clock - backup.meta.created >= DEADLINE
        };
        let overdue = server.objects().filter(is_overdue).count();
        overdue + self.tries.get(uid).copied().map_or(0, usize::from)
    }

    /// A step was decided.
    pub fn decides(&mut self, process: &Process, server: &Server, object: &Stored, writes: &[Write]) {
        for write in writes {
            if let Some(rule) = decided_against(write, process, server, object) {
                self.breaks(rule);
            }
        }
    }

    /// A write changed an object.
    pub fn changes(
        &mut self,
        controller: Controller,
        write: &Write,
        before: Option<&Stored>,
        after: &Stored,
    ) {
        let own = &write.whose.meta.uid;
        let Some(before) = before else {
            if write.purpose == Purpose::BackUp {
                self.backups.insert(after.meta.uid.clone(), own.clone());
            }
            return;
        };
        if write.meant.as_ref() != Some(&before.meta.uid) {
            self.breaks(Rule::Meant);
        }
        let is_ended = COMMANDS.contains(&before.meta.key.kind) && has_ended(before);
        if is_ended && condition(before, SUCCEEDED) != condition(after, SUCCEEDED) {
            self.breaks(Rule::Final);
        }
        let is_child = before.meta.key.kind == Kind::Revision || CHILDREN.contains(&before.meta.key.kind);
        let controlled_by = before.meta.controller();
        if controller == Controller::Deployments && is_child && controlled_by.is_some_and(|uid| uid != own) {
            self.breaks(Rule::Own);
        }
        let token = |object: &Stored| object.spec.value()["spec"]["restartedAt"].as_str().map(str::to_owned);
        if token(after) < token(before) {
            self.breaks(Rule::Once);
        }
        match &write.purpose {
            Purpose::Run(command) => {
                let effect = (command.clone(), before.meta.uid.clone());
                let (former_pin, pin) = (revision::pin(before), revision::pin(after));
                let has_effect = token(before) != token(after) || former_pin != pin;
                if has_effect && !self.effects.insert(effect) {
                    self.breaks(Rule::Once);
                }
                if let Some(pin) = pin.filter(|pin| former_pin.as_ref() != Some(pin)) {
                    let is_seen = self.seen.get(command).is_some_and(|seen| seen.contains(&*pin.hash));
                    if !is_seen || *pin.rejects != *revision::rendering(after) {
                        self.breaks(Rule::Seen);
                    }
                }
            }
            Purpose::Reap
                if !has_ended(before) || before.meta.labels.contains_key(DECLARED) || is_kept(before) =>
            {
                self.breaks(Rule::Reaped);
            }
            _ => {}
        }
    }
}

/// Whether a person was told that exactly this command is kept.
fn is_kept(command: &Stored) -> bool {
    command.meta.annotations.get(KEPT) == Some(&command.meta.uid)
}

/// The rule that a decided write breaks.
fn decided_against(write: &Write, process: &Process, server: &Server, object: &Stored) -> Option<Rule> {
    let living = |uid: &Text| {
        let mut all = server.objects();
        all.find(|found| found.meta.uid == *uid && !found.meta.is_deleting)
    };
    let (is_kept, rule) = match (&write.purpose, &write.operation) {
        (Purpose::Status, Operation::PatchStatus { status, .. }) => {
            let told = Object { status: status.clone(), ..Object::clone(object) };
            let is_true = || children(process, server, object).any(|child| is_ready(child, object));
            (condition(&told, Conditions::READY) != "True" || is_true(), Rule::Ready)
        }
        (Purpose::Tell, Operation::PatchStatus { key, status, .. }) => {
            let command = process.cache(key.kind).get(key)?;
            let told = Object { status: status.clone(), ..Object::clone(command) };
            let is_true = || command.meta.owners.iter().any(|target| is_complete(server, target, command));
            (condition(&told, SUCCEEDED) != "True" || is_true(), Rule::Complete)
        }
        (Purpose::Run(_), Operation::Patch { key, .. }) => {
            return carried_out_against(object, process, server, server.get(key)?);
        }
        (Purpose::Apply(..), Operation::Patch { key, .. }) => {
            let is_orphan = server.get(key).is_some_and(|child| child.meta.controller().is_none());
            (!is_orphan || living(&object.meta.uid).is_some(), Rule::Own)
        }
        (Purpose::Scale(_) | Purpose::Other, _) if CHILDREN.contains(&write.operation.key().kind) => {
            let serving = |write| serving_of_all(process, server, object, write);
            (serving(Some(write)) >= serving(None).min(budget(object).least), Rule::Budget)
        }
        (Purpose::Bind(target), _) => {
            let named = object.spec.value()["spec"]["targetRef"]["name"].as_str().unwrap_or_default();
            let is_target =
                |found: &Stored| found.meta.key.kind == Kind::Deployment && *found.meta.key.name == *named;
            (object.meta.owners.is_empty() && living(target).is_some_and(is_target), Rule::Bound)
        }
        _ => return None,
    };
    (!is_kept).then_some(rule)
}

/// The rule that is broken if a command is carried out on its target now.
fn carried_out_against(
    command: &Stored,
    process: &Process,
    server: &Server,
    target: &Stored,
) -> Option<Rule> {
    let ran = RecentCommands::on(&metadata(target));
    let is_of_target = |other: &Object| other.meta.owners.iter().any(|owner| owner.uid == target.meta.uid);
    let is_open = |other: &Object| {
        other.meta.uid != command.meta.uid
            && is_of_target(other)
            && !has_ended(other)
            && !other.meta.is_deleting
    };
    let has_run = |other: &Object| ran.has(&other.meta.uid) || has_started(other);
    // One that ends all older ones does not wait for them.
    let is_in_its_way = |other: &Object| command.meta.key.kind != Kind::Rollback || is_older(command, other);
    let mut others = server.objects().filter(|other| COMMANDS.contains(&other.meta.key.kind));
    if others.any(|other| is_open(other) && has_run(other) && is_in_its_way(other)) {
        return Some(Rule::Alone);
    }
    let mut restarts = process.cache(Kind::Restart).rows();
    let is_restart = command.meta.key.kind == Kind::Restart;
    if is_restart && restarts.any(|other| is_open(other) && !has_run(other) && is_older(other, command)) {
        return Some(Rule::Order);
    }
    let live = server.get(&command.meta.key).filter(|live| live.meta.uid == command.meta.uid);
    let waits = live.is_some_and(|live| !live.meta.is_deleting && !has_ended(live));
    (!waits).then_some(Rule::Waiting)
}

/// Whether a command comes before another one.
fn is_older(command: &Object, other: &Object) -> bool {
    let place = |command: &Object| (command.meta.created, command.meta.key.kind, command.meta.uid.clone());
    place(command) < place(other)
}

/// The children of a `BasicDeployment`, as its controller sees them in its cache, or reads them by name.
fn children<'o>(
    process: &'o Process,
    server: &'o Server,
    deployment: &Stored,
) -> impl Iterator<Item = &'o Stored> {
    let uid = deployment.meta.uid.clone();
    let live = server.objects().filter(|object| CHILDREN.contains(&object.meta.key.kind));
    let seen = CHILDREN.into_iter().flat_map(|kind| process.cache(kind).rows()).chain(live);
    seen.filter(move |child| {
        child.meta.controller() == Some(&uid) && child.meta.annotations.contains_key(HASH)
    })
}

/// The children of a `BasicDeployment` in the caches of its controller.
fn seen_children<'o>(process: &'o Process, deployment: &Object) -> impl Iterator<Item = &'o Stored> {
    let uid = deployment.meta.uid.clone();
    let seen = CHILDREN.into_iter().flat_map(|kind| process.cache(kind).rows());
    seen.filter(move |child| child.meta.controller() == Some(&uid))
}

/// Whether a child serves the spec of its `BasicDeployment`, or the revision of the rollback that holds that: counted
/// independently of the controller.
pub fn is_ready(child: &Object, deployment: &Stored) -> bool {
    let ((replicas, image), (wanted, wanted_image)) = (desire(child), desire(deployment));
    let is_wanted = match revision::holding_pin(deployment) {
        Some(pin) => child.meta.annotations.get(HASH).is_some_and(|hash| **hash == *pin.hash),
        None => image == wanted_image && child.meta.key.kind == kind_of_child(deployment),
    };
    serves(child) && replicas == wanted && is_wanted
}

/// The limits of an exchange, counted independently of the controller.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of replicas of all children.
    pub most: i64,
    /// Minimum number of serving ones.
    pub least: i64,
}

/// The limits of the exchanges of a `BasicDeployment`: a quarter of its few replicas is one more, or none less.
pub fn budget(deployment: &Object) -> Limits {
    let replicas = desire(deployment).0;
    if deployment.spec.value()["spec"]["maxSurge"] == 0 {
        return Limits { most: replicas, least: replicas - 1 };
    }
    Limits { most: replicas + replicas.signum(), least: replicas }
}

/// The desired replicas of all children of a `BasicDeployment` that count.
pub fn desired_of_all(server: &Server, uid: &Text, counts: impl Fn(&Stored) -> bool) -> i64 {
    let children = server.objects().filter(|object| CHILDREN.contains(&object.meta.key.kind));
    let own = children.filter(|child| child.meta.controller() == Some(uid) && !child.meta.is_deleting);
    own.filter(|child| counts(child)).map(|child| desire(child).0).sum()
}

/// The serving replicas of all children that a process sees, after a write to one of them: those that are reported, as far as
/// they are still desired. The wanted child is looked up by its name where the watch does not show it.
fn serving_of_all(process: &Process, server: &Server, deployment: &Stored, write: Option<&Write>) -> i64 {
    let wanted = Key { kind: wanted_kind(process, deployment), name: NAME.into() };
    let looked_up = server.get(&wanted).filter(|child| {
        let is_seen = seen_children(process, deployment).any(|seen| seen.meta.key == wanted);
        !is_seen && child.meta.controller() == Some(&deployment.meta.uid)
    });
    let own = seen_children(process, deployment).chain(looked_up).filter(|child| !child.meta.is_deleting);
    let serving = |child: &Stored| {
        let written = write.filter(|write| *write.operation.key() == child.meta.key);
        let desired = match written.map(|write| (&write.purpose, &write.operation)) {
            Some((Purpose::Scale(replicas), _)) => (*replicas).into(),
            Some((_, Operation::Delete { .. })) => 0,
            _ => desire(child).0,
        };
        child.status.value()["active"].as_i64().unwrap_or(0).min(desired)
    };
    own.map(serving).sum()
}

/// The kind of the wanted child, by the revision of the rollback that holds, or else by the spec.
fn wanted_kind(process: &Process, deployment: &Stored) -> Kind {
    let pinned = revision::holding_pin(deployment).and_then(|pin| {
        let is_it = |row: &&Stored| row.meta.annotations.get(HASH).is_some_and(|hash| **hash == *pin.hash);
        process.cache(Kind::Revision).rows().find(is_it)
    });
    pinned.map_or_else(|| kind_of_child(deployment), |revision| kind_of(&revision.spec.value()["data"]))
}

/// Whether all replicas of the target of a command are as it asked.
fn is_complete(server: &Server, target: &Owner, command: &Object) -> bool {
    let Some(target) = server.get(&target.key).filter(|found| found.meta.uid == target.uid) else {
        return false;
    };
    let pin = revision::pin(target);
    let is_pinned = |hash: Option<&str>| pin.as_ref().is_some_and(|pin| hash == Some(&*pin.hash));
    let is_rollback = command.meta.key.kind == Kind::Rollback;
    let hash = |child: &Object| child.meta.annotations.get(HASH).cloned();
    let is_asked = |child: &Object| {
        if is_rollback { is_pinned(hash(child).as_deref()) } else { has_token_of(child, command) }
    };
    let is_child = |object: &&Stored| CHILDREN.contains(&object.meta.key.kind);
    let is_own = |child: &&Stored| child.meta.controller() == Some(&target.meta.uid);
    let children = || server.objects().filter(is_child).filter(is_own);
    if children().next().is_some() {
        let serves_beside =
            |child: &Stored| child.status.value()["active"].as_i64() > Some(0) && !is_asked(child);
        let serves_so = |child: &Stored| is_asked(child) && (is_rollback || serves(child));
        return !children().any(serves_beside) && children().any(serves_so);
    }
    let status = target.status.value();
    let is_current = status["observedGeneration"].as_i64() == Some(target.meta.generation);
    let has_followed = if is_rollback {
        is_pinned(status["child"]["hash"].as_str())
    } else {
        is_current && has_token_of(target, command)
    };
    status["ready"] == true && has_followed
}

/// Whether an object has the token of a command, or a later one.
fn has_token_of(child: &Object, command: &Object) -> bool {
    let token = child.spec.value()["spec"]["restartedAt"].as_str();
    let token = token.and_then(|token| token.parse::<jiff::Timestamp>().ok());
    token.is_some_and(|token| token >= crate::clock::time(command.meta.created))
}

/// Whether the status of a command says that it ran.
pub fn has_started(command: &Object) -> bool {
    !command.status.value()["startTime"].is_null()
}

pub fn has_ended(command: &Object) -> bool {
    ["True", "False"].contains(&condition(command, SUCCEEDED))
}
