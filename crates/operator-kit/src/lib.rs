//! How every controller of Catena runs.
//!
//! A controller says what it watches, how it observes, decides and acts ([`Controller`]); the kit does the
//! rest: settings, templates, watches with one backoff each, a queue with one backoff per object,
//! read-your-own-writes, leader election, health, metrics and logs.

mod arguments;
mod backoff;
mod cache;
pub mod conditions;
mod consistency;
mod controller;
mod digest;
mod events;
mod failure;
mod health;
mod leader;
mod metrics;
mod operator;
pub mod owner;
mod pace;
mod queue;
mod server;
mod settings;
mod slow_start;
mod telemetry;
mod templates;
mod trimmed;
mod watch;
mod write;
mod yaml;

pub use arguments::{Arguments, LogFormat};
pub use backoff::Attempt;
pub use cache::{Cache, Row};
pub use consistency::Seen;
pub use controller::{Controller, Next};
pub use digest::{sha256, short_digest};
pub use failure::{Category, Failure, Reported};
pub use operator::Operator;
pub use pace::due_in;
pub use queue::{Queue, Trigger};
pub use settings::{Settings, SettingsError, Validate};
pub use slow_start::slow_start;
pub use templates::{Rendered, Subject, TemplateError, Templates};
pub use trimmed::{Trimmed, TrimmedObject, trimmed_metadata};
pub use watch::{Watch, Watches};
pub use write::{WriteError, Writer, Written};
