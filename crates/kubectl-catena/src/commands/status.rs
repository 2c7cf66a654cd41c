//! `kubectl catena status`

use std::{
    collections::BTreeMap,
    io::{IsTerminal, Write},
    time::Duration,
};

use anyhow::Result;
use catena_api::{BasicDeployment, BlockedBy};
use clap::Args;
use futures::StreamExt;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;
use kube::{
    Api, ResourceExt,
    api::ListParams,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use operator_kit::watch::Unmanaged;
use serde::Serialize;
use tokio::time::timeout;

use crate::{
    age::age,
    connection::{Cluster, Options},
    errors::not_found,
    object::created,
    output::{Output, reader_gone, write_to},
    pages,
    paint::{Paint, Tone},
    table::{Cell, Table},
};

/// The interval at which a terminal is redrawn, because ages change.
const REDRAW_INTERVAL: Duration = Duration::from_secs(5);

/// The selection of BasicDeployments.
#[derive(Args)]
pub struct Arguments {
    /// Show only these BasicDeployments
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// List all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Filter by labels, as in `kubectl get`
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    /// Show changes continuously; as plain lines if standard output is not a terminal
    #[arg(short, long, conflicts_with = "format")]
    watch: bool,
    #[command(flatten)]
    output: Output,
}

/// A `BasicDeployment` in a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    namespace: String,
    name: String,
    ready: bool,
    serving: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<i64>,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked_by: Option<BlockedBy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<Timestamp>,
}

#[derive(Serialize)]
struct Shown<'s> {
    items: &'s [Line],
}

/// Shows how the `BasicDeployments` are.
pub async fn run(options: &Options, arguments: &Arguments) -> Result<()> {
    let cluster = options.connect().await?;
    let kind = cluster.kinds.find("basicdeployments.catena.dev")?;
    let api = arguments.api(&cluster);
    let mut params = ListParams::default();
    params.label_selector.clone_from(&arguments.selector);
    let found = pages::all(&api, params).await.map_err(|error| cluster.refused(kind, "", "list", error))?;
    if arguments.watch {
        let view = View::new(arguments.all_namespaces);
        return tokio::select! {
            ended = Box::pin(live(api, arguments, view)) => ended,
            // The next change may be far away.
            () = reader_gone() => Ok(()),
        };
    }
    let known: Vec<String> = found.iter().map(ResourceExt::name_any).collect();
    if let Some(name) = arguments.names.iter().find(|name| !known.contains(name)) {
        let place = (!arguments.all_namespaces).then_some(cluster.namespace.as_str());
        return Err(not_found("BasicDeployment", name, place, &known));
    }
    let wanted = found.iter().filter(|item| arguments.wants(*item));
    let lines: Vec<Line> = wanted.map(|Unmanaged(item)| Line::of(item)).collect();
    arguments.output.print(&Shown { items: &lines }, || {
        text(&lines, arguments.all_namespaces, Timestamp::now(), Paint::for_stdout())
    })
}

impl Arguments {
    fn api(&self, cluster: &Cluster) -> Api<Unmanaged<BasicDeployment>> {
        if self.all_namespaces {
            Api::all(cluster.client.clone())
        } else {
            Api::namespaced(cluster.client.clone(), &cluster.namespace)
        }
    }

    fn wants(&self, item: &impl ResourceExt) -> bool {
        self.names.is_empty() || self.names.contains(&item.name_any())
    }
}

impl Line {
    fn of(item: &BasicDeployment) -> Self {
        let status = item.status.clone().unwrap_or_default();
        let is_current = status.observed_generation == item.metadata.generation;
        let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready");
        let reason = if is_current { ready.map(|ready| ready.reason.clone()) } else { None };
        Self {
            namespace: item.namespace().unwrap_or_default(),
            name: item.name_any(),
            ready: status.ready && is_current,
            serving: format!("{}/{}", status.active, item.spec.replicas),
            revision: status.revision,
            reason: reason.unwrap_or_else(|| "Pending".to_owned()),
            blocked_by: status.blocked_by.filter(|_| is_current),
            created: created(&item.metadata),
        }
    }
}

/// A table, and a total below it.
fn text(lines: &[Line], with_namespace: bool, now: Timestamp, paint: Paint) -> String {
    if lines.is_empty() {
        return "no BasicDeployment found; -A lists all namespaces\n".to_owned();
    }
    let mut table =
        Table::of(["NAMESPACE", "NAME", "READY", "SERVING", "REVISION", "BLOCKED-BY", "REASON", "AGE"]);
    for line in lines {
        let blocker = line.blocked_by.as_ref();
        let tone = match (line.ready, blocker) {
            (true, _) => Tone::Good,
            (false, Some(_)) => Tone::Bad,
            (false, None) => Tone::Moving,
        };
        let reason = blocker.map_or(&line.reason, |blocker| &blocker.reason);
        table.push([
            if with_namespace { line.namespace.as_str().into() } else { Cell::default() },
            line.name.as_str().into(),
            Cell::toned(tone, if line.ready { "yes" } else { "no" }),
            line.serving.as_str().into(),
            line.revision.map(|revision| revision.to_string()).unwrap_or_default().into(),
            blocker.map(|blocker| format!("{}/{}", blocker.kind, blocker.name)).unwrap_or_default().into(),
            if line.ready { Cell::default() } else { Cell::toned(tone, reason.as_str()) },
            line.created.map(|created| age(now, created)).unwrap_or_default().into(),
        ]);
    }
    let ready = lines.iter().filter(|line| line.ready).count();
    let sum = format!("\n{ready} of {} ready\n", lines.len());
    table.render(paint) + &paint.quiet(&sum)
}

/// Shows every change until it is interrupted, or nobody reads it any more (`| grep -m1`): on a terminal in place, elsewhere a line for each.
async fn live(api: Api<Unmanaged<BasicDeployment>>, arguments: &Arguments, mut view: View) -> Result<()> {
    let mut config = watcher::Config::default();
    config.label_selector.clone_from(&arguments.selector);
    let mut events = std::pin::pin!(watcher(api, config).default_backoff());
    let mut lines: BTreeMap<(String, String), Line> = BTreeMap::new();
    let mut relisted: BTreeMap<(String, String), Line> = BTreeMap::new();
    let key = |item: &Unmanaged<BasicDeployment>| (item.namespace().unwrap_or_default(), item.name_any());
    while view.is_read {
        let event = match timeout(REDRAW_INTERVAL, events.next()).await {
            Ok(Some(event)) => event,
            Ok(None) => return Ok(()),
            Err(_) => {
                view.redraw(&lines);
                continue;
            }
        };
        match event {
            Ok(Event::Init) => relisted.clear(),
            Ok(Event::InitApply(item)) if arguments.wants(&item) => {
                relisted.insert(key(&item), Line::of(&item.0));
            }
            Ok(Event::InitDone) => {
                let before = std::mem::replace(&mut lines, std::mem::take(&mut relisted));
                let changed = lines.iter().filter(|(key, line)| before.get(key) != Some(line));
                let changed: Vec<Line> = changed.map(|(_, line)| line.clone()).collect();
                view.show(&lines, &changed)?;
            }
            Ok(Event::Apply(item)) if arguments.wants(&item) => {
                let line = Line::of(&item.0);
                if lines.insert(key(&item), line.clone()).as_ref() != Some(&line) {
                    view.show(&lines, &[line])?;
                }
            }
            Ok(Event::Delete(item)) => {
                if lines.remove(&key(&item)).is_some() {
                    view.gone(&lines, &item.name_any())?;
                }
            }
            Ok(Event::InitApply(_) | Event::Apply(_)) => {}
            Err(error) => view.note(&format!("the watch failed and is retried: {error}")),
        }
    }
    Ok(())
}

/// The display of changes.
struct View {
    with_namespace: bool,
    bar: Option<ProgressBar>,
    has_header: bool,
    /// For the lines where there is no terminal.
    out: Box<dyn Write>,
    /// Whether somebody may still read them.
    is_read: bool,
}

impl View {
    fn new(with_namespace: bool) -> Self {
        let bar = std::io::stdout().is_terminal().then(|| {
            let style =
                ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout()).with_style(style)
        });
        Self { with_namespace, bar, has_header: false, out: Box::new(std::io::stdout()), is_read: true }
    }

    fn show(&mut self, all: &BTreeMap<(String, String), Line>, changed: &[Line]) -> Result<()> {
        if self.bar.is_some() {
            self.redraw(all);
            return Ok(());
        }
        let now = Timestamp::now();
        if !self.has_header {
            self.has_header = true;
            self.print("TIME NAMESPACE NAME READY SERVING REASON BLOCKED-BY\n")?;
        }
        changed.iter().try_for_each(|line| self.print(&plain(line, now)))
    }

    fn print(&mut self, text: &str) -> Result<()> {
        self.is_read = self.is_read && write_to(&mut self.out, text)?;
        Ok(())
    }

    /// On a terminal, ages progress as well.
    fn redraw(&self, all: &BTreeMap<(String, String), Line>) {
        if let Some(bar) = &self.bar {
            let lines: Vec<Line> = all.values().cloned().collect();
            bar.set_message(text(&lines, self.with_namespace, Timestamp::now(), Paint::for_stdout()));
        }
    }

    fn gone(&mut self, all: &BTreeMap<(String, String), Line>, name: &str) -> Result<()> {
        if self.bar.is_some() {
            return self.show(all, &[]);
        }
        self.print(&format!("{} {name} is deleted\n", clock(Timestamp::now())))
    }

    fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }
}

/// A change in a line whose fields are separated by one space, for scripts.
fn plain(line: &Line, now: Timestamp) -> String {
    let ready = if line.ready { "ready" } else { "not-ready" };
    let blocker = line.blocked_by.as_ref();
    let reason = blocker.map_or(&line.reason, |blocker| &blocker.reason);
    let blocker =
        blocker.map_or_else(|| "-".to_owned(), |blocker| format!("{}/{}", blocker.kind, blocker.name));
    let Line { namespace, name, serving, .. } = line;
    format!("{} {namespace} {name} {ready} {serving} {reason} {blocker}\n", clock(now))
}

fn clock(now: Timestamp) -> String {
    format!("{now:.0}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::connection::tests::serving;

    fn line(name: &str, status: &serde_json::Value) -> Line {
        let item: BasicDeployment = serde_json::from_value(json!({
            "apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment",
            "metadata": {"name": name, "namespace": "shop", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"replicas": 3}, "status": status,
        }))
        .unwrap();
        Line::of(&item)
    }

    fn lines() -> Vec<Line> {
        let blocker =
            json!({"apiVersion": "v1", "kind": "Pod", "name": "api-x", "reason": "ImagePullBackOff"});
        vec![
            line(
                "api",
                &json!({"observedGeneration": 2, "active": 1, "replicas": 3, "blockedBy": blocker, "revision": 4}),
            ),
            line(
                "new",
                &json!({"conditions": [{"type": "Ready", "status": "Unknown", "reason": "Pending", "message": "", "lastTransitionTime": "1970-01-01T00:00:00Z"}]}),
            ),
            line("old", &json!({"observedGeneration": 1, "ready": true, "active": 3, "replicas": 3})),
            line(
                "web",
                &json!({"observedGeneration": 2, "ready": true, "active": 3, "replicas": 3, "revision": 12}),
            ),
        ]
    }

    #[test]
    fn a_blocker_of_an_earlier_generation_is_not_shown() {
        let blocker =
            json!({"apiVersion": "v1", "kind": "Pod", "name": "api-x", "reason": "ImagePullBackOff"});
        let of = |generation: i64| {
            line("api", &json!({"observedGeneration": generation, "active": 1, "blockedBy": blocker}))
        };
        assert!(of(2).blocked_by.is_some());
        let fixed = of(1);
        assert_eq!((fixed.reason.as_str(), &fixed.blocked_by), ("Pending", &None));
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        let plain = plain(&fixed, now);
        assert!(plain.ends_with(" shop api not-ready 1/3 Pending -\n"), "{plain}");
    }

    #[test]
    fn a_table_names_what_is_not_ready_and_why() {
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        insta::assert_snapshot!(text(&lines(), true, now, Paint::OFF));
        insta::assert_snapshot!(text(&[], true, now, Paint::OFF), @"no BasicDeployment found; -A lists all namespaces");
    }

    /// A pipe whose reader has gone after the first line.
    struct Head(usize);

    impl Write for Head {
        fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
            self.0 += 1;
            if self.0 > 1 { Err(std::io::ErrorKind::BrokenPipe.into()) } else { Ok(text.len()) }
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_ends_when_nobody_reads_it() {
        let (cluster, _) = serving(|uri| {
            let item = json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 1}});
            let list = json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [item]});
            (!uri.contains("watch=true")).then_some(list)
        });
        let arguments = Arguments {
            names: Vec::new(),
            all_namespaces: false,
            selector: None,
            watch: true,
            output: Output::default(),
        };
        let view = View { bar: None, out: Box::new(Head(0)), ..View::new(false) };
        let ended = live(arguments.api(&cluster), &arguments, view);
        timeout(Duration::from_secs(3600), ended).await.unwrap().unwrap();
    }

    #[test]
    fn without_a_terminal_each_change_is_a_line_of_fields() {
        let now = "2026-01-01T00:10:00.5Z".parse().unwrap();
        let plain: String = lines().iter().map(|line| plain(line, now)).collect();
        insta::assert_snapshot!(plain);
    }
}
