//! Reports on commands on which no `BasicDeployment` does, such as those that are not bound.

use std::{
    collections::HashMap,
    convert::Infallible,
    fmt::Display,
    sync::Arc,
    time::{Duration, Instant},
};

use basic_deployment_controller::{command::Command, command_status, decide::unclaimed::due_in};
use jiff::Timestamp;
use operator_watch::ApiError;
use tokio::time::{sleep, timeout};

use crate::{act::Executor, observe::Commands};

/// Time in which changes of commands are gathered before all are checked again.
const DEBOUNCE: Duration = Duration::from_secs(1);
/// Delay before a command is retried whose status could not be written, or has not reached the cache.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);
/// Time limit for the report on one command: for its requests together, each of which has a limit of its own.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// Time between checks of all commands when nothing happens.
const LOOK_INTERVAL: Duration = Duration::from_secs(600);

/// The commands on which nobody else reports.
pub struct Unclaimed {
    commands: Arc<Commands>,
    executor: Executor,
    /// The time of the last try for each command whose report the cache does not show yet; by uid.
    tried: HashMap<String, Instant>,
    /// The time since which this process is active.
    began: Instant,
}

impl Unclaimed {
    pub fn new(commands: Arc<Commands>, executor: Executor) -> Self {
        Self { commands, executor, tried: HashMap::new(), began: Instant::now() }
    }

    /// Ends each command when its deadline has passed, and reports on those that a finalizer keeps.
    pub async fn keep(mut self) -> Infallible {
        self.began = Instant::now();
        loop {
            let next = self.pass().await;
            tokio::select! {
                () = sleep(next.max(DEBOUNCE)) => {}
                () = self.commands.changed() => sleep(DEBOUNCE).await,
            }
        }
    }

    /// Reports on each command for which it is time, and returns the time until the next one.
    async fn pass(&mut self) -> Duration {
        let (now, acting) = (Timestamp::now(), self.began.elapsed());
        let open = self.commands.find(|command| due_in(command, now, acting).is_some());
        self.tried.retain(|uid, _| open.iter().any(|command| command.uid == *uid));
        let mut next = LOOK_INTERVAL;
        for command in open {
            let tried =
                self.tried.get(&command.uid).map(|tried| RETRY_INTERVAL.saturating_sub(tried.elapsed()));
            let due = due_in(&command, now, acting).unwrap_or(LOOK_INTERVAL).max(tried.unwrap_or_default());
            if !due.is_zero() {
                next = next.min(due);
                continue;
            }
            match timeout(WRITE_TIMEOUT, self.report(&command, now)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => warn(&command, &error),
                Err(elapsed) => warn(&command, &elapsed),
            }
            self.tried.insert(command.uid.clone(), Instant::now());
            next = next.min(RETRY_INTERVAL);
        }
        next
    }

    async fn report(&self, command: &Command, now: Timestamp) -> Result<(), ApiError> {
        if command.deletion.is_some() {
            return self.executor.report(command, &command_status::unclaimed_leaving(command, now)).await;
        }
        if !self.commands.still_waits(command).await? {
            return Ok(());
        }
        self.executor.report(command, &command_status::unclaimed(command, now)).await
    }
}

fn warn(command: &Command, why: &dyn Display) {
    tracing::warn!(
        namespace = command.namespace,
        name = command.name,
        "could not report on a command on which no BasicDeployment does: {why}"
    );
}
