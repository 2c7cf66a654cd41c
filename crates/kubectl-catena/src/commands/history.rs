//! `kubectl catena history`

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use catena_api::{Pin, keys};
use catena_cluster::{Identity, ObjectArgument, Options, created, number};
use catena_terminal::{Cell, Table, Tone, age};
use clap::Args;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::{ResourceExt, api::ListParams};
use serde::Serialize;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::ensure_basic_deployment;
use crate::output::{Format, Output};

/// The object, and one of its revisions.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    object: ObjectArgument,
    /// Show the changes of this revision
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    revision: Option<i64>,
    /// Compare with this revision instead of the previous one
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, requires = "revision")]
    against: Option<i64>,
}

/// A revision.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Revision {
    #[serde(rename = "revision")]
    number: i64,
    /// Whether the child has it.
    current: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    /// The child that was rendered, if the rendering names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    child: Option<Identity>,
    /// The hash that is rejected by a rollback to this one that holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    rejects: Option<String>,
    /// The rendering.
    #[serde(skip_serializing_if = "Option::is_none")]
    rendered: Option<Value>,
}

/// Shows the revisions, or the changes of one.
pub async fn run(options: &Options, output: Output, arguments: &Arguments) -> Result<()> {
    let target = arguments.object.target()?;
    let cluster = options.connect().await?;
    ensure_basic_deployment(&cluster, &target)?;
    let deployment = cluster.get(&target).await?;
    let uid = deployment.uid().unwrap_or_default();
    let labels = ListParams::default().labels(&format!("{}={uid}", keys::DEPLOYMENT_UID));
    let found = cluster.all::<ControllerRevision>(Some(&cluster.namespace), labels).await;
    let kind = cluster.kinds.find("controllerrevisions.apps")?;
    let found = found.map_err(|error| cluster.refused(kind, "", "list", error))?;
    let current = number(&deployment, "/status/revision");
    let pin = deployment.annotations().get(keys::PINNED_REVISION);
    let pin = pin.and_then(|pin| serde_json::from_str(pin).ok());
    let pin = pin.filter(|pin: &Pin| pin.uid == uid && pin.is_rejection());
    let owned = found.into_iter().filter(|item| item.owner_references().iter().any(|owner| owner.uid == uid));
    let mut revisions: Vec<Revision> = owned.map(|item| Revision::of(item, current, pin.as_ref())).collect();
    revisions.sort_by_key(|revision| revision.number);
    let Some(number) = arguments.revision else {
        for revision in &mut revisions {
            revision.rendered = None;
        }
        let document = BTreeMap::from([("revisions", &revisions)]);
        let text = || text(&target.name, &revisions, current, Timestamp::now());
        return output.print(&document, text);
    };
    let revision = find(&revisions, number)?;
    let before = match arguments.against {
        Some(against) => Some(find(&revisions, against)?),
        None => revisions.iter().rfind(|other| other.number < number),
    };
    let diff = diff(before, revision)?;
    output.print(revision, || diff)
}

fn find(revisions: &[Revision], number: i64) -> Result<&Revision> {
    revisions.iter().find(|revision| revision.number == number).with_context(|| {
        let known: Vec<String> = revisions.iter().map(|revision| revision.number.to_string()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        format!("there is no revision {number}; existing ones: {known}")
    })
}

impl Revision {
    fn of(item: ControllerRevision, current: Option<i64>, pin: Option<&Pin>) -> Self {
        let hash = item.annotations().get(keys::HASH).cloned();
        let pin = pin.filter(|pin| Some(&pin.hash) == hash.as_ref());
        Self {
            number: item.revision.unwrap_or_default(),
            current: item.revision.is_some() && item.revision == current,
            created: created(&item.metadata),
            hash,
            child: child(&item.data.0),
            rejects: pin.map(|pin| pin.rejects.clone()),
            rendered: Some(item.data.0).filter(|data| !data.is_null()),
        }
    }
}

fn child(rendering: &Value) -> Option<Identity> {
    let text = |pointer: &str| rendering.pointer(pointer)?.as_str();
    let (version, kind, name) = (text("/apiVersion")?, text("/kind")?, text("/metadata/name")?);
    Some(Identity::new(version, kind, text("/metadata/namespace"), name))
}

fn text(name: &str, revisions: &[Revision], current: Option<i64>, now: Timestamp) -> String {
    match current {
        _ if !revisions.is_empty() => table(revisions, now),
        None => format!("BasicDeployment/{name} has no revision yet\n"),
        Some(number) => format!(
            "BasicDeployment/{name} is on revision {number}, but no ControllerRevision has its uid in the label {}: restore the label, or the object\n",
            keys::DEPLOYMENT_UID
        ),
    }
}

fn table(revisions: &[Revision], now: Timestamp) -> String {
    let mut table = Table::of(["REVISION", "AGE", "CHILD", "HASH", "NOTE"]);
    let short = |hash: &str| hash.chars().take(8).collect::<String>();
    for revision in revisions {
        let mut notes = Vec::new();
        if revision.current {
            notes.push("current".to_owned());
        }
        if let Some(rejected) = &revision.rejects {
            let from = revisions.iter().find(|other| other.hash.as_ref() == Some(rejected));
            let from = from.map_or_else(|| short(rejected), |other| other.number.to_string());
            notes.push(format!("rolled back from {from}"));
        }
        let tone = if revision.current { Tone::Good } else { Tone::Plain };
        table.push([
            revision.number.to_string().into(),
            revision.created.map(|created| age(now, created)).unwrap_or_default().into(),
            revision.child.as_ref().map(ToString::to_string).unwrap_or_default().into(),
            revision.hash.as_deref().map(short).unwrap_or_default().into(),
            Cell::toned(tone, notes.join(", ")),
        ]);
    }
    table.render()
}

/// The changes between two renderings; for the first one, all of it.
fn diff(before: Option<&Revision>, after: &Revision) -> Result<String> {
    let text = |revision: &Revision| {
        let rendered =
            revision.rendered.as_ref().with_context(|| format!("revision {} is empty", revision.number))?;
        Format::Yaml.render(rendered)
    };
    let new = text(after)?;
    let Some(before) = before else {
        let title = format!("revision {}, the oldest that is kept", after.number);
        return Ok(format!("{}\n{new}", Tone::Strong.paint(&title)));
    };
    let old = text(before)?;
    let title = Tone::Strong.paint(&format!("revision {} → {}", before.number, after.number));
    if old == new {
        return Ok(format!("{title}: no difference\n"));
    }
    let mut out = title + "\n";
    let diff = TextDiff::from_lines(&old, &new);
    for (index, group) in diff.grouped_ops(3).iter().enumerate() {
        if index > 0 {
            out += &Tone::Quiet.paint("⋮\n");
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let tone = match change.tag() {
                ChangeTag::Delete => Tone::Bad,
                ChangeTag::Insert => Tone::Good,
                ChangeTag::Equal => Tone::Plain,
            };
            let line = format!("{} {}", change.tag(), change.value().trim_end_matches('\n'));
            out += &tone.paint(&line);
            out.push('\n');
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use serde_json::json;

    use super::*;

    fn revision(number: i64, image: &str) -> Revision {
        let rendered = json!({
            "apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet", "metadata": {"name": "web"},
            "spec": {"parameters": {"a": "1", "b": "2", "image": image, "port": "80"}, "template": "default"},
        });
        Revision {
            number,
            child: child(&rendered),
            current: number == 3,
            created: "2026-01-01T00:00:00Z".parse().ok(),
            hash: Some(format!("{image}0000000000")),
            rejects: (number == 3).then(|| "web-20000000000".to_owned()),
            rendered: Some(rendered),
        }
    }

    #[test]
    fn the_current_revision_and_rollbacks_are_marked() {
        let revisions = [revision(1, "web-1"), revision(2, "web-2"), revision(3, "web-1")];
        let now = "2026-01-02T00:00:00Z".parse().unwrap();
        insta::assert_snapshot!(strip_str(&table(&revisions, now)).to_string());
    }

    #[test]
    fn a_revision_for_scripts_names_the_child_also_without_its_rendering() {
        let item = json!({
            "metadata": {"name": "web-1"}, "revision": 1,
            "data": {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"}, "spec": {}},
        });
        let shown =
            Revision { rendered: None, ..Revision::of(serde_json::from_value(item).unwrap(), None, None) };
        let child = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"});
        assert_eq!(json!(shown)["child"], child);
        let odd =
            serde_json::from_value(json!({"metadata": {}, "revision": 1, "data": {"kind": 7}})).unwrap();
        assert_eq!(json!(Revision::of(odd, None, None)).get("child"), None);
    }

    #[test]
    fn no_known_revision_is_not_the_same_as_none_yet() {
        let said = |current| text("web", &[], current, Timestamp::UNIX_EPOCH);
        assert!(said(None).contains("has no revision yet"));
        let lost = said(Some(3));
        assert!(lost.contains("is on revision 3") && lost.contains(keys::DEPLOYMENT_UID), "{lost}");
    }

    #[test]
    fn a_revision_shows_its_changes() {
        insta::assert_snapshot!(
            strip_str(&diff(Some(&revision(1, "web-1")), &revision(2, "web-2")).unwrap()).to_string()
        );
        let same = diff(Some(&revision(1, "web-1")), &revision(3, "web-1")).unwrap();
        assert_eq!(strip_str(&same).to_string(), "revision 1 → 3: no difference\n");
    }

    #[test]
    fn an_unknown_revision_is_answered_with_the_existing_ones() {
        let error = find(&[revision(1, "a"), revision(2, "b")], 7).unwrap_err().to_string();
        assert_eq!(error, "there is no revision 7; existing ones: 1, 2");
        let error = find(&[], 7).unwrap_err().to_string();
        assert_eq!(error, "there is no revision 7; existing ones: none");
    }
}
