//! A person at a terminal: colours, tables, durations, progress, and the wish to stop.

mod durations;
mod paint;
mod progress;
mod table;
mod waiting;

pub use self::{
    durations::{age, duration, parse_duration},
    paint::{Tone, cut, first_of, sanitized, tell},
    progress::Progress,
    table::{Cell, Table},
    waiting::{Interrupt, interrupted, until},
};
