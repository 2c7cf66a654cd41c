//! Watches the objects that refuse writes, while something waits for one of them, so that a fix is followed by a retry at
//! once.

mod contents;

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    future::pending,
    hash::Hash,
    mem::take,
    sync::Arc,
    time::Duration,
};

use kube::{Api, Client, Resource, discovery::ApiResource, runtime::reflector::Store};
use parking_lot::Mutex;
use tokio::{select, sync::Notify, time::Instant};

use self::contents::Contents;
use crate::{
    object::ObjectId,
    report::{Obstacle, metrics::Metrics},
    run::{Controller, Trigger, controller::Passes},
    watch::{Follower, Task, TrimmedObject, Watch},
};

/// Time in which changes are gathered before the objects that they concern are retried.
const DEBOUNCE: Duration = Duration::from_secs(1);
/// Time between checks of which watches are still needed.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// Time for which a watch stays although nothing waits for it, because the same refusal often comes again.
const LINGER: Duration = Duration::from_secs(60);

/// The changes that were noticed: the kind, and the namespace; `None` if anything of the kind may have changed.
type Noticed = HashSet<(String, Option<String>)>;

/// The changes between the watches and the retries.
#[derive(Clone, Default)]
struct Changes(Arc<(Mutex<Noticed>, Notify)>);

impl Changes {
    fn add(&self, kind: &str, namespace: Option<String>) {
        self.0.0.lock().insert((kind.to_owned(), namespace));
        self.0.1.notify_one();
    }
}

struct Watching {
    needed_at: Instant,
    /// The watch ends with it.
    _task: Task,
}

/// Follows the obstacles that the controller can see, forever.
pub(super) async fn follow<C: Controller>(
    client: Client,
    passes: &Passes<C>,
    store: &Store<C::Kind>,
    trigger: &Trigger<C::Kind>,
) -> Infallible
where
    C::Kind: Resource<DynamicType: Hash>,
{
    let visible = passes.controller.visible_obstacles();
    if visible.is_empty() {
        return pending().await;
    }
    let (changes, mut watching) = (Changes::default(), HashMap::new());
    loop {
        select! {
            () = passes.backoff.obstructed() => tokio::time::sleep(DEBOUNCE).await,
            () = changes.0.1.notified() => tokio::time::sleep(DEBOUNCE).await,
            () = tokio::time::sleep(CHECK_INTERVAL) => {}
        }
        let needed = passes.backoff.obstacles();
        let needed = visible.iter().filter(|obstacle| needed.contains(obstacle));
        watch(
            &client,
            &passes.metrics,
            needed.flat_map(|obstacle| obstacle.kinds()),
            &mut watching,
            &changes,
        );
        let noticed = take(&mut *changes.0.0.lock());
        retry(&noticed, passes, store, trigger);
    }
}

/// Starts the watches of needed kinds, and ends those that have not been needed for some time.
fn watch(
    client: &Client,
    metrics: &Arc<Metrics>,
    needed: impl Iterator<Item = ApiResource>,
    watching: &mut HashMap<String, Watching>,
    changes: &Changes,
) {
    for resource in needed {
        let name = resource.kind.clone();
        let watching = watching.entry(name.clone()).or_insert_with(|| Watching {
            needed_at: Instant::now(),
            _task: start(client, metrics.clone(), &resource, changes.clone()),
        });
        watching.needed_at = Instant::now();
    }
    watching.retain(|_, watching| watching.needed_at.elapsed() < LINGER);
}

/// A watch of a kind, outside the health of the process: without it, retries only come later.
fn start(client: &Client, metrics: Arc<Metrics>, resource: &ApiResource, changes: Changes) -> Task {
    let (kind, mut contents) = (resource.kind.clone(), Contents::default());
    let api = Api::<TrimmedObject>::all_with(client.clone(), resource);
    let task = Task::default();
    let follower = Follower::new(Watch::new(api, kind.as_str()), &task, metrics);
    task.run(follower.run(move |event| {
        for namespace in contents.take(event) {
            changes.add(&kind, namespace);
        }
    }));
    task
}

/// Retries the objects that wait for one of the changes.
fn retry<C: Controller>(
    noticed: &Noticed,
    passes: &Passes<C>,
    store: &Store<C::Kind>,
    trigger: &Trigger<C::Kind>,
) where
    C::Kind: Resource<DynamicType: Hash>,
{
    let mut lifted = 0;
    let objects = if noticed.is_empty() { Vec::new() } else { store.state() };
    for object in objects {
        let ObjectId { namespace, uid, .. } = ObjectId::of(&*object);
        let concerns = |(_, of): &&(String, Option<String>)| of.as_ref().is_none_or(|of| of == namespace);
        let kinds: HashSet<_> = noticed.iter().filter(concerns).map(|(kind, _)| kind.as_str()).collect();
        let is_changed =
            |obstacle: Obstacle| obstacle.kinds().iter().any(|kind| kinds.contains(kind.kind.as_str()));
        if !kinds.is_empty() && passes.backoff.lift(uid, is_changed) {
            lifted += 1;
            trigger.notify_of(&object);
        }
    }
    if lifted > 0 {
        tracing::debug!(objects = lifted, "retried, because what refused them has changed");
    }
}
