//! Why an object is not as it should be: evidence → the root cause.
//!
//! `explanation` asks the server, with `gather` and `read`; `walk` follows the edges of objects to the leaf; all but the three is
//! pure.

mod answer;
mod command;
mod contents;
mod contest;
mod controller_pods;
mod controllers;
mod deletion;
mod diagnose;
mod edges;
mod explanation;
mod facts;
mod gather;
mod leaf;
mod left_behind;
mod nodes;
mod objects;
mod read;
mod reasons;
mod scheduling;
mod settings;
#[cfg(test)]
mod tests;
mod text;
mod unreported;
mod volumes;
mod walk;
mod warnings;

use self::{
    answer::{Answer, Cause, Evidence},
    contents::TERMINATING,
    controllers::{Controllers, Installation, Lease, NAME, NOT_RUNNING, PodTrouble, Verdict},
    edges::Edge,
    facts::{Facts, Finding, RefusedSettings, Related, Step, Surroundings, Warning},
    objects::BINDER,
    reasons::Row,
    unreported::REPORT_GRACE,
};
pub use explanation::{explanation, explanation_aside};
pub use reasons::describe;
pub use text::text;
