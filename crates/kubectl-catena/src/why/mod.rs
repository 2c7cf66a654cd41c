//! Why an object is not as it should be: evidence → the root cause.
//!
//! `explanation` asks the server, with `gather` and `relate`; everything else is pure.

mod answer;
mod blockers;
mod command;
mod containers;
mod contents;
mod contest;
mod controller_pods;
mod controllers;
mod deletion;
mod diagnose;
mod explanation;
mod facts;
mod gather;
mod left_behind;
mod nodes;
mod readiness;
mod reasons;
mod relate;
mod related;
mod scheduling;
mod settings;
#[cfg(test)]
mod tests;
mod text;
mod unreported;
mod volumes;
mod warnings;

pub use explanation::{explanation, explanation_aside};
pub use reasons::describe;
pub use text::text;
