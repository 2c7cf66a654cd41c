//! What a person sees and types: output, tables, times, progress and interruptions.

mod age;
mod output;
mod progress;
mod table;
mod waiting;

pub use self::{
    age::{age, duration},
    output::{Format, Output, write},
    progress::Progress,
    table::{Cell, Table},
    waiting::{Interrupt, interrupted, until},
};
