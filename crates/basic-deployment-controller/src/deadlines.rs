//! Ends commands whose time is over and of which no `BasicDeployment` says so: those that nobody has bound.

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

/// Changes of commands are gathered for so long before all are looked at again.
const DEBOUNCE: Duration = Duration::from_secs(1);
/// When a command is tried again of which the status could not be written, or does not come back.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);
/// How long ending one may take; nothing else bounds a request that hangs.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// How often all are looked at when nothing happens.
const LOOK_INTERVAL: Duration = Duration::from_secs(600);

/// The commands that nobody else ends.
pub struct Deadlines {
    commands: Arc<Commands>,
    executor: Executor,
    /// When those were ended, or tried to, which are still shown as open; by uid.
    tried: HashMap<String, Instant>,
    /// Since when this process acts.
    began: Instant,
}

impl Deadlines {
    pub fn new(commands: Arc<Commands>, executor: Executor) -> Self {
        Self { commands, executor, tried: HashMap::new(), began: Instant::now() }
    }

    /// Ends each when its time is over.
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

    /// Ends those whose time is over, and gives when the next one's will be.
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
