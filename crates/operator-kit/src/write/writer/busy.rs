use std::time::Duration;

use crate::write::{WriteCause, WriteError};

/// Number of retries of a write after the server answered that it is overloaded (and did nothing).
const TRIES: u32 = 4;
/// Longest delay that is waited for within a pass, which takes the place of another one; the backoff of its object waits for
/// longer ones.
const MAX_DELAY: Duration = Duration::from_secs(5);

/// The retries of a write that an overloaded server did not perform.
#[derive(Default)]
pub(super) struct Busy {
    tries: u32,
}

impl Busy {
    /// Waits for the delay that the server asked for. False for another error or a long delay, and after the last retry.
    pub async fn passes(&mut self, error: &WriteError) -> bool {
        let WriteCause::Busy { retry_after, .. } = &error.cause else { return false };
        if self.tries == TRIES || *retry_after > MAX_DELAY {
            return false;
        }
        self.tries += 1;
        tokio::time::sleep(jittered(*retry_after)).await;
        true
    }
}

/// Adds a jitter, so that writes that were refused together do not return together.
fn jittered(time: Duration) -> Duration {
    time.mul_f64(0.5 + rand::random::<f64>())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::discovery::ApiResource;
    use serde_json::json;
    use tokio::time::Instant;

    use super::*;
    use crate::{
        object::ObjectId,
        testing::{Answer, Log, answering},
        watch::WatchedResource,
        write::Writer,
    };

    const OWN: ObjectId<'_> = ObjectId { namespace: "shop", name: "settings", uid: "a" };

    /// A writer to a server that is busy, and asks for this delay in seconds.
    fn writer(retry_after: u32) -> (Writer, Log) {
        let busy = json!({
            "kind": "Status", "status": "Failure", "code": 429, "reason": "TooManyRequests",
            "details": {"retryAfterSeconds": retry_after},
        });
        let (client, log) = answering(move |_| Answer::Json(429, busy.clone()));
        (Writer::over(client, "test"), log)
    }

    async fn write(writer: &Writer) -> WriteCause {
        let kind = WatchedResource::unwatched(ApiResource::erase::<ConfigMap>(&()));
        writer.on_behalf_of(OWN).delete(&kind, OWN).await.unwrap_err().cause
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_busy_for_a_moment_is_asked_again_and_one_that_is_busy_for_long_is_not() {
        for (retry_after, requests) in [(1, 5), (5, 5), (6, 1), (600, 1)] {
            let (writer, log) = writer(retry_after);
            let began = Instant::now();
            assert!(matches!(write(&writer).await, WriteCause::Busy { .. }));
            assert_eq!(log.take().len(), requests, "{retry_after} s");
            assert!(began.elapsed() <= Duration::from_secs(30), "{:?}", began.elapsed());
        }
    }
}
