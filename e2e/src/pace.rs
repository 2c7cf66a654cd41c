use std::{sync::Arc, time::Duration};

use anyhow::Result;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::{task::JoinSet, time::sleep};

use crate::Namespace;

/// Pause before each write.
const PAUSE: Duration = Duration::from_millis(40);

/// Time of a pause and a write on a quiet machine.
const TURN: Duration = Duration::from_millis(50);

/// A clock that goes as fast as the cluster does: it counts writes to an object that nobody watches, one after another. On
/// a busy machine these take longer, just as what is measured does; a controller that waits does not slow them down. It never
/// goes faster than any other clock.
pub struct Pace {
    started: Timestamp,
    turns: Arc<Mutex<Vec<Timestamp>>>,
    _writes: JoinSet<()>,
}

impl Pace {
    /// Starts to write in a namespace, until this is dropped.
    pub async fn start(namespace: &Namespace) -> Result<Self> {
        let maps: Api<ConfigMap> = namespace.api();
        let map = serde_json::from_value(json!({"metadata": {"generateName": "pace-"}}))?;
        let name = maps.create(&PostParams::default(), &map).await?.name_any();
        let turns = Arc::new(Mutex::new(Vec::new()));
        let (done, started) = (Arc::clone(&turns), Timestamp::now());
        let writes = JoinSet::from_iter([async move {
            for turn in 0.. {
                sleep(PAUSE).await;
                let patch = Patch::Merge(json!({"data": {"turn": format!("{turn}")}}));
                // An error is an answer too.
                maps.patch_metadata(&name, &PatchParams::default(), &patch).await.ok();
                done.lock().push(Timestamp::now());
            }
        }]);
        Ok(Self { started, turns, _writes: writes })
    }

    /// The time since the start, as it would be on a quiet machine.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.between(self.started, Timestamp::now())
    }

    /// The time between two moments, as it would be on a quiet machine.
    #[must_use]
    pub fn between(&self, from: Timestamp, to: Timestamp) -> Duration {
        let turns = self.turns.lock().iter().filter(|turn| (from..to).contains(turn)).count();
        let seconds = Duration::try_from(to.duration_since(from)).unwrap_or_default();
        seconds.min(TURN * u32::try_from(turns).unwrap_or(u32::MAX))
    }
}
