//! Why an object is not as it should be: evidence → the root cause.
//!
//! `explanation` asks the server, with `gather` and `read`; `walk` follows the edges of objects to the leaf; all but the three is
//! pure.

mod answer;
mod command;
mod contest;
mod controllers;
mod deletion;
mod diagnose;
mod edges;
mod explanation;
mod facts;
mod failed;
mod gather;
mod leaf;
mod objects;
mod placement;
mod read;
mod reasons;
mod settings;
#[cfg(test)]
mod tests;
mod text;
mod troubles;
mod unreported;
mod updates;
mod walk;
mod warnings;

use self::{
    answer::{Cause, Evidence},
    controllers::{Controllers, Installation, Lease, NOT_RUNNING, PodTrouble, Verdict},
    deletion::TERMINATING,
    edges::Edge,
    facts::{Facts, Finding, RefusedSettings, Related, Step, Surroundings, Warning},
    objects::BINDER,
    reasons::Row,
    unreported::REPORT_GRACE,
};
pub use answer::Answer;
pub use explanation::{explanation, explanation_aside};
pub use reasons::describe;
pub use text::text;
