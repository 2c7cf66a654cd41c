//! Several passes in a row.

use operator_kit::{
    report::Events,
    run::{SettingsHandle, Triggers},
    write::Writer,
};
use operator_watch::Watches;
use serde_json::json;

use super::*;
use crate::{
    fixtures::{MANAGER, TEMPLATE, settings, target, watched},
    memory::Memory,
    metrics::HeldMetrics,
    mock_server::{Answer, DATE, Sent, answering},
    observe::{BackupWatches, Namespaces},
};

/// The controller in a cluster without backups and without their namespace, which serves their kind or not.
fn controller(is_served: bool, memory: &Memory) -> (ProtectedObjects, crate::mock_server::Log) {
    over(memory, move |sent| answer(is_served, sent))
}

fn over(
    memory: &Memory,
    answer: impl Fn(&Sent) -> Answer + Send + Sync + 'static,
) -> (ProtectedObjects, crate::mock_server::Log) {
    let (client, log) = answering(Some(DATE), answer);
    let (writer, events) = (Writer::over(client.clone(), MANAGER), Events::over(client.clone(), MANAGER));
    let (watches, triggers) = (Watches::default(), Triggers::default());
    let backups = BackupWatches::new(client.clone(), watches.clone(), triggers.clone());
    let namespaces = Namespaces::new(client.clone(), watches, triggers);
    let settings = SettingsHandle::fixed(settings(TEMPLATE, "backups"));
    let executor = Executor::new(writer, events, memory.clone(), HeldMetrics::default());
    let observer = Observer::new(client, settings, namespaces, backups, memory.clone());
    (ProtectedObjects { observer, executor }, log)
}

fn answer(is_served: bool, sent: &Sent) -> Answer {
    let path = sent.uri.split('?').next().unwrap();
    let absent = |details| Answer::Json(404, json!({"reason": "NotFound", "code": 404, "details": details}));
    if path.starts_with("/api/v1/") {
        return Answer::Json(200, target("shop"));
    }
    if !is_served {
        return Answer::Json(404, json!("404 page not found"));
    }
    // The answer to a create names the namespace, the answer to a read names the object.
    match path.rsplit('/').next() {
        Some(name) if sent.verb == "GET" => absent(json!({"name": name})),
        _ => absent(json!({"kind": "namespaces", "name": "backups"})),
    }
}

async fn pass(controller: &ProtectedObjects) -> Result<Requeue, &'static str> {
    let target = watched(&settings(TEMPLATE, "backups"), &target("shop"));
    let observed = controller.observe(target, Backoffs::default()).await.unwrap();
    let action = controller.decide(&observed);
    controller.act(observed, action).await.map_err(|error| error.reason)
}

#[tokio::test]
async fn a_backup_without_its_namespace_is_refused_and_none_is_created_while_its_kind_is_not_served() {
    for (is_served, reason, creates) in [(true, "NamespaceMissing", 1), (false, "BackupKindNotServed", 0)] {
        let memory = Memory::default();
        let (controller, log) = controller(is_served, &memory);
        for pass_number in 1..3 {
            assert_eq!(pass(&controller).await, Err(reason));
            let sent =
                log.take().into_iter().filter(|sent| sent.verb == "POST" && !sent.uri.contains("/events"));
            let refusals = memory.refusals("u", &settings(TEMPLATE, "backups").kinds["maps"]);
            assert_eq!((sent.count(), refusals), (creates, pass_number * u32::from(is_served)));
        }
    }
}

#[tokio::test]
async fn an_object_whose_backup_cannot_be_read_says_why_it_is_held() {
    let memory = Memory::default();
    let broken = "conversion webhook for ops.example/v1, Kind=Backup failed";
    let (controller, log) = over(&memory, move |sent| {
        let is_backup = !sent.uri.starts_with("/api/v1/");
        if is_backup && sent.verb == "GET" {
            return Answer::Json(500, json!({"kind": "Status", "code": 500, "message": broken}));
        }
        answer(true, sent)
    });
    let target = watched(&settings(TEMPLATE, "backups"), &target("shop"));
    let failure = controller.observe(target.clone(), Backoffs::default()).await.unwrap_err();
    drop(log.take());
    let observed = controller.observe(target, Backoffs::of_everything(failure)).await.unwrap();
    let action = controller.decide(&observed);
    assert!(matches!(action, Action::Hold { tell: true, .. }), "{action:?}");
    controller.act(observed, action).await.map_err(|error| error.reason).unwrap();
    let told: Vec<_> = log.take().into_iter().filter(|sent| sent.verb != "GET").collect();
    let [told] = &told[..] else { panic!("{told:?}") };
    let annotation = told.body["metadata"]["annotations"]["catena.dev/backup-status"].as_str().unwrap();
    assert!(annotation.contains("Blocked") && annotation.contains(broken), "{annotation}");
}
