//! The chain: the `decide` of five controllers, around a child that keeps the replica contract.
//!
//! basic-deployment-controller, command-binder, command-runner, command-reaper and backup-controller act on one
//! `BasicDeployment`. Its child is any one that keeps the contract: it reports on its present spec at any time, first
//! that it rolls out, then that it serves. The model of basic-replicaset-controller shows that a `BasicReplicaSet` is such a child.

mod content;
mod controllers;
mod event;
mod people;
mod process;
mod revision;
mod rule;
pub mod sabotage;
mod scenario;
pub mod scope;
pub mod scopes;
mod settings;
#[cfg(test)]
mod tests;
mod trace;
pub mod walk;
mod world;
mod write;
