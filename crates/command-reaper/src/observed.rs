//! What a decision about a command is made from, as plain data.

use std::sync::Arc;

use jiff::Timestamp;
use operator_kit::{run::Attempt, watch::Watched};

use crate::command::CommandRow;

/// What a decision about a command is made from.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The command.
    pub command: Arc<Watched<CommandRow>>,
    /// What this pass may do.
    pub attempt: Attempt,
    /// When it was observed, on this machine's clock.
    pub now: Timestamp,
    /// Whether it was deleted here, and the cache has yet to show it.
    pub is_deleted: bool,
    /// Whether it was created again soon after it had been deleted here.
    pub came_back: bool,
    /// When people were told that it is kept, by this process.
    pub told: Option<Timestamp>,
}
