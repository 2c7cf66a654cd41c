//! The input of a decision about a command, as plain data.

use std::sync::Arc;

use jiff::Timestamp;
use operator_kit::run::Backoffs;
use operator_watch::DynamicRow;

use crate::command::CommandRow;

/// The input of a decision about a command.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The command.
    pub command: Arc<DynamicRow<CommandRow>>,
    /// The steps that this pass may take.
    pub backoffs: Backoffs,
    /// The time of the observation, by this machine's clock.
    pub now: Timestamp,
    /// Whether it was deleted here, which the cache has yet to show.
    pub is_deleted: bool,
    /// Whether it was created again soon after it had been deleted here.
    pub came_back: bool,
}
