//! `BasicReplicaSet` alone: its controller's own `decide` and `status`, over all orders of events.

mod act;
mod content;
mod event;
mod observe;
mod process;
mod rule;
pub mod sabotage;
mod scenario;
mod scope;
pub mod scopes;
#[cfg(test)]
mod tests;
mod trace;
mod world;
