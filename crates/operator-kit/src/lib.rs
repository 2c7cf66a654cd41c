//! How every controller of Catena runs.
//!
//! A controller says what it watches, how it observes, decides and acts ([`Controller`]); the kit does the
//! rest: settings, templates, watches with one backoff each, a queue with one backoff per object,
//! read-your-own-writes, leader election, health, metrics and logs.

mod arguments;
mod attempt;
mod backoff;
mod bounded;
mod cache;
pub mod conditions;
mod consistency;
mod controller;
mod digest;
mod events;
mod expression;
mod failure;
mod health;
mod kinds;
mod leader;
mod lenient;
pub mod live;
mod metrics;
mod object_name;
mod operator;
pub mod owner;
mod probe;
mod queue;
mod read_error;
mod reconciler;
mod repeated_writes;
mod retelling;
mod served;
mod server;
mod settings;
mod slow_start;
mod status_pace;
mod telemetry;
mod templates;
mod triggers;
mod trimmed;
mod watch;
mod write;
mod write_error;
mod yaml;

pub use arguments::{Arguments, LogFormat};
pub use attempt::{Attempt, HeldUp};
pub use bounded::Bounded;
pub use cache::{Cache, Row};
pub use consistency::Seen;
pub use controller::{Controller, Next};
pub use digest::{sha256, short_digest};
pub use events::Events;
pub use expression::{Expression, ExpressionError};
pub use failure::{Category, Failure, Part, Reported};
pub use kinds::{Source, Watched, WatchedKind};
pub use lenient::Unmanaged;
pub use object_name::is_object_name;
pub use operator::Operator;
pub use queue::{Queue, Trigger};
pub use read_error::ReadError;
pub use retelling::{share, tell_again_after};
pub use served::{ServedKind, ServedKinds};
pub use settings::{Settings, SettingsError, Validate};
pub use slow_start::{Batch, slow_start};
pub use status_pace::{Pace, StatusAge};
pub use templates::{Rendered, Subject, TemplateError, Templates};
pub use triggers::Triggers;
pub use trimmed::{Trimmed, TrimmedObject, trimmed_metadata, trimmed_time};
pub use watch::{Notices, Watch, Watches};
pub use write::{Writer, Written};
pub use write_error::WriteError;
