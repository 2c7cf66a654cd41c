//! The rules that hold in every history.

use catena_api::keys::HASH;

use super::content::{Object, Phase, SetSpec, phase, set_spec};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    Most,
    Least,
    Own,
    Meant,
    Ready,
    Once,
    Rest,
}

impl Rule {
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Most => "there are never more pods than replicas and surge",
            Self::Least => "no delete leaves fewer serving pods than the budget asks for",
            Self::Own => "no pod is written but the set's own",
            Self::Meant => "a write meets the very object that it was decided for",
            Self::Ready => "ready is said only while all pods are new and serve",
            Self::Once => "no pod is created that has been created",
            Self::Rest => "all comes to rest as wanted",
        }
    }
}

/// The facts about a history by which the next write is judged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ledger {
    /// The rules that were broken, as bits.
    broken: u8,
    /// The most pods that any spec of the set allowed.
    most: u8,
    /// The fewest serving pods that any spec of the set allowed.
    least: u8,
    /// Whether pods ended or stopped serving for another reason than the controller.
    pub is_disturbed: bool,
    /// The time for which a pod has to be ready before it serves, in ticks.
    min_ready: u8,
    /// Whether a pod counts until it is gone.
    awaits_ends: bool,
    /// Whether a process may have forgotten a create.
    pub is_doubtful: bool,
}

impl Ledger {
    pub fn breaks(&mut self, rule: Rule) {
        self.broken |= 1 << rule as u8;
    }

    pub fn has_broken(&self, rule: Rule) -> bool {
        self.broken & (1 << rule as u8) != 0
    }

    /// A set was created.
    pub fn begins(&mut self, spec: &SetSpec) {
        (self.most, self.least, self.min_ready) = (spec.replicas, least(spec), spec.min_ready);
        self.awaits_ends = spec.awaits_ends();
    }

    /// A spec was changed.
    pub fn changes(&mut self, before: &SetSpec, after: &SetSpec) {
        let is_rollout = before.text != after.text;
        // A rollout under way still has its surge.
        let surge = if is_rollout || self.most > before.replicas { after.surge } else { 0 };
        let most = (before.replicas.max(after.replicas)) + surge;
        self.most = self.most.max(most);
        self.least = self.least.min(least(after));
    }

    /// A set got one more pod.
    pub fn grows<'o>(&mut self, set: &str, pods: impl Iterator<Item = &'o Object>) {
        let is_there = |pod: &&Object| counts_for(pod, set) || (self.awaits_ends && is_ending(pod, set));
        let count = pods.filter(is_there).count();
        if count > usize::from(self.most) {
            self.breaks(Rule::Most);
        }
    }

    /// A set has lost this pod, which was seen as its own. Pods that became ready since then do not count, because nobody
    /// could have known of them.
    pub fn shrinks<'o>(&mut self, set: &str, now: u8, lost: &Object, pods: impl Iterator<Item = &'o Object>) {
        let is_in_time =
            |pod: &Object| matches!(phase(pod), Some(Phase::Ready(since)) if since + self.min_ready <= now);
        let serves = |pod: &Object| counts_for(pod, set) && is_in_time(pod);
        let left = pods.filter(|pod| serves(pod)).count();
        if serves(lost) && !self.is_disturbed && left < usize::from(self.least) {
            self.breaks(Rule::Least);
        }
    }
}

/// The fewest pods that have to serve.
pub fn least(spec: &SetSpec) -> u8 {
    let missing = if spec.surge == 0 { spec.unavailable.max(1) } else { spec.unavailable };
    spec.replicas.saturating_sub(missing)
}

/// Whether a pod has this template and serves: counted independently of the controller.
pub fn is_new(pod: &Object, revision: &str) -> bool {
    let is_ready = matches!(phase(pod), Some(Phase::Ready(_)));
    is_ready && pod.meta.annotations.get(HASH).is_some_and(|hash| **hash == *revision)
}

/// Whether a pod of a set terminates.
pub fn is_ending(pod: &Object, set: &str) -> bool {
    pod.meta.is_deleting && pod.meta.controller().is_some_and(|controller| &**controller == set)
}

/// Whether a pod is one of the replicas of a set.
pub fn counts_for(pod: &Object, set: &str) -> bool {
    set_spec(pod).is_none()
        && pod.meta.controller().is_some_and(|controller| &**controller == set)
        && !pod.meta.is_deleting
        && phase(pod) != Some(Phase::Failed)
}
