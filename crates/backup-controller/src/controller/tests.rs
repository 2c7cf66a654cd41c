//! Several passes in a row.

use operator_kit::{
    report::{Events, Reported},
    run::{LiveSettings, Triggers},
    watch::{ServedKinds, Watches},
    write::Writer,
};
use serde_json::json;

use super::*;
use crate::{
    fixtures::{MANAGER, TEMPLATE, settings, target, watched},
    memory::Memory,
    metrics::HeldMetrics,
    mock_server::{Answer, DATE, Sent, answering},
    observe::{BackupWatches, Namespaces},
};

/// The controller in a cluster without backups that serves their kind in these versions.
fn controller(
    versions: &'static [&'static str],
    memory: &Memory,
) -> (ProtectedObjects, crate::mock_server::Log) {
    let (client, log) = answering(Some(DATE), move |sent| answer(versions, sent));
    let (writer, events) = (Writer::over(client.clone(), MANAGER), Events::over(client.clone(), MANAGER));
    let served_kinds = ServedKinds::new(client.clone());
    let (watches, triggers) = (Watches::default(), Triggers::default());
    let backups = BackupWatches::new(client.clone(), served_kinds.clone(), watches.clone(), triggers.clone());
    let namespaces = Namespaces::new(client.clone(), watches, triggers);
    let settings = LiveSettings::fixed(settings(TEMPLATE, "backups"));
    let executor = Executor::new(writer, events, memory.clone(), HeldMetrics::new());
    let observer = Observer::new(client, served_kinds, settings, namespaces, backups, memory.clone());
    (ProtectedObjects { observer, executor }, log)
}

fn answer(versions: &[&str], sent: &Sent) -> Answer {
    let path = sent.uri.split('?').next().unwrap();
    let name = path.rsplit('/').next().unwrap();
    let status = |details| Answer::Json(404, json!({"reason": "NotFound", "code": 404, "details": details}));
    if path.starts_with("/api/v1/") {
        return Answer::Json(200, target("shop"));
    }
    let version = |version: &&str| json!({"groupVersion": format!("batch/{version}"), "version": version});
    let all: Vec<_> = versions.iter().map(version).collect();
    if path == "/apis" {
        let groups = if all.is_empty() { json!([]) } else { json!([{"name": "batch", "versions": all}]) };
        return Answer::Json(200, json!({"groups": groups}));
    }
    let Some(served) = versions.iter().find(|version| path.starts_with(&format!("/apis/batch/{version}")))
    else {
        return status(json!({}));
    };
    if path == format!("/apis/batch/{served}") {
        let job = json!({"name": "jobs", "singularName": "", "namespaced": true, "kind": "Job", "verbs": []});
        return Answer::Json(200, json!({"groupVersion": format!("batch/{served}"), "resources": [job]}));
    }
    // The namespace is missing: the answer to a create names the namespace, the answer to a read names the object.
    if sent.verb == "POST" { status(json!({"name": "backups"})) } else { status(json!({"name": name})) }
}

async fn pass(controller: &ProtectedObjects) -> Result<Next, &'static str> {
    let target = watched(&settings(TEMPLATE, "backups"), &target("shop"));
    let observed = controller.observe(target, Attempt::Allowed).await.unwrap();
    let action = controller.decide(&observed);
    controller.act(observed, action).await.map_err(|error| error.reason())
}

#[tokio::test]
async fn a_backup_that_has_nowhere_to_go_is_refused_in_the_pass_after_its_create_and_created_again_in_the_next()
 {
    for versions in [&["v1"][..], &[]] {
        let memory = Memory::default();
        let (controller, log) = controller(versions, &memory);
        let creates = || log.take().iter().filter(|sent| sent.verb == "POST").count();
        for refusals in 1..3 {
            assert_eq!((pass(&controller).await, creates()), (Ok(Next::Again), 1));
            assert_eq!((pass(&controller).await, creates()), (Err("BackupKindNotServed"), 0));
            assert_eq!(memory.refusals("u"), refusals);
        }
    }
}
