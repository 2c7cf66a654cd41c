//! Settings and templates that nobody would write: the process stays up, reports whether it takes them, and recovers with good ones.
//!
//! `CATENA_SEED` repeats a run; `CATENA_OPERATIONS=100` makes a long one.

use anyhow::{Context, Result, ensure};
use catena_api::keys::BACKUP_OF;
use e2e::{
    BACKUPS, ChaosProxy, Cluster, FinalizerCleanup, Namespace, OwnKind, OwnProcess, WAIT_TIMEOUT, eventually,
    generated, is_protected,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{ResourceExt, api::ListParams};
use proptest::{prelude::*, sample::select, strategy::ValueTree};
use serde_json::{Value, json};

/// Number of settings in a run by default.
const SETTINGS: usize = 4;
/// Memory limit of the process, in bytes: a few objects, whatever its templates and expressions do.
const MOST_MEMORY: u64 = 256 << 20;

const TEMPLATES: [&str; 10] = [
    "",
    "{{ object.",
    "{apiVersion: v1, kind: Secret, metadata: {name: x}}",
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ suffix }}}, data: {mode: 08}}",
    "{% for a in range(10000) %}{% for b in range(10000) %}x{% endfor %}{% endfor %}",
    "{% set text %}{{ manifest }}{% endset %}{{ text[::-1] }}",
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ suffix }}}, data: {{ [manifest] * 99999999 }}}",
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ suffix ~ manifest }}}}",
    "{a: &a [x, x], b: &b [*a, *a], c: &c [*b, *b], d: [*c, *c]}",
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ suffix }}, ownerReferences: [{uid: {{ uid }}}]}}",
];

const EXPRESSIONS: [&str; 9] = [
    "",
    "((((((((",
    "object.metadata.name",
    "object.nowhere.at.all",
    "lists.range(99999999999).size() > 0",
    "'%.70000f'.format([1.0]) == ''",
    "',,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,'.split(',').exists(a, \
     ',,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,'.split(',').exists(b, a + b == 'x'))",
    "timestamp('9999-12-31T23:59:59Z') + duration('1h') > timestamp(object.metadata.creationTimestamp)",
    "object.metadata.name.matches('(a*)*(a*)*(a*)*b')",
];

/// The places where settings are spoiled, and the values used. The kind stays: there are objects of other tests of other kinds.
fn spoils() -> impl Strategy<Value = (&'static str, Value)> {
    let texts = |texts: &'static [&'static str]| select(texts.to_vec()).prop_map(Value::from);
    let anything = select(vec![
        json!(null),
        json!(-1),
        json!([]),
        json!({}),
        json!("\u{85}\u{2028}\n- a: b"),
        json!(1e300),
    ]);
    let fields = [
        "/kinds",
        "/backups",
        "/kinds/plain",
        "/kinds/plain/backup",
        "/kinds/plain/resource",
        "/kinds/plain/retryAfter",
        "/kinds/unknown",
        "/backups/plain",
        "/backups/plain/apiVersion",
        "/backups/plain/namespace",
        "/backups/plain/resource",
    ];
    prop_oneof![
        texts(&TEMPLATES).prop_map(|value| ("/backups/plain/template", value)),
        (select(vec!["/backups/plain/succeeded", "/backups/plain/failed"]), texts(&EXPRESSIONS)),
        (select(fields.to_vec()), anything),
    ]
}

fn settings(kind: &OwnKind, backups: &Namespace) -> Value {
    let mut entry = kind.described();
    (entry["backup"], entry["retryAfter"]) = ("plain".into(), "3s".into());
    json!({
        "kinds": {"plain": entry},
        "backups": {"plain": {
            "apiVersion": "v1", "kind": "ConfigMap", "resource": "configmaps", "namespace": backups.name,
            "template": "{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ name ~ '-' ~ suffix }}}, data: {manifest: {{ manifest }}}}",
            "succeeded": "has(object.data.manifest)", "failed": "false",
        }},
    })
}

fn spoiled(mut settings: Value, place: &str, value: Value) -> Value {
    let (parent, field) = place.rsplit_once('/').unwrap_or_default();
    if let Some(parent) = settings.pointer_mut(parent) {
        parent[field] = value;
    }
    settings
}

/// Gives the process other settings, and waits until it has reported whether it takes them.
async fn configure(process: &OwnProcess, settings: &Value) -> Result<()> {
    let said = || {
        let log = process.log();
        ["the settings changed", "keeps the previous settings"]
            .map(|words| log.matches(words).count())
            .iter()
            .sum::<usize>()
    };
    let before = said();
    process.configure(settings)?;
    eventually("it says what it thinks of its settings", WAIT_TIMEOUT, async || match said() {
        count if count > before => Ok(()),
        _ => Err(process.log().lines().last().map(str::to_owned)),
    })
    .await;
    let memory = process.resident().context("it does not run any more")?;
    ensure!(memory < MOST_MEMORY, "it holds {memory} bytes");
    Ok(())
}

/// Protected, deleted, backed up once, gone.
async fn is_backed_up(objects: &OwnKind, backups: &Namespace, name: &str) -> Result<()> {
    let uid = objects.add(name, &json!({})).await?.uid().context("uid")?;
    objects.until(name, "is protected", is_protected).await;
    objects.delete(name).await?;
    objects.until_gone(name).await;
    let of = ListParams::default().labels(&format!("{BACKUP_OF}={uid}"));
    let made = backups.api::<ConfigMap>().list(&of).await?.items.len();
    ensure!(made == 1, "{name} has {made} backups");
    Ok(())
}

#[tokio::test]
async fn whatever_settings_it_is_given_the_process_goes_on_and_good_ones_bring_it_back() -> Result<()> {
    e2e::needs!(HostProcesses);
    let count = std::env::var("CATENA_OPERATIONS").map_or(Ok(SETTINGS), |count| count.parse())?;
    let cluster = Cluster::with(&[]).await?;
    let namespace = cluster.namespace("any-settings").await?;
    let backups = cluster.namespace("backups").await?;
    let objects = FinalizerCleanup::of(OwnKind::plain(&cluster, &namespace).await?);
    let proxy = ChaosProxy::start().await?;
    let good = settings(&objects, &backups);
    let process = OwnProcess::start(OwnProcess::program(BACKUPS)?, &proxy, &good)?;
    is_backed_up(&objects, &backups, "before").await?;

    let mut runner = generated::runner(0)?;
    for number in 0..count {
        let tree = spoils().new_tree(&mut runner).map_err(|reason| anyhow::anyhow!("{reason}"))?;
        let (place, value) = tree.current();
        let round = async {
            let held = format!("held-{number}");
            objects.add(&held, &json!({})).await?;
            objects.until(&held, "is protected", is_protected).await;
            configure(&process, &spoiled(good.clone(), place, value.clone())).await?;
            let name = format!("meanwhile-{number}");
            objects.add(&name, &json!({})).await?;
            objects.delete(&held).await?;
            configure(&process, &good).await?;
            is_backed_up(&objects, &backups, &format!("after-{number}")).await?;
            objects.delete(&name).await?;
            objects.until_gone(&held).await;
            objects.until_gone(&name).await;
            Ok::<_, anyhow::Error>(())
        };
        println!("{number}: {place} is {value}");
        round.await.with_context(|| format!("{number}: {place} is {value}"))?;
    }
    Ok(())
}
