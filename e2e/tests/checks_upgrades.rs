//! kubectl catena upgrade check: each live object is tried by the API server itself against the new definition, and nothing changes.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use e2e::{
    Cluster, ForeignKinds, OwnKind, WAIT_TIMEOUT, catena, catena_process, eventually, helm, kubectl_apply,
    succeeds,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

const SCRATCH: &str = "catena.dev/upgrade-check";
const UNTIL: &str = "catena.dev/upgrade-check-until";

/// The number of objects; 500 and 10,000 are tried by hand.
fn count() -> Result<usize> {
    std::env::var("CATENA_OBJECTS").map_or(Ok(60), |count| Ok(count.parse()?))
}

fn fields() -> Value {
    json!({
        "size": {"type": "integer"}, "legacy": {"type": "string"}, "level": {"type": "integer", "default": 1},
        "mode": {"type": "string", "enum": ["New", "Old"]},
        "rules": {"type": "array", "items": {"type": "object", "properties": {"color": {"type": "string"}}}},
    })
}

/// The next version: without two fields, and with fewer values of another one.
fn fields_of_the_next() -> Value {
    let mut fields = fields();
    for gone in ["legacy", "level"] {
        fields.as_object_mut().and_then(|fields| fields.remove(gone));
    }
    fields["mode"]["enum"] = json!(["New"]);
    fields["rules"]["items"]["properties"] = json!({});
    fields
}

/// Scratch definitions of this kind.
async fn scratches(cluster: &Cluster) -> Result<Vec<CustomResourceDefinition>> {
    let listed =
        cluster.all::<CustomResourceDefinition>().list(&ListParams::default().labels(SCRATCH)).await?;
    Ok(listed.items)
}

#[tokio::test]
async fn exactly_the_objects_that_lose_a_field_or_would_be_refused_are_named_and_nothing_changes()
-> Result<()> {
    let cluster = Cluster::with(&[]).await?;
    let namespace = cluster.namespace("check").await?;
    let kind = OwnKind::new(&cluster, &namespace);
    let version = |fields: &Value| [OwnKind::version("v1", true, fields)];
    kind.install(&kind.definition(&version(&fields()))).await?;
    let count = count()?;
    let spec = |number: usize| match number {
        3 | 17 | 42 => json!({"size": number, "mode": "New", "legacy": format!("value of {number}")}),
        5 => json!({"size": 5, "mode": "Old"}),
        // Both at once.
        9 => json!({"size": 9, "mode": "Old", "rules": [{}, {"color": "red"}]}),
        _ => json!({"size": number, "mode": "New"}),
    };
    kind.create("v1", (0..count).map(spec).collect()).await?;
    let before = kind.objects("v1").await?;

    let file = kind.file("next.yaml", &kind.definition(&version(&fields_of_the_next())))?;
    let started = std::time::Instant::now();
    let said = catena(&namespace.name, &["upgrade", "check", &file, "-o", "json"]).await?;
    eprintln!("{count} objects were checked in {:?}", started.elapsed());
    assert_eq!(said.code, 4, "{said:?}");
    let json = said.json()?;
    let checked = &json["definitions"][0];
    assert_eq!(checked["objects"], count, "{checked}");
    let lost = |object: &Value| (object["name"].clone(), object["fields"].clone());
    let mut pruned: Vec<_> = checked["pruned"].as_array().context("pruned")?.iter().map(lost).collect();
    pruned.sort_by_key(|(name, _)| name.to_string());
    let legacy = |number: usize| {
        let value = format!("value of {number}");
        (json!(format!("gadget-{number}")), json!([{"path": "spec.legacy", "value": value}]))
    };
    let color = json!([{"path": "spec.rules[1].color", "value": "red"}]);
    assert_eq!(pruned, [legacy(17), legacy(3), legacy(42), (json!("gadget-9"), color)], "{checked}");
    let refused: Vec<_> = checked["refused"].as_array().context("refused")?.iter().collect();
    let names: Vec<_> = refused.iter().map(|object| object["name"].as_str().unwrap_or_default()).collect();
    assert_eq!(names, ["gadget-5", "gadget-9"], "{checked}");
    assert_eq!(refused[0]["causes"][0]["field"], "spec.mode", "{checked}");
    assert!(refused[0]["causes"][0]["message"].to_string().contains("Old"), "{checked}");
    assert_eq!(checked["defaultsDropped"]["spec.level"], count, "{checked}");
    let rules = checked["findings"].to_string();
    for rule in ["fieldRemoved", "enumNarrowed"] {
        assert!(rules.contains(rule), "{rules}");
    }

    let text = catena(&namespace.name, &["upgrade", "check", &file]).await?;
    assert!(text.code == 4 && text.out.contains("\"value of 17\""), "{text:?}");
    assert_eq!(kind.objects("v1").await?, before, "an object was changed");
    Ok(())
}

#[tokio::test]
async fn a_definition_that_only_adds_is_fine_and_one_that_breaks_a_rule_without_effect_is_told_apart()
-> Result<()> {
    let cluster = Cluster::with(&[]).await?;
    let namespace = cluster.namespace("check-rules").await?;
    let kind = OwnKind::new(&cluster, &namespace);
    let version = |fields: &Value| [OwnKind::version("v1", true, fields)];
    kind.install(&kind.definition(&version(&fields()))).await?;
    kind.create("v1", vec![json!({"size": 1})]).await?;
    let mut more = fields();
    more["added"] = json!({"type": "string"});
    let fine = kind.file("fine.yaml", &kind.definition(&version(&more)))?;
    let said = succeeds(&namespace.name, &["upgrade", "check", &fine]).await?;
    assert!(said.out.contains("all 1 objects stay valid"), "{said:?}");
    let mut less = fields();
    less.as_object_mut().and_then(|fields| fields.remove("legacy"));
    let breaks = kind.file("breaks.yaml", &kind.definition(&version(&less)))?;
    let said = catena(&namespace.name, &["upgrade", "check", &breaks]).await?;
    assert!(said.code == 3 && said.out.contains("fieldRemoved"), "{said:?}");
    Ok(())
}

#[tokio::test]
async fn a_stored_version_that_the_new_definition_lacks_is_said_before() -> Result<()> {
    let cluster = Cluster::with(&[]).await?;
    let namespace = cluster.namespace("check-stored").await?;
    let kind = OwnKind::new(&cluster, &namespace);
    kind.install(&kind.definition(&[OwnKind::version("v1", true, &fields())])).await?;
    kind.create("v1", vec![json!({"size": 1})]).await?;
    let without = kind.file("without.yaml", &kind.definition(&[OwnKind::version("v2", true, &fields())]))?;
    let said = catena(&namespace.name, &["upgrade", "check", &without]).await?;
    assert!(said.code == 4 && said.out.contains("status.storedVersions"), "{said:?}");
    assert!(said.out.contains(&format!("upgrade migrate {}", kind.name())), "{said:?}");
    Ok(())
}

/// Starts a check, and waits until it has made its scratch definition.
async fn started(cluster: &Cluster, kind: &OwnKind, file: &str) -> Result<(tokio::process::Child, String)> {
    let child =
        catena_process(&kind.namespace, &["upgrade", "check", file])?.stdout(Stdio::null()).spawn()?;
    let name = eventually("the check has made its scratch definition", WAIT_TIMEOUT, async || {
        let found = scratches(cluster).await.map_err(|error| error.to_string())?;
        let is_it =
            |scratch: &&CustomResourceDefinition| scratch.spec.names.singular.as_deref() == Some("gadget");
        let found = found.iter().find(is_it).map(ResourceExt::name_any);
        found.ok_or_else(|| "none yet".to_owned())
    })
    .await;
    Ok((child, name))
}

#[tokio::test]
async fn the_charts_of_the_checkout_can_replace_what_is_installed() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("check-charts").await?;
    namespace.create(&e2e::deployment("web", 1)).await?;
    namespace.until_ready("web").await;
    let charts = ["basic-deployment-controller", "basic-replicaset-controller"]
        .map(|chart| e2e::checkout().join("charts").join(chart).display().to_string());
    let mut manifests = String::new();
    for chart in &charts {
        manifests += &helm(&["template", "--include-crds", "--is-upgrade", "check", chart]).await?;
    }
    let mut check = catena_process(&namespace.name, &["upgrade", "check", "-", "-o", "json"])?;
    let mut check = check.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    check.stdin.take().context("standard input")?.write_all(manifests.as_bytes()).await?;
    let said = check.wait_with_output().await?;
    ensure!(said.status.success(), "{said:?}");
    let said: Value = serde_json::from_slice(&said.stdout)?;
    assert_eq!(said["definitions"].as_array().map(Vec::len), Some(4), "{said}");
    for definition in said["definitions"].as_array().into_iter().flatten() {
        assert_eq!(definition["installed"], true, "{definition}");
    }
    Ok(())
}

#[tokio::test]
async fn the_definition_of_another_project_is_checked_from_release_to_release() -> Result<()> {
    e2e::needs!(NoKindsOfOthers);
    let cluster = Cluster::with(&[]).await?;
    let namespace = cluster.namespace("check-foreign").await?;
    let kinds = ForeignKinds::install(&["cert-manager-0.13"]).await?;
    let certificate = |name: &str, spec: &str| {
        format!(
            "{{apiVersion: cert-manager.io/v1alpha2, kind: Certificate, metadata: {{name: {name}}}, spec: {{secretName: s, \
             issuerRef: {{name: ca}}, {spec}}}}}"
        )
    };
    for (name, spec) in [
        ("plain", "dnsNames: [a.example.com]"),
        ("keyed", "keySize: 4096, keyAlgorithm: rsa"),
        ("ours", "organization: [us]"),
    ] {
        kubectl_apply(&namespace.name, &certificate(name, spec)).await?;
    }
    let next = format!("{}/crds/cert-manager-1.6.yaml", env!("CARGO_MANIFEST_DIR"));
    let said = catena(&namespace.name, &["upgrade", "check", &next, "-o", "json"]).await?;
    assert_eq!(said.code, 4, "{said:?}");
    let checked = &said.json()?["definitions"][0];
    let fields = |name: &str| {
        let objects = checked["pruned"].as_array().into_iter().flatten();
        objects
            .filter(|object| object["name"] == name)
            .map(|object| object["fields"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(checked["objects"], 3, "{checked}");
    let keyed =
        json!([{"path": "spec.keyAlgorithm", "value": "rsa"}, {"path": "spec.keySize", "value": 4096}]);
    assert_eq!(fields("keyed"), [keyed], "{checked}");
    assert_eq!(fields("ours"), [json!([{"path": "spec.organization", "value": ["us"]}])], "{checked}");
    assert!(fields("plain").is_empty(), "{checked}");
    assert!(checked["findings"].to_string().contains("servedVersionRemoved"), "{checked}");
    kinds.remove().await
}

#[tokio::test]
async fn bad_input_is_answered_with_what_to_do() -> Result<()> {
    let cluster = Cluster::with(&[]).await?;
    let namespace = cluster.namespace("check-bad").await?;
    let kind = OwnKind::new(&cluster, &namespace);
    let nothing = kind.file("nothing.yaml", &json!({"kind": "ConfigMap"}))?;
    let old = json!({
        "apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition", "metadata": {"name": "a.b"},
    });
    let old = kind.file("old.yaml", &old)?;
    let chart = kind.file("chart.tgz", &json!({}))?;
    // As gzip begins.
    std::fs::write(&chart, [0x1f, 0x8b, 0x08])?;
    for (arguments, told) in [
        (&["upgrade", "check"][..], "FILE"),
        (&["upgrade", "check", "/nowhere.yaml"], "/nowhere.yaml cannot be read"),
        (&["upgrade", "check", &nothing], "holds no CustomResourceDefinition"),
        (
            &["upgrade", "check", &chart],
            "chart.tgz is not text: name YAML files; for a chart, pipe the output of `helm template",
        ),
        (&["upgrade", "check", "-"], "standard input is empty"),
        (&["upgrade", "check", &old], "only apiextensions.k8s.io/v1 is served"),
    ] {
        let said = catena(&namespace.name, arguments).await?;
        assert!(said.code == 1 && said.err.contains(told), "{arguments:?}: {said:?}");
    }
    Ok(())
}

mod alone {
    use super::{
        Api, Cluster, Context, CustomResourceDefinition, OwnKind, Patch, PatchParams, Pid, ResourceExt,
        Result, Signal, UNTIL, WAIT_TIMEOUT, ensure, eventually, fields, json, kill_process, scratches,
        started, succeeds,
    };

    #[tokio::test]
    async fn a_scratch_definition_is_removed_after_an_interrupt_and_by_the_next_check_after_a_kill()
    -> Result<()> {
        // Other checks of gadgets would be taken for this one.
        let cluster = Cluster::alone().await?;
        let namespace = cluster.namespace("check-end").await?;
        let kind = OwnKind::new(&cluster, &namespace);
        let definition = kind.definition(&[OwnKind::version("v1", true, &fields())]);
        kind.install(&definition).await?;
        kind.create("v1", (0..500).map(|size| json!({"size": size})).collect()).await?;
        let file = kind.file("same.yaml", &definition)?;
        let definitions: Api<CustomResourceDefinition> = cluster.all();
        let until_gone = async |name: &str| {
            eventually("the scratch definition is gone", WAIT_TIMEOUT, async || {
                match definitions.get_opt(name).await {
                    Ok(None) => Ok(()),
                    Ok(Some(_)) => Err("it is there".to_owned()),
                    Err(error) => Err(error.to_string()),
                }
            })
            .await;
        };
        let signal = |child: &tokio::process::Child, signal| -> Result<()> {
            let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
            Ok(kill_process(pid.context("the check has ended")?, signal)?)
        };

        let (mut check, name) = started(&cluster, &kind, &file).await?;
        signal(&check, Signal::INT)?;
        let ended = check.wait().await?;
        ensure!(ended.code() == Some(130), "the check ended with {ended}");
        until_gone(&name).await;

        let (mut check, name) = started(&cluster, &kind, &file).await?;
        signal(&check, Signal::KILL)?;
        check.wait().await?;
        let beside = succeeds(&namespace.name, &["upgrade", "check", &file, "-o", "json"]).await?.json()?;
        assert_eq!(beside["leftovers"][0]["name"], name, "{beside}");
        assert_eq!(beside["leftovers"][0]["removed"], false, "a running check may use it: {beside}");
        let past = json!({"metadata": {"annotations": {UNTIL: "2026-01-01T00:00:00Z"}}});
        definitions.patch(&name, &PatchParams::default(), &Patch::Merge(past)).await?;
        let after = succeeds(&namespace.name, &["upgrade", "check", &file, "-o", "json"]).await?.json()?;
        assert_eq!(after["leftovers"][0]["removed"], true, "{after}");
        until_gone(&name).await;
        eventually("no scratch definition is left", WAIT_TIMEOUT, async || match scratches(&cluster).await {
            Ok(left) if left.is_empty() => Ok(()),
            Ok(left) => Err(left.iter().map(ResourceExt::name_any).collect::<Vec<_>>().join(", ")),
            Err(error) => Err(error.to_string()),
        })
        .await;
        Ok(())
    }
}
