//! Action → one write. The only writer.

use std::time::Duration;

use jiff::Timestamp;
use kube::{Resource, api::ObjectMeta};
use operator_kit::{run::Next, watch::Watched};

use crate::{command::Command, decide::Action, error::Error, observe::Commands};

/// How long what is to be told waits while too many Events do.
const EVENTS_BUSY: Duration = Duration::from_secs(60);

impl Commands {
    /// Takes a step.
    pub async fn act(&self, command: &Watched<Command>, action: Action) -> Result<Next, Error> {
        let kind = &command.source.resource;
        match action {
            Action::Delete => {
                self.writer.delete_as_seen(command).await?;
                self.removed().remember(command, Timestamp::now());
                let ObjectMeta { namespace, name, .. } = &command.metadata;
                tracing::info!(kind = kind.kind, namespace, name, "deleted after its TTL");
                Ok(Next::Written)
            }
            Action::TellKept(_) | Action::TellCameBack if !self.events.has_room() => {
                Ok(Next::Wait(EVENTS_BUSY))
            }
            Action::TellKept(mark) => {
                let note = format!(
                    "its TTL is over, but it is kept: {mark} says that it is declared elsewhere, where it would be \
                     created again and run again; delete it there"
                );
                self.events.tell(&command.object_ref(kind), "KeptAsDeclared", &note);
                Ok(self.told_that_it_is_kept(command))
            }
            Action::TellCameBack => {
                let note = "it was deleted after its TTL and created again with the same name and spec, so that it runs \
                            once more; it is kept now, so that this does not go on; leave out its TTL where it is \
                            declared, or give it another name to run it on purpose";
                self.events.warn(&command.object_ref(kind), "CreatedAgain", note);
                Ok(self.told_that_it_is_kept(command))
            }
            Action::Refuse(error) => Err(Error::Unreadable(*error)),
            Action::Wait(time) => Ok(Next::Wait(time)),
            Action::Settle => Ok(Next::Settled),
        }
    }

    /// The next pass knows when it is to be told again, if it is.
    fn told_that_it_is_kept(&self, command: &Watched<Command>) -> Next {
        let uid = command.metadata.uid.clone().unwrap_or_default();
        self.told().insert(uid, Timestamp::now());
        Next::Wait(Duration::ZERO)
    }
}
