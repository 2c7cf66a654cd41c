//! The plans that a campaign can choose from: every fault at every request of an undisturbed story.

use rand::{
    Rng, RngExt,
    seq::{IndexedRandom, SliceRandom},
};

use super::{
    plan::{Commit, Ending, Fault, ListFault, Moment, Plan, WatchFault, WriteFault},
    story::Reference,
};

/// Duration of a delay or a withheld event, in milliseconds: longer than the time between two writes of the story.
const A_WHILE: u64 = 3_000;
/// Age of a stale view, in writes: it lacks the last own write, or many.
const BACK: [usize; 2] = [1, 8];
/// The answers of an API server that does not perform a request.
const REFUSALS: [u16; 6] = [409, 410, 429, 500, 503, 504];
/// The answers that may come although it did.
const UNCERTAIN: [u16; 3] = [500, 503, 504];

/// All faults to choose from.
pub struct Menu {
    /// A process is killed around a write.
    pub crashes: Vec<Plan>,
    /// A leader of two is terminated at a write.
    pub hand_overs: Vec<Plan>,
    /// All other faults, and combinations.
    pub others: Vec<Plan>,
}

impl Menu {
    /// The faults that are possible in this story.
    #[must_use]
    pub fn of(reference: &Reference) -> Self {
        let (mut crashes, mut hand_overs, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for (controller, counts) in &reference.counts {
            let plan = |fault| Plan { controller: controller.name().into(), faults: vec![fault] };
            for number in 1..=counts.writes {
                let write = |how| plan(Fault::Write { number, how });
                let moments = [Moment::Unsent, Moment::Unanswered, Moment::Answered];
                crashes.extend(moments.map(|moment| write(WriteFault::Crash(moment))));
                hand_overs.push(write(WriteFault::HandOver(Ending::Terminated)));
                others.extend(write_faults().into_iter().map(write));
            }
            for number in 1..=counts.lists {
                others.extend(list_faults().into_iter().map(|how| plan(Fault::List { number, how })));
            }
            for (resource, events) in &counts.events {
                for event in 1..=*events {
                    let watch = |how| plan(Fault::Watch { resource: resource.clone(), event, how });
                    others.extend(watch_faults().map(watch));
                }
            }
        }
        Self { crashes, hand_overs, others }
    }

    /// Each kind of fault for each controller, at a random request.
    pub fn one_of_each(&self, chance: &mut impl Rng) -> Vec<Plan> {
        let mut all: Vec<&Plan> = self.crashes.iter().chain(&self.hand_overs).chain(&self.others).collect();
        all.shuffle(chance);
        let kind = |plan: &Plan| (plan.faults.first().map(Fault::name), plan.controller.clone());
        all.sort_by_key(|plan| kind(plan));
        all.dedup_by_key(|plan| kind(plan));
        all.shuffle(chance);
        all.into_iter().cloned().collect()
    }

    /// One to three faults in the same story.
    pub fn some(&self, chance: &mut impl Rng) -> Vec<Plan> {
        let count = chance.random_range(1..=3);
        let choose = |_| match chance.random_range(0..4) {
            0 => self.crashes.choose(chance),
            1 => self.hand_overs.choose(chance),
            _ => self.others.choose(chance),
        };
        (0..count).filter_map(choose).cloned().collect()
    }
}

fn write_faults() -> Vec<WriteFault> {
    let mut faults = vec![
        WriteFault::Drop(Commit::Before),
        WriteFault::Drop(Commit::After),
        WriteFault::Garble,
        WriteFault::Delay { millis: A_WHILE },
        WriteFault::BlackHole { millis: A_WHILE },
        WriteFault::Slow { millis: A_WHILE },
    ];
    faults.extend([Ending::Killed, Ending::Stopped, Ending::CutOff].map(WriteFault::HandOver));
    faults.extend(BACK.map(|back| WriteFault::TimeTravel { back, millis: A_WHILE }));
    faults.extend(REFUSALS.map(|code| WriteFault::Refuse { code, commit: Commit::Before }));
    faults.extend(UNCERTAIN.map(|code| WriteFault::Refuse { code, commit: Commit::After }));
    faults
}

fn list_faults() -> Vec<ListFault> {
    let mut faults = vec![ListFault::Stall, ListFault::Cut, ListFault::Garble];
    faults.extend(REFUSALS.map(ListFault::Refuse));
    faults
}

fn watch_faults() -> [WatchFault; 5] {
    let (freeze, hold) = (WatchFault::Freeze { millis: A_WHILE }, WatchFault::Hold { millis: A_WHILE });
    [WatchFault::Close, WatchFault::Expire, WatchFault::Repeat, freeze, hold]
}
