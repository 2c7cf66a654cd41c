//! The cluster as a user sees it: the connection, the kinds, objects that are read, listed and written, the state that their
//! status tells, and errors for a person.

mod access;
mod connection;
pub mod errors;
mod health;
mod homes;
mod kinds;
mod labelled_kinds;
mod lenient;
mod lost;
mod object;
mod pages;
mod pods;
pub mod protection;
mod proxy;
mod target;
#[cfg(feature = "testing")]
pub mod testing;

pub use self::{
    access::{At, Change, How},
    connection::{Cluster, Options, context_names},
    errors::{Gap, NotFound, in_one_line, is_missing_right, read_failure},
    health::{Health, State, ended, health, numbers, replicas},
    homes::Homes,
    kinds::{Kind, Kinds},
    labelled_kinds::{
        LabelledKinds, command_kinds, configured_commands, declared_commands, is_our_command, labelled_kinds,
    },
    lost::{LostField, default_of, lost},
    object::{
        Identity, ObjectName, condition, conditions, created, deleted, first_owner, last_seen, last_write,
        list, number, run_record, text,
    },
    pages::{PAGE_SIZE, Pages},
    pods::{CONTAINER_SAYS, containers, last_run, last_words, shortened},
    target::{BASIC_DEPLOYMENTS, ObjectArgument, Target},
};
