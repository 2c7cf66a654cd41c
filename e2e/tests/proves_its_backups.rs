//! Which objects count as the backup of an object, whatever the settings, other objects and other people claim.

use anyhow::{Result, ensure};
use catena_api::keys::{BACKUP_OF, BACKUP_STATUS};
use e2e::{
    BACKUPS, ChaosProxy, Cluster, FinalizerCleanup, Namespace, OwnKind, OwnProcess, WAIT_TIMEOUT, eventually,
    is_protected,
};
use k8s_openapi::api::{batch::v1::Job, core::v1::ConfigMap};
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
    core::DynamicObject,
};
use serde_json::{Value, json};

/// The label that the entries of these tests select.
const ENTRY: &str = "e2e.catena.dev/proof";

/// backup-controller as a process of the test, which changes its settings.
struct Run {
    proxy: ChaosProxy,
    process: OwnProcess,
    // In this order: the leftovers of the process are released after its end and before their namespace goes.
    objects: FinalizerCleanup,
    backups: Namespace,
    _namespace: Namespace,
}

impl Run {
    async fn start(cluster: &Cluster, name: &str, kinds: &Value) -> Result<Self> {
        let namespace = cluster.namespace(name).await?;
        let backups = cluster.namespace("proofs").await?;
        let objects = FinalizerCleanup::of(OwnKind::plain(cluster, &namespace).await?);
        let proxy = ChaosProxy::start().await?;
        let settings = settings(&objects, &backups, kinds);
        let process = OwnProcess::start(OwnProcess::program(BACKUPS)?, &proxy, &settings)?;
        Ok(Self { proxy, process, objects, backups, _namespace: namespace })
    }

    /// Gives it other entries.
    fn configure(&self, kinds: &Value) -> Result<()> {
        self.process.configure(&settings(&self.objects, &self.backups, kinds))
    }

    /// Gives it other entries, and waits until they are in force, which shows in the protection by a new one.
    async fn configured(&self, kinds: &Value) -> Result<()> {
        let mut kinds = kinds.clone();
        kinds["probes"] = entry("probe", "first");
        self.configure(&kinds)?;
        self.protected("probe", "probe").await?;
        Ok(())
    }

    async fn protected(&self, name: &str, selected_by: &str) -> Result<DynamicObject> {
        self.objects.add(name, &json!({ENTRY: selected_by})).await?;
        Ok(self.objects.until(name, "is protected", is_protected).await)
    }

    /// The backup that a template created for an object, once it exists while the object still does.
    async fn backup(&self, of: &DynamicObject, template: &str) -> ConfigMap {
        let selector = ListParams::default().labels(&format!("{BACKUP_OF}={}", of.uid().unwrap_or_default()));
        eventually(&format!("there is a backup by {template}"), WAIT_TIMEOUT, async || {
            let found = self.backups.api::<ConfigMap>().list(&selector).await;
            let found = found.map_err(|error| error.to_string())?.items;
            let is_sought = |map: &&ConfigMap| map.data.iter().flatten().any(|(_, value)| value == template);
            found.iter().find(is_sought).cloned().ok_or_else(|| format!("{} backups", found.len()))
        })
        .await
    }

    async fn carry_out(&self, backup: &ConfigMap) -> Result<()> {
        self.backups.merge::<ConfigMap>(&backup.name_any(), json!({"data": {"phase": "done"}})).await?;
        Ok(())
    }

    async fn until_reason(&self, name: &str, reason: &str) {
        self.objects
            .until(name, &format!("says {reason}"), |object| {
                let status = object.annotations().get(BACKUP_STATUS).map(String::as_str).unwrap_or_default();
                serde_json::from_str(status).unwrap_or(Value::Null)["reason"] == reason
            })
            .await;
    }
}

fn entry(selects: &str, backup: &str) -> Value {
    json!({
        "backup": backup, "retryAfter": "1s", "selector": {"matchLabels": {ENTRY: selects}},
    })
}

/// Entries for the objects of the test. Of their backups, two are completed by hand, one is of a kind that is not served,
/// and one is a Job.
fn settings(objects: &OwnKind, backups: &Namespace, kinds: &Value) -> Value {
    let mut kinds = kinds.clone();
    for entry in kinds.as_object_mut().into_iter().flat_map(|kinds| kinds.values_mut()) {
        for (field, value) in objects.described().as_object().into_iter().flatten() {
            entry[field] = value.clone();
        }
    }
    let backup = |by: &str| {
        let template = format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {{{{ name ~ '-' ~ suffix }}}}}}, data: {{by: {by}}}}}"
        );
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "resource": "configmaps", "namespace": backups.name,
            "template": template, "succeeded": "object.data.?phase.orValue('') == 'done'",
        })
    };
    let lost = json!({
        "apiVersion": "e2e.catena.dev/v1", "kind": "Lost", "resource": "losts", "namespace": backups.name,
        "template": "{apiVersion: e2e.catena.dev/v1, kind: Lost, metadata: {name: {{ suffix }}}}", "succeeded": "true",
    });
    let unseen = json!({
        "apiVersion": "batch/v1", "kind": "Job", "resource": "jobs", "namespace": backups.name, "template": NEVER_RUN,
        "succeeded": "object.?status.?conditions.orValue([]).exists(c, c.type == 'Complete' && c.status == 'True')",
    });
    json!({"kinds": kinds, "backups": {
        "first": backup("first"), "second": backup("second"), "lost": lost, "unseen": unseen,
    }})
}

/// A Job that would delete itself at once, if it ran.
const NEVER_RUN: &str = r#"
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ name ~ "-" ~ suffix }}
spec:
  suspend: true
  ttlSecondsAfterFinished: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: main}]
"#;

#[tokio::test]
async fn a_backup_by_a_former_policy_does_not_prove_the_present_one() -> Result<()> {
    e2e::needs!(HostProcesses);
    let cluster = Cluster::with(&[]).await?;
    let run = Run::start(&cluster, "policy", &json!({"maps": entry("yes", "first")})).await?;
    let web = run.protected("web", "yes").await?;
    run.objects.delete("web").await?;
    let first = run.backup(&web, "first").await;

    run.configured(&json!({"maps": entry("yes", "second")})).await?;
    run.carry_out(&first).await?;
    let second = run.backup(&web, "second").await;
    ensure!(is_protected(&run.objects.get("web").await?), "it was let go too soon");
    run.carry_out(&second).await?;
    run.objects.until_gone("web").await;
    Ok(())
}

#[tokio::test]
async fn what_somebody_else_made_under_the_name_of_a_backup_proves_nothing() -> Result<()> {
    e2e::needs!(HostProcesses);
    let cluster = Cluster::with(&[]).await?;
    let mut run = Run::start(&cluster, "forged", &json!({"maps": entry("yes", "first")})).await?;
    let web = run.protected("web", "yes").await?;
    run.objects.delete("web").await?;
    let real = run.backup(&web, "first").await;

    run.process.stop().await?;
    let backups = run.backups.api::<ConfigMap>();
    backups.delete(&real.name_any(), &DeleteParams::default()).await?;
    let mut forged = real.clone();
    forged.metadata.uid = None;
    forged.metadata.resource_version = None;
    forged.metadata.managed_fields = None;
    forged.data.get_or_insert_default().insert("phase".into(), "done".into());
    backups.create(&PostParams::default(), &forged).await?;
    let _again = run.process.spawn(&[])?;
    run.until_reason("web", "BackupNameTaken").await;

    backups.delete(&real.name_any(), &DeleteParams::default()).await?;
    let real = run.backup(&web, "first").await;
    run.carry_out(&real).await?;
    run.objects.until_gone("web").await;
    Ok(())
}

/// A Job that deletes itself may end while no controller is there to see its outcome.
#[tokio::test]
async fn an_attempt_that_is_gone_unseen_is_told_by_the_next_process_and_another_follows() -> Result<()> {
    e2e::needs!(HostProcesses);
    let cluster = Cluster::with(&[]).await?;
    let mut entry = entry("yes", "unseen");
    // It tells for so long.
    entry["retryAfter"] = "20s".into();
    let mut run = Run::start(&cluster, "unseen", &json!({"maps": entry})).await?;
    let web = run.protected("web", "yes").await?;
    run.objects.delete("web").await?;
    let jobs = run.backups.api::<Job>();
    let of = ListParams::default().labels(&format!("{BACKUP_OF}={}", web.uid().unwrap_or_default()));
    let until_one = async || {
        eventually("there is a Job", WAIT_TIMEOUT, async || {
            let found = jobs.list(&of).await.map_err(|error| error.to_string())?.items;
            found.first().map(ResourceExt::name_any).ok_or_else(|| "there is none".to_owned())
        })
        .await
    };
    let first = until_one().await;
    run.process.stop().await?;
    jobs.delete(&first, &DeleteParams::background()).await?;
    eventually("it is gone", WAIT_TIMEOUT, async || match jobs.get_opt(&first).await {
        Ok(None) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;

    let _again = run.process.spawn(&[])?;
    run.until_reason("web", "BackupVanished").await;
    let second = until_one().await;
    ensure!(second != first, "the same attempt was made again, uncounted");
    ensure!(is_protected(&run.objects.get("web").await?), "it was let go without a backup");
    Ok(())
}

#[tokio::test]
async fn objects_that_move_to_another_entry_are_protected_all_the_time() -> Result<()> {
    e2e::needs!(HostProcesses);
    let cluster = Cluster::with(&[]).await?;
    let run = Run::start(&cluster, "moves", &json!({"former": entry("yes", "first")})).await?;
    for number in 0..20 {
        run.protected(&format!("web-{number}"), "yes").await?;
    }
    eventually("the protection of each was answered", WAIT_TIMEOUT, async || {
        let writes = run.proxy.writes();
        let is_answered = |number| writes.iter().any(|write| write.contains(&format!("/web-{number} → 200")));
        if (0..20).all(is_answered) { Ok(()) } else { Err(writes) }
    })
    .await;
    let before = run.proxy.writes().len();

    let mut former = entry("yes", "first");
    former["protect"] = false.into();
    run.configured(&json!({"former": former, "present": entry("yes", "second")})).await?;
    let writes = run.proxy.writes()[before..].to_vec();
    let of_others: Vec<_> = writes.iter().filter(|write| write.contains("/gadgets/web-")).collect();
    ensure!(of_others.is_empty(), "{of_others:#?}");

    // Once no entry protects them, they lose the finalizer.
    run.configure(&json!({"former": former}))?;
    for number in 0..20 {
        let name = format!("web-{number}");
        run.objects.until(&name, "is not protected any more", |object| !is_protected(object)).await;
    }
    Ok(())
}

#[tokio::test]
async fn what_waits_for_a_backup_of_a_lost_kind_goes_when_its_entry_protects_no_more() -> Result<()> {
    e2e::needs!(HostProcesses);
    let cluster = Cluster::with(&[]).await?;
    let run = Run::start(&cluster, "lost", &json!({"maps": entry("yes", "lost")})).await?;
    run.protected("web", "yes").await?;
    run.objects.delete("web").await?;
    run.until_reason("web", "BackupKindNotServed").await;

    let mut entry = entry("yes", "lost");
    entry["protect"] = false.into();
    run.configure(&json!({"maps": entry}))?;
    run.objects.until_gone("web").await;
    let told = run.backups.api::<ConfigMap>().list(&ListParams::default().labels(BACKUP_OF)).await?;
    ensure!(told.items.is_empty(), "it was backed up");
    Ok(())
}
