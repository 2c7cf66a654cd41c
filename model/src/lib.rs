//! The controllers' own decisions, run against a model of the API server in all orders of events.
//!
//! [`server`] is the API server as plain data; [`cache`] is a watch that lags; [`harness`] follows histories. Each controller
//! has a module with its glue: its observation of server and cache, and the requests of its actions. The decision in between
//! is made by the controller's library itself.

pub mod cache;
pub mod chain;
pub mod check;
pub mod clock;
pub mod harness;
pub mod metadata;
pub mod replica_set;
pub mod server;
