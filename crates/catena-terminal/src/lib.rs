//! A person at a terminal: colours, tables, durations, progress, and the wish to stop.

mod durations;
mod notice;
mod paint;
mod progress;
mod table;
mod waiting;

pub use self::{
    durations::{age, duration, parse_duration},
    notice::tell,
    paint::{Tone, cut, sanitized},
    progress::Progress,
    table::{Cell, Table},
    waiting::{Interrupt, interrupted, until},
};
