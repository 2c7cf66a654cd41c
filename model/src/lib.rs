//! The controllers' own decisions, run against a model of the API server in all orders of events.
//!
//! [`server`] is the API server as plain data; [`cache`] is a watch that lags. Each controller has a module with its
//! glue: what it observes of both, and which requests its actions are. What is decided in between is decided by the
//! controller's library itself.

pub mod cache;
pub mod replica_set;
pub mod server;
