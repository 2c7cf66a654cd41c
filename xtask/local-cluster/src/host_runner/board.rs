//! The state of a pod's containers: written by each container's task, read for the pod's status.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};
use tokio::sync::watch;

/// The reason why a container does not run, in a kubelet's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub reason: String,
    pub message: String,
}

impl Trouble {
    pub fn new(reason: &str, message: impl Into<String>) -> Self {
        Self { reason: reason.to_owned(), message: message.into() }
    }
}

/// The end of a run of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    pub exit_code: i32,
    pub signal: Option<i32>,
    pub reason: String,
    pub message: Option<String>,
    pub started: Timestamp,
    pub finished: Timestamp,
}

/// The present state of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Activity {
    Waiting(Trouble),
    Running { pid: u32, since: Timestamp },
    Ended(End),
}

/// One container of the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub name: String,
    pub image: String,
    pub activity: Activity,
    pub last_end: Option<End>,
    pub restarts: i32,
    pub ready: bool,
}

/// All containers of one pod.
pub struct Board(watch::Sender<Vec<Record>>);

impl Board {
    /// The containers before their start, with their state from a former supervisor.
    pub fn new(pod: &Pod) -> Self {
        let spec = pod.spec.as_ref();
        let status = pod.status.as_ref();
        let containers = spec.map(|spec| spec.containers.as_slice()).unwrap_or_default();
        let before = status.and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
        let records = containers.iter().map(|container| record(container, before)).collect();
        Self(watch::Sender::new(records))
    }

    /// Changes one container's record.
    pub fn update(&self, name: &str, change: impl FnOnce(&mut Record)) {
        self.0.send_if_modified(|records| {
            let Some(record) = records.iter_mut().find(|record| record.name == name) else { return false };
            let before = record.clone();
            change(record);
            *record != before
        });
    }

    /// Records that the container waits, for this reason.
    pub fn waits(&self, name: &str, trouble: Trouble) {
        self.update(name, |record| {
            record.activity = Activity::Waiting(trouble);
            record.ready = false;
        });
    }

    /// Records the end of the container.
    pub fn ended(&self, name: &str, end: End) {
        self.update(name, |record| {
            record.activity = Activity::Ended(end);
            record.ready = false;
        });
    }

    /// Follows the changes.
    pub fn follow(&self) -> watch::Receiver<Vec<Record>> {
        self.0.subscribe()
    }
}

fn record(container: &Container, before: &[ContainerStatus]) -> Record {
    let before = before.iter().find(|status| status.name == container.name);
    let ran = before.is_some_and(|status| {
        status.state.as_ref().is_some_and(|state| state.running.is_some() || state.terminated.is_some())
    });
    let restarts = before.map(|status| status.restart_count).unwrap_or_default();
    Record {
        name: container.name.clone(),
        image: container.image.clone().unwrap_or_default(),
        activity: Activity::Waiting(Trouble::new("ContainerCreating", "")),
        last_end: None,
        restarts: if ran { restarts + 1 } else { restarts },
        ready: false,
    }
}
