//! The cluster as a user sees it: the connection, the kinds, objects that are read, listed and written, and errors for a person.

mod access;
mod connection;
pub mod errors;
mod kinds;
mod lenient;
mod object;
mod pages;
mod paint;
mod proxy;
mod target;
#[cfg(feature = "testing")]
pub mod testing;

pub use self::{
    access::{At, Change, How},
    connection::{Cluster, Options, context_names},
    errors::{Gap, NotFound, in_one_line, is_missing_right, read_failure},
    kinds::{Kind, Kinds},
    object::{
        Identity, ObjectName, condition, conditions, created, deleted, first_owner, last_write, list, number,
        text,
    },
    pages::{PAGE_SIZE, Pages},
    paint::{Paint, Tone, cut, sanitized},
    target::{BASIC_DEPLOYMENTS, ObjectArgument, Target},
};
