//! How every controller of Catena runs.
//!
//! A controller says what it watches, how it observes, decides and acts ([`run::Controller`]); the kit does the
//! rest, in five wings. Each imports only from those below it:
//!
//! | wing | holds |
//! |---|---|
//! | [`run`] | start-up, settings, leader election, the queue with one backoff per object, passes |
//! | [`mod@write`] | the only way to write, and to read one's own writes |
//! | [`watch`] | watches with one backoff each, caches, live look-ups |
//! | [`render`] | templates, expressions, hashes |
//! | [`report`] | failures, conditions, Events, health, metrics, logs |

pub mod render;
pub mod report;
pub mod run;
pub mod watch;
pub mod write;
