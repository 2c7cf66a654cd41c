//! Keeps the watches in line with the kinds of the settings and of definitions.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use command_binder::{
    Settings,
    command::CommandRow,
    kind::{CommandKind, TargetKind},
};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Api, Client, discovery::ApiResource};
use operator_kit::{
    object::ObjectId,
    run::{LiveSettings, Operator, Triggers},
    watch::{ServedKinds, TrimmedObject, Watch, WatchHandle, WatchedKind, Watches},
};
use tokio::{
    select,
    sync::{Notify, watch},
    time::sleep,
};

use super::{
    discovery::Definitions,
    waiting::{Awaited, TargetName, Waiting},
};

/// Called again and again with all definitions that describe no kind of commands, each with the mistake in it.
type OnMalformed = Box<dyn Fn(&[(ObjectReference, String)]) + Send + Sync>;

/// Time between checks of kinds of targets that may not be served, and of malformed definitions. A check alone makes no
/// request.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(1);

/// The kinds of commands, which change at run time.
pub struct Catalog {
    client: Client,
    watches: Watches,
    on_malformed: OnMalformed,
    served_kinds: ServedKinds,
    settings: LiveSettings<Settings>,
    waiting: Waiting,
    triggers: Triggers<CommandRow>,
    targets: HashMap<Arc<TargetKind>, (ApiResource, WatchHandle)>,
    definitions: Option<Definitions>,
    changed: Arc<Notify>,
}

impl Catalog {
    pub fn new(
        operator: &Operator<Settings>,
        waiting: Waiting,
        triggers: Triggers<CommandRow>,
        on_malformed: OnMalformed,
    ) -> Self {
        Self {
            client: operator.client(),
            watches: operator.watches(),
            on_malformed,
            served_kinds: operator.served_kinds(),
            settings: operator.settings(),
            waiting,
            triggers,
            targets: HashMap::new(),
            definitions: None,
            changed: Arc::default(),
        }
    }

    /// Sends the kinds, forever.
    pub async fn follow(mut self, kinds: watch::Sender<Vec<WatchedKind<CommandRow>>>) {
        loop {
            let wanted = self.wanted();
            self.watch_targets(&wanted);
            kinds.send_replace(wanted.iter().map(|kind| self.watched(kind)).collect());
            loop {
                self.report_malformed();
                select! {
                    () = self.settings.changed() => break,
                    () = self.changed.notified() => break,
                    () = sleep(DISCOVERY_INTERVAL) => {
                        let has_changed = self.follow_targets().await;
                        self.follow_awaited().await;
                        if has_changed {
                            break;
                        }
                    }
                }
            }
        }
    }

    /// The wanted kinds. The settings of a kind take precedence over its definition.
    fn wanted(&mut self) -> Vec<Arc<CommandKind>> {
        let settings = self.settings.current();
        let mut wanted: Vec<_> = settings.kinds.iter().cloned().map(Arc::new).collect();
        if settings.discovers {
            let changed = self.changed.clone();
            let definitions = self.definitions.get_or_insert_with(|| {
                let changed = move || changed.notify_one();
                Definitions::follow(self.client.clone(), &self.watches, changed)
            });
            for found in definitions.kinds() {
                let is_same = |kind: &Arc<CommandKind>| {
                    (&kind.resource.group, &kind.resource.plural)
                        == (&found.resource.group, &found.resource.plural)
                };
                if !wanted.iter().any(is_same) {
                    wanted.push(found);
                }
            }
        } else {
            self.definitions = None;
        }
        wanted
    }

    fn report_malformed(&self) {
        let malformed = self.definitions.as_ref().map(Definitions::malformed);
        (self.on_malformed)(&malformed.unwrap_or_default());
    }

    /// Of targets, only the names that wake waiting commands are read, and nothing is kept.
    fn watch_targets(&mut self, kinds: &[Arc<CommandKind>]) {
        let wanted: HashSet<_> = kinds.iter().flat_map(|kind| kind.target.kinds.iter().cloned()).collect();
        self.targets.retain(|kind, _| wanted.contains(kind));
        for kind in wanted {
            if !self.targets.contains_key(&kind) {
                let notices = self.notice(kind.clone(), &kind.resource);
                self.targets.insert(kind.clone(), (kind.resource.clone(), notices));
            }
        }
    }

    /// If the version of a watch is no longer served, another version is watched until it is served again. Returns whether any
    /// watch was replaced.
    async fn follow_targets(&mut self) -> bool {
        let doubted = self.targets.iter().filter_map(|(kind, (watched, notices))| {
            let is_unserved = notices.is_unserved();
            let is_doubted = is_unserved || *watched != kind.resource;
            is_doubted.then(|| (kind.clone(), watched.clone(), is_unserved))
        });
        let doubted: Vec<_> = doubted.collect();
        let mut has_changed = false;
        for (kind, watched, is_unserved) in doubted {
            // The watch reports its failure, and so do the commands that wait for it.
            let found = self.served_kinds.find_for_watch(&kind.resource, is_unserved).await;
            let Ok(Some(found)) = found else { continue };
            if found.resource != watched {
                let notices = self.notice(kind.clone(), &found.resource);
                self.targets.insert(kind, (found.resource, notices));
                has_changed = true;
            }
        }
        has_changed
    }

    /// Wakes the commands whose target's kind was not served, as soon as it is.
    async fn follow_awaited(&self) {
        for kind in self.waiting.kinds() {
            if let Ok(Some(_)) = self.served_kinds.find_awaited(&kind.resource).await {
                self.waiting.kind_came(kind, &self.triggers);
            }
        }
    }

    /// Watches commands. When their targets are watched in another version, all of them are listed again, because the references
    /// of those that are bound may have to be refreshed.
    fn watched(&self, kind: &Arc<CommandKind>) -> WatchedKind<CommandRow> {
        let watched = |target: &Arc<TargetKind>| {
            let watched = self.targets.get(target).map(|(watched, _)| watched.clone());
            watched.unwrap_or_else(|| target.resource.clone())
        };
        let watched_targets: Vec<_> = kind.target.kinds.iter().map(watched).collect();
        let versions: Vec<_> = watched_targets.iter().map(|target| &*target.api_version).collect();
        let fingerprint = format!("{} {}", kind.fingerprint, versions.join(" "));
        let (id, resource, selector) = (kind.id.clone(), kind.resource.clone(), kind.selector.clone());
        let kind = Arc::new(CommandKind { watched_targets, ..CommandKind::clone(kind) });
        WatchedKind::new(id, resource, fingerprint, move |object| CommandRow::of(&kind, object))
            .labelled(selector)
    }

    fn notice(&self, kind: Arc<TargetKind>, resource: &ApiResource) -> WatchHandle {
        let (waiting, triggers) = (self.waiting.clone(), self.triggers.clone());
        let api = Api::all_with(self.client.clone(), resource);
        let watch = Watch::metadata(api, format!("{} (as a target)", kind.resource.kind));
        self.watches.watch_changes(watch, move |target: &TrimmedObject| {
            let ObjectId { namespace, name, .. } = ObjectId::of(target);
            let target = Some(TargetName { namespace: namespace.into(), name: name.into() });
            waiting.target_came(&Awaited { kind: kind.clone(), target }, &triggers);
        })
    }
}
