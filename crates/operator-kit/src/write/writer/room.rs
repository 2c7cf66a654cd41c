//! Creates of objects that are built only when their turn comes, so that waiting objects are bounded by bytes and not
//! by number.

use operator_watch::{ApiError, Trimmed, WatchedResource};
use serde_json::Value;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};

use super::{OnBehalf, Written, send::Busy, target::Target};

const KIBIBYTE: usize = 1024;
/// Maximum size, in KiB, of objects that are built and not yet answered. The connections and the answers can take as much again.
const KIBIBYTES: usize = KIBIBYTE / 4;
/// Size, in KiB, of the smallest large object.
const LARGE: usize = KIBIBYTES / 4;

/// Room for objects that are built and not yet answered. Of the large ones, there is one at a time beside the others: those
/// behind one that waits for much room would wait until everything before it is answered.
pub(super) struct Room {
    /// One is built at a time, because its size is unknown before.
    building: Mutex<()>,
    small: Semaphore,
    large: Semaphore,
}

impl Default for Room {
    fn default() -> Self {
        Self { building: Mutex::default(), small: Semaphore::new(KIBIBYTES), large: Semaphore::new(1) }
    }
}

impl Room {
    /// Builds an object once there is room for the one before, and waits until there is room for it, too. A large one is
    /// built again when its turn comes, so that none waits in memory.
    async fn make<E>(
        &self,
        make: impl Fn() -> Result<Text, E>,
    ) -> Result<(Text, Option<SemaphorePermit<'_>>), E> {
        let building = self.building.lock().await;
        let text = make()?;
        // Neither semaphore is ever closed.
        if text.kibibytes() < LARGE {
            let weight = u32::try_from(text.kibibytes()).unwrap_or(u32::MAX);
            return Ok((text, self.small.acquire_many(weight).await.ok()));
        }
        drop((text, building));
        let alone = self.large.acquire().await.ok();
        Ok((make()?, alone))
    }
}

/// An encoded object, and its destination.
struct Text {
    body: Vec<u8>,
    namespace: String,
    name: String,
}

impl Text {
    /// Its size in KiB, rounded up.
    fn kibibytes(&self) -> usize {
        self.body.len() / KIBIBYTE + 1
    }
}

impl OnBehalf<'_> {
    /// Creates the object that `make` returns.
    ///
    /// # Errors
    /// The errors of `make`, and those of [`OnBehalf::create`].
    pub async fn create_made<E: From<ApiError>>(
        &self,
        kind: &WatchedResource,
        make: impl Fn() -> Result<Value, E>,
    ) -> Result<(), E> {
        let text = || {
            let object = make()?;
            let Target { namespace, name, .. } = Target::of(kind, &object);
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            let mut body = serde_json::to_vec(&object).unwrap_or_default();
            // It has grown by doubling.
            body.shrink_to_fit();
            Ok::<_, E>(Text { body, namespace, name })
        };
        let mut busy = Busy::default();
        loop {
            let (Text { body, namespace, name }, room) = self.writer.shared.room.make(&text).await?;
            let target = Target { kind, namespace: &namespace, name: &name, uid: "" };
            let request = self.creation(target, body);
            // Boxed, because a call that still waits for room would be as large as one that is sent.
            let sent: Written<Trimmed> = Box::pin(self.send_once("create", target, request)).await;
            // While it waits for a busy server, others can use its room.
            drop(room);
            match sent {
                Err(error) if busy.passes(&error).await => {}
                ended => return Ok(ended.map(drop)?),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, time::Duration};

    use axum::http::{Request, Response};
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{Client, client::Body, discovery::ApiResource};
    use serde_json::json;
    use tokio::time::timeout;

    use super::*;
    use crate::write::Writer;
    use operator_watch::{Cause, ObjectId};

    fn text(bytes: usize) -> Text {
        Text { body: vec![0; bytes], namespace: String::new(), name: String::new() }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_made_waits_for_room_and_nothing_more_is_made_meanwhile() {
        let room = Room::default();
        let eighth = KIBIBYTES * KIBIBYTE / 8 - 1;
        let mut held = Vec::new();
        for _ in 0..8 {
            held.push(room.make(|| Ok::<_, ()>(text(eighth))).await.unwrap());
        }
        let made = Cell::new(0);
        let mut next = Box::pin(room.make(|| {
            made.set(made.get() + 1);
            Ok::<_, ()>(text(eighth))
        }));
        assert!(timeout(Duration::from_secs(1), &mut next).await.is_err(), "there is no room");
        let other = room.make(|| -> Result<_, ()> { panic!("it was made before there was room") });
        assert!(timeout(Duration::from_secs(1), other).await.is_err());
        held.pop();
        next.await.unwrap();
        assert_eq!(made.get(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn large_ones_wait_for_each_other_and_stop_no_small_one() {
        let room = Room::default();
        let (_, first) = room.make(|| Ok::<_, ()>(text(LARGE * KIBIBYTE))).await.unwrap();
        let larger_than_all_room = || Ok::<_, ()>(text(2 * KIBIBYTES * KIBIBYTE));
        let mut second = Box::pin(room.make(larger_than_all_room));
        let mut third = Box::pin(room.make(larger_than_all_room));
        assert!(timeout(Duration::from_secs(1), &mut second).await.is_err());
        assert!(timeout(Duration::from_secs(1), &mut third).await.is_err());
        let small = room.make(|| Ok::<_, ()>(text(1)));
        assert!(timeout(Duration::from_secs(1), small).await.is_ok());
        drop(first);
        let (_, second) = second.await.unwrap();
        assert!(timeout(Duration::from_secs(1), &mut third).await.is_err());
        drop(second);
        third.await.unwrap();
    }

    #[tokio::test]
    async fn what_cannot_be_made_keeps_no_room() {
        let room = Room::default();
        assert!(room.make(|| Err::<Text, _>("no template")).await.is_err());
        assert_eq!(room.small.available_permits(), KIBIBYTES);
    }

    /// A server that is too busy for objects of this name.
    fn busy_for(name: &'static str) -> Client {
        let service = move |request: Request<Body>| async move {
            let body = request.into_body().collect_bytes().await?;
            let object: Value = serde_json::from_slice(&body)?;
            let busy =
                json!({"kind": "Status", "status": "Failure", "code": 429, "reason": "TooManyRequests"});
            let is_busy = object["metadata"]["name"] == name;
            let (code, answer) = if is_busy { (429, busy) } else { (201, object) };
            let answer = Body::from(serde_json::to_vec(&answer)?);
            Ok::<_, anyhow::Error>(Response::builder().status(code).body(answer)?)
        };
        Client::new(tower::service_fn(service), "default")
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_for_a_busy_server_keeps_nobody_elses_room() {
        let writer = Writer::over(busy_for("refused"), "test");
        let kind = WatchedResource::unwatched(ApiResource::erase::<ConfigMap>(&()));
        let text = "x".repeat(KIBIBYTES * KIBIBYTE * 3 / 4);
        let create = async |name: &str| {
            let object = json!({"metadata": {"name": name, "namespace": "shop"}, "data": {"text": text}});
            let own = writer.on_behalf_of(ObjectId::default());
            own.create_made(&kind, || Ok::<_, ApiError>(object.clone())).await
        };
        let refused = create("refused");
        let other = async {
            // Its body is built second.
            tokio::task::yield_now().await;
            timeout(Duration::from_millis(100), create("other")).await
        };
        let (refused, other) = tokio::join!(refused, other);
        assert_eq!(refused.unwrap_err().cause, Cause::Busy);
        assert!(matches!(other, Ok(Ok(()))), "{other:?}");
    }
}
