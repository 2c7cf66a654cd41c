//! `kubectl catena held`

use std::process::ExitCode;

use anyhow::Result;
use catena_api::keys;
use catena_cluster::{
    Gap, Identity, Kind, Kinds, Options, deleted, last_seen,
    protection::{
        self, BACKUP_CONTROLLER, HELD_FOR_BACKUP, Kinds as Places, NO_ENTRY, ProtectedKinds, protected_kinds,
    },
};
use catena_explain::describe;
use catena_terminal::{Cell, Table, Tone, age, first_of};
use clap::Args;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::{api::ListParams, core::ObjectMeta};
use serde::Serialize;

use super::exit_code;
use crate::output::Output;

const MAX_CONCURRENT_LISTS: usize = 16;

/// The scope of the list.
#[derive(Args)]
pub struct Arguments {
    /// List all namespaces, and with --all-kinds also cluster-wide kinds that are not protected
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Search all kinds, not only those that backup-controller protects or protected before its last upgrades
    #[arg(long)]
    all_kinds: bool,
}

/// An object whose deletion is held.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Held {
    #[serde(flatten)]
    object: Identity,
    /// The deletion time.
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<Timestamp>,
    /// The reason, in one word.
    reason: String,
    /// The reason, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    /// The number of the attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<i64>,
    /// The backup.
    #[serde(skip_serializing_if = "String::is_empty")]
    backup: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'s> {
    items: &'s [Held],
    /// The searched kinds, unless all were searched.
    #[serde(skip)]
    only: Vec<&'s str>,
    #[serde(skip_serializing_if = "<[Gap]>::is_empty")]
    not_seen: &'s [Gap],
}

/// Lists held objects. It fails if there is none among those that could be read.
pub async fn run(options: &Options, output: Output, arguments: &Arguments) -> Result<ExitCode> {
    let cluster = options.connect().await?;
    let settings = protected_kinds(&cluster).await;
    let known = settings.as_ref().map(ProtectedKinds::all).unwrap_or_default();
    let all = arguments.all_kinds || known.is_empty();
    let (mut served, mut gaps) = served(&cluster.kinds, known);
    let namespace = (!arguments.all_namespaces).then_some(cluster.namespace.as_str());
    let kinds =
        cluster.kinds.preferred().filter(|kind| is_searched(kind, &served, all, arguments.all_namespaces));
    // Only the held objects of a list are kept: it may be long.
    let lists = stream::iter(kinds).map(async |kind| {
        let is_left = settings.as_ref().is_some_and(|kinds| !kinds.current.contains(&place(kind)));
        let held = |metadata: ObjectMeta| Held::of(kind, &metadata, is_left);
        let list = cluster.metadata(kind, namespace, ListParams::default().match_any()).await;
        (kind, list.map(|list| list.into_iter().filter_map(held).collect::<Vec<_>>()))
    });
    let lists: Vec<_> = lists.buffered(MAX_CONCURRENT_LISTS).collect().await;
    let mut items = Vec::new();
    for (kind, list) in lists {
        match list {
            Ok(held) => items.extend(held),
            // Some kinds are served and cannot be listed as metadata.
            Err(kube::Error::Api(status)) if matches!(status.code, 404..=406) => {}
            // Who may view one namespace asks for that one.
            Err(kube::Error::Api(status))
                if status.code == 403 && !kind.is_namespaced && namespace.is_some() =>
            {
                served.remove(&place(kind));
            }
            Err(error) => gaps.push(Gap::of(&kind.resource.plural, &error)),
        }
    }
    // Where its report cannot be written, an Event tells why.
    if items.iter().any(|held: &Held| held.message.is_empty()) {
        let by_controller = format!("type=Warning,reportingComponent={BACKUP_CONTROLLER}");
        let events = cluster.all::<Event>(namespace, ListParams::default().fields(&by_controller)).await;
        let events = Gap::or_default(events, "Events", &mut gaps);
        for held in &mut items {
            held.tell(&events);
        }
    }
    items.sort_by_key(|held: &Held| (held.deleted, held.object.clone()));
    let only = served.iter().filter(|_| !all).map(|(_, kind)| kind.as_str()).collect();
    let shown = Shown { items: &items, only, not_seen: &gaps };
    output.print(&shown, || text(&shown, Timestamp::now()))?;
    Ok(exit_code(!items.is_empty() || gaps.is_empty()))
}

/// Whether a kind is searched: one that is protected, also if it is cluster-wide and only a namespace is listed.
fn is_searched(kind: &Kind, served: &Places, all: bool, all_namespaces: bool) -> bool {
    kind.is_listed && (all && (kind.is_namespaced || all_namespaces) || served.contains(&place(kind)))
}

/// The kinds that the server has, and a gap for each other one: objects of it may be stored nevertheless.
fn served(kinds: &Kinds, known: Places) -> (Places, Vec<Gap>) {
    let all: Places = kinds.preferred().map(place).collect();
    let (served, hidden): (Places, Places) = known.into_iter().partition(|known| all.contains(known));
    let gap = |(group, kind): (String, String)| {
        let what = format!("{kind}.{group}").trim_end_matches('.').to_owned();
        Gap::new(what, "not served, so that its objects, if there are any, cannot be read")
    };
    (served, hidden.into_iter().map(gap).collect())
}

fn place(kind: &Kind) -> (String, String) {
    (kind.resource.group.clone(), kind.resource.kind.clone())
}

impl Held {
    /// Adds the words of the newest of these Events about it, if it has no report.
    fn tell(&mut self, events: &[Event]) {
        let about =
            events.iter().filter(|event| event.involved_object.uid.as_deref() == Some(&self.object.uid));
        let newest = about.max_by_key(|event| last_seen(event));
        if let Some(event) = newest.filter(|_| self.message.is_empty()) {
            self.reason = event.reason.clone().unwrap_or_default();
            self.message = event.message.clone().unwrap_or_default();
        }
    }

    /// The object, if it is held. `is_left` says that backup-controller has no entry for its kind.
    fn of(kind: &Kind, metadata: &ObjectMeta, is_left: bool) -> Option<Self> {
        let deleted = deleted(metadata)?;
        metadata.finalizers.iter().flatten().find(|finalizer| *finalizer == keys::BACKUP_FINALIZER)?;
        let report = protection::report(metadata);
        let text = |field: &str| report[field].as_str().unwrap_or_default().to_owned();
        let (reason, message) = match text("reason") {
            _ if is_left => {
                (NO_ENTRY.to_owned(), describe(NO_ENTRY).map(|row| row.meaning.clone()).unwrap_or_default())
            }
            reason if reason.is_empty() => (HELD_FOR_BACKUP.to_owned(), text("message")),
            reason => (reason, text("message")),
        };
        Some(Self {
            object: Identity::in_metadata(&kind.resource.api_version, &kind.resource.kind, metadata),
            deleted: Some(deleted),
            reason,
            message,
            attempt: report["attempt"].as_i64(),
            backup: text("backup"),
        })
    }
}

fn text(shown: &Shown, now: Timestamp) -> String {
    let unseen: Vec<String> = shown.not_seen.iter().map(ToString::to_string).collect();
    let unseen =
        if unseen.is_empty() { String::new() } else { format!("\nnot read: {}\n", first_of(&unseen, 5)) };
    if shown.items.is_empty() {
        let among = (!shown.only.is_empty()).then(|| {
            let kinds = shown.only.join(", ");
            format!(", among the kinds that backup-controller protects or protected before ({kinds}); --all-kinds searches all kinds")
        });
        let none =
            if unseen.is_empty() { "no object is held for a backup" } else { "no held object was seen" };
        return format!("{none}{}\n{unseen}", among.unwrap_or_default());
    }
    let mut table = Table::of(["NAMESPACE", "OBJECT", "FOR", "ATTEMPT", "REASON", "BACKUP", "MESSAGE"]);
    for held in shown.items {
        let tone = match held.reason.as_str() {
            "BackupRunning" | "BackupBeingDeleted" | HELD_FOR_BACKUP => Tone::Moving,
            _ => Tone::Bad,
        };
        table.push([
            held.object.namespace.clone().unwrap_or_default().into(),
            held.object.to_string().into(),
            held.deleted.map(|deleted| age(now, deleted)).unwrap_or_default().into(),
            held.attempt.map(|attempt| attempt.to_string()).unwrap_or_default().into(),
            Cell::toned(tone, held.reason.as_str()),
            held.backup.as_str().into(),
            Cell::toned(Tone::Quiet, held.message.lines().next().unwrap_or_default()),
        ]);
    }
    table.render() + &unseen
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use catena_cluster::testing::kinds;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_a_deleted_object_with_the_finalizer_is_held() {
        let kinds = kinds();
        let kind = kinds.find("bdep").unwrap();
        let held =
            |metadata: Value| Held::of(kind, &serde_json::from_value(metadata).unwrap(), false).is_some();
        let at = "2026-01-01T00:00:00Z";
        assert!(held(json!({"name": "a", "deletionTimestamp": at, "finalizers": ["catena.dev/backup"]})));
        assert!(!held(json!({"name": "a", "finalizers": ["catena.dev/backup"]})));
        assert!(!held(json!({"name": "a", "deletionTimestamp": at, "finalizers": ["x.dev/y"]})));
    }

    #[test]
    fn what_its_controller_cannot_report_on_is_told_by_its_newest_event() {
        let kinds = kinds();
        let metadata = json!({"name": "a", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["catena.dev/backup"]});
        let mut held =
            Held::of(kinds.find("bdep").unwrap(), &serde_json::from_value(metadata).unwrap(), false).unwrap();
        let event = |uid: &str, time: &str, reason: &str| -> Event {
            let object = json!({"metadata": {}, "involvedObject": {"uid": uid}, "eventTime": time, "reason": reason, "message": "no"});
            serde_json::from_value(object).unwrap()
        };
        let (early, late) = ("2026-01-01T00:01:00.000000Z", "2026-01-01T00:02:00.000000Z");
        held.tell(&[event("v", late, "Invalid")]);
        assert_eq!(held.reason, HELD_FOR_BACKUP);
        held.tell(&[event("u", late, "Forbidden"), event("u", early, "Invalid")]);
        assert_eq!((&*held.reason, &*held.message), ("Forbidden", "no"));
        held.tell(&[event("u", late, "Other")]);
        assert_eq!(held.reason, "Forbidden");
    }

    #[test]
    fn a_kind_that_is_not_served_is_named_and_does_not_count_as_searched() {
        let kind = |group: &str, kind: &str| (group.to_owned(), kind.to_owned());
        let known = [kind("", "Pod"), kind("x.dev", "Db"), kind("", "Node")];
        let (searched, gaps) = served(&kinds(), known.into());
        assert_eq!(searched, [kind("", "Pod")].into());
        assert_eq!(gaps.iter().map(|gap| &*gap.what).collect::<Vec<_>>(), ["Node", "Db.x.dev"]);
        let none = Shown { items: &[], only: vec!["Pod"], not_seen: &gaps };
        let said = text(&none, Timestamp::default());
        assert!(said.contains("Db.x.dev (not served") && said.contains("protected before (Pod);"), "{said}");
    }

    #[test]
    fn a_protected_kind_is_searched_also_if_it_is_cluster_wide() {
        let (kinds, protected) = (kinds(), (String::new(), "PersistentVolume".to_owned()));
        let searched = |all: bool, all_namespaces: bool| {
            let is = |word: &str| {
                is_searched(kinds.find(word).unwrap(), &[protected.clone()].into(), all, all_namespaces)
            };
            ["pv", "pods", "namespaces"].map(is)
        };
        assert_eq!(searched(false, false), [true, false, false]);
        assert_eq!(searched(false, true), [true, false, false]);
        // Users who may view their namespace alone are not told of every cluster-wide kind.
        assert_eq!(searched(true, false), [true, true, false]);
        assert_eq!(searched(true, true), [true, true, true]);
    }

    #[test]
    fn a_held_object_is_listed_with_its_backup_and_the_reason() {
        let kinds = kinds();
        let kind = kinds.find("bdep").unwrap();
        let status = json!({"uid": "u", "state": "Failed", "attempt": 2, "backup": "Job backups/web-2", "since": "2026-01-01T00:04:00Z", "reason": "BackupFailed", "message": "the backup failed"});
        let item = |name: &str, annotations: Value| {
            let metadata = json!({
                "name": name, "namespace": "shop", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z",
                "finalizers": ["catena.dev/backup"], "annotations": annotations,
            });
            Held::of(kind, &serde_json::from_value(metadata).unwrap(), name == "left").unwrap()
        };
        let items = [
            item("web", json!({"catena.dev/backup-status": status.to_string()})),
            item("new", json!({})),
            item("left", json!({"catena.dev/backup-status": status.to_string()})),
        ];
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        let gaps = [Gap::new("secrets", "no permission")];
        let shown = |items, not_seen| {
            strip_str(&text(&Shown { items, only: vec!["ConfigMap"], not_seen }, now)).to_string()
        };
        insta::assert_snapshot!(shown(&items, &gaps));
        let among =
            ", among the kinds that backup-controller protects or protected before (ConfigMap); --all-kinds";
        assert!(shown(&[], &[]).starts_with(&format!("no object is held for a backup{among}")));
        // What could not be read may hold one.
        assert!(shown(&[], &gaps).starts_with(&format!("no held object was seen{among}")));
    }
}
