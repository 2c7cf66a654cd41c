//! A framework for Kubernetes controllers.
//!
//! A controller defines what it watches, and how it observes, decides and acts ([`run::Controller`]). The kit does the
//! rest, in three modules, each of which imports only from those below it:
//!
//! | module | holds |
//! |---|---|
//! | [`run`] | start-up, settings, leader election, the queue with one backoff per object, passes |
//! | [`mod@write`] | the only way to write, and to read one's own writes |
//! | [`report`] | conditions, Events, health, metrics, logs |
//!
//! Reads are in [`operator_watch`], templates and expressions in [`operator_templates`].
//!
//!
//! `examples/hello-controller` of the repository is a whole controller in seventy lines.

pub mod report;
pub mod run;
#[cfg(feature = "testing")]
pub mod testing;
pub mod write;
