//! Ends commands whose deadline has passed without a report by a `BasicDeployment`: those that are not bound.

use std::{
    collections::HashMap,
    convert::Infallible,
    fmt::Display,
    sync::Arc,
    time::{Duration, Instant},
};

use basic_deployment_controller::{
    command::Command, command_status, decide::unclaimed::due_in, error::Error,
};
use jiff::Timestamp;
use tokio::time::{sleep, timeout};

use crate::{act::Executor, observe::Commands};

/// Time in which changes of commands are gathered before all are checked again.
const DEBOUNCE: Duration = Duration::from_secs(1);
/// Delay before a command is retried whose status could not be written, or has not reached the cache.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);
/// Time limit for ending one command; nothing else bounds a request that hangs.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// Time between checks of all commands when nothing happens.
const LOOK_INTERVAL: Duration = Duration::from_secs(600);

/// The commands that nobody else ends.
pub struct Deadlines {
    commands: Arc<Commands>,
    executor: Executor,
    /// The time of the last try for each command that the cache still shows as open; by uid.
    tried: HashMap<String, Instant>,
    /// The time since which this process is active.
    began: Instant,
}

impl Deadlines {
    pub fn new(commands: Arc<Commands>, executor: Executor) -> Self {
        Self { commands, executor, tried: HashMap::new(), began: Instant::now() }
    }

    /// Ends each command when its deadline has passed.
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

    /// Ends the commands whose deadline has passed, and returns the time until the next one.
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
            match timeout(WRITE_TIMEOUT, self.end(&command, now)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => warn(&command, &error),
                Err(elapsed) => warn(&command, &elapsed),
            }
            self.tried.insert(command.uid.clone(), Instant::now());
            next = next.min(RETRY_INTERVAL);
        }
        next
    }

    async fn end(&self, command: &Command, now: Timestamp) -> Result<(), Error> {
        if !self.commands.still_waits(command).await? {
            return Ok(());
        }
        self.executor.end(command, &command_status::unclaimed(command, now)).await
    }
}

fn warn(command: &Command, why: &dyn Display) {
    tracing::warn!(
        namespace = command.namespace,
        name = command.name,
        "could not report that its deadline has passed: {why}"
    );
}
