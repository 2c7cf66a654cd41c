use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Client, Config};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::*;
use crate::{
    report::{Events, settings_status::SettingsStatus},
    testing::{Answer, Sent, answering},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Number {
    number: i32,
}

impl Validate for Number {
    fn validate(&self) -> Result<(), Vec<String>> {
        if self.number >= 0 { Ok(()) } else { Err(vec!["number: must not be negative".into()]) }
    }
}

/// A directory of settings, and who follows them.
struct Followed {
    directory: tempfile::TempDir,
    status: Arc<SettingsStatus>,
    settings: SettingsHandle<Number>,
}

impl Followed {
    async fn start(client: Client) -> Self {
        Self::over(client, None).await
    }

    async fn over(client: Client, config_map: Option<&str>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("settings.yaml");
        std::fs::write(&path, "number: 1").unwrap();
        let file = SettingsFile::read(&path).await.unwrap();
        let events = Events::over(client.clone(), "numbers");
        let config_map = config_map
            .map(|name| ObjectReference { name: Some(name.to_owned()), ..ObjectReference::default() });
        let status = Arc::new(SettingsStatus::new(&file.version(), events, config_map));
        let settings = file.parse().unwrap();
        let settings =
            SettingsHandle::follow(file, settings, client, status.clone(), watch::Sender::default());
        Self { directory, status, settings }
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.directory.path().join(file), text).unwrap();
    }

    /// The number in force after some time.
    async fn number(&mut self) -> i32 {
        timeout(POLL_INTERVAL * 5, self.settings.changed()).await.ok();
        self.settings.current().number
    }
}

fn nobody() -> Client {
    Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap()
}

#[tokio::test]
async fn a_mistake_at_start_names_the_field() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("settings.yaml");
    let read = async || SettingsFile::read(&path).await?.parse::<Number>();
    let cases =
        [("number: -1", "number: must not be negative"), ("number: x", "number"), ("numbr: 1", "numbr")];
    for (text, expected) in cases {
        std::fs::write(&path, text).unwrap();
        let Err(error) = read().await else { panic!("{text} was taken") };
        assert!(error.to_string().contains(expected), "{error}");
    }
    std::fs::remove_file(&path).unwrap();
    let Err(error) = read().await else { panic!("a missing file was taken") };
    assert!(error.to_string().contains("--settings"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_change_takes_effect_and_a_mistake_does_not() {
    let mut followed = Followed::start(nobody()).await;
    followed.write("settings.yaml", "number: 2");
    assert_eq!((followed.number().await, followed.settings.version()), (2, 2));
    followed.write("settings.yaml", "number: -2");
    assert_eq!(followed.number().await, 2);
    let (code, page) = followed.status.page(None);
    assert!(code.as_u16() == 422 && page.contains("number: must not be negative"), "{code}: {page}");
    followed.write("settings.yaml", "number: 3");
    assert_eq!(followed.number().await, 3);
    assert_eq!(followed.status.page(None).0.as_u16(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_change_takes_effect_together_with_its_rights_and_not_before() {
    let allowed = Arc::new(Mutex::new("list"));
    let grants = allowed.clone();
    let (client, log) = answering(move |sent: &Sent| {
        let verb = &sent.body["spec"]["resourceAttributes"]["verb"];
        let allowed = verb == *grants.lock() || verb == "list";
        Answer::Object(json!({"metadata": {}, "spec": sent.body["spec"], "status": {"allowed": allowed}}))
    });
    let mut followed = Followed::start(client).await;
    let rules =
        json!([{"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list", "create"]}]}]);
    followed.write("rights.yaml", &rules.to_string());
    followed.write("settings.yaml", "number: 2");
    assert_eq!(followed.number().await, 1);
    let (code, page) = followed.status.page(None);
    assert!(code.as_u16() == 503 && page.contains("does not have: create secrets;"), "{code}: {page}");
    let asked = log.take();
    assert!(asked.iter().all(|sent| sent.uri.contains("selfsubjectaccessreviews")), "{asked:?}");
    assert!(asked.len() <= 8, "it asks too often: {asked:?}");

    *allowed.lock() = "create";
    timeout(Duration::from_secs(60), followed.settings.changed()).await.unwrap();
    assert_eq!(followed.settings.current().number, 2);
    assert_eq!(followed.status.page(None).0.as_u16(), 200);
}

#[tokio::test(start_paused = true)]
async fn settings_that_stay_out_of_force_are_told_again_before_the_event_expires() {
    let mistaken = ("settings.yaml", "number: -2");
    let rules = json!([{"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}]}]);
    let rules = rules.to_string();
    for files in [vec![mistaken], vec![("rights.yaml", &*rules), ("settings.yaml", "number: 2")]] {
        let (client, log) = answering(|sent: &Sent| {
            if sent.uri.contains("/events") {
                return Answer::Done;
            }
            Answer::Object(json!({"metadata": {}, "spec": sent.body["spec"], "status": {"allowed": false}}))
        });
        let followed = Followed::over(client, Some("settings")).await;
        for (file, text) in &files {
            followed.write(file, text);
        }
        sleep(Duration::from_secs(55 * 60)).await;
        let told = log.take().into_iter().filter(|sent| sent.uri.contains("/events")).count();
        assert_eq!(told, 2, "{files:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn settings_that_wait_for_rights_give_way_to_newer_ones() {
    let (client, _log) = answering(|_| Answer::Lost);
    let mut followed = Followed::start(client).await;
    let rules = json!([{"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}]}]);
    followed.write("rights.yaml", &rules.to_string());
    followed.write("settings.yaml", "number: 2");
    assert_eq!(followed.number().await, 1);
    followed.write("rights.yaml", "[]");
    followed.write("settings.yaml", "number: 3");
    assert_eq!(followed.number().await, 3);
}
