//! Which settings are in force, and why newer ones are not.

use axum::http::StatusCode;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::Event;
use operator_templates::Digest;
use parking_lot::Mutex;

use crate::report::{Events, failures::SETTINGS_REFUSED};

/// The topic of Events about the newest settings.
const SETTINGS: &str = "settings";

/// Which settings are in force, and why newer ones are not: for `/settings`, metrics, Events and the log. A version is
/// the sha256 of the settings' text.
pub(crate) struct SettingsStatus {
    state: Mutex<State>,
    events: Events,
    /// The `ConfigMap` that the settings come from, if it is known.
    config_map: Option<ObjectReference>,
}

struct State {
    in_force: String,
    newer: Option<Newer>,
}

/// Settings that are not in force.
#[derive(PartialEq)]
struct Newer {
    version: String,
    reason: &'static str,
    problem: String,
}

impl SettingsStatus {
    /// The status after the start with settings of this version.
    pub fn new(version: &str, events: Events, config_map: Option<ObjectReference>) -> Self {
        events.metrics.settings_in_force(version);
        let state = State { in_force: version.to_owned(), newer: None };
        Self { state: Mutex::new(state), events, config_map }
    }

    /// Records that settings have replaced others, and tells it.
    pub fn taken(&self, version: &str) {
        *self.state.lock() = State { in_force: version.to_owned(), newer: None };
        self.events.metrics.settings_in_force(version);
        tracing::info!(version, "the settings changed");
        let note = format!("the settings of the version {version} are in force");
        self.publish(&[version], Events::normal("SettingsTaken", &note));
    }

    /// Records why newer settings are not in force, and tells it; it is called again and again while that lasts.
    pub fn kept_out(&self, version: &str, reason: &'static str, problem: String) {
        let note = format!("{problem}; this process keeps the previous settings until that is fixed");
        self.publish(&[version, &note], Events::warning(reason, &note));
        let newer = Some(Newer { version: version.to_owned(), reason, problem });
        let mut state = self.state.lock();
        if state.newer != newer {
            tracing::error!("{note}");
            self.events.metrics.settings_errors.inc_by((reason == SETTINGS_REFUSED).into());
            state.newer = newer;
        }
        self.events.metrics.settings_kept_out.set(1);
    }

    /// The page about the settings. With the version that somebody waits for: success once it is in force, 422 when it is
    /// refused, and 503 until then. Without: success unless newer settings than those in force are known.
    pub fn page(&self, wanted: Option<&str>) -> (StatusCode, String) {
        let State { in_force, newer } = &*self.state.lock();
        if wanted == Some(in_force) || (wanted.is_none() && newer.is_none()) {
            return (StatusCode::OK, format!("the settings of the version {in_force} are in force\n"));
        }
        let (reason, problem) = match newer {
            Some(newer) if wanted.is_none_or(|wanted| wanted == newer.version) => {
                (newer.reason, &*newer.problem)
            }
            _ => ("", "these settings have not arrived yet"),
        };
        let code = match reason {
            SETTINGS_REFUSED => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        (code, format!("{problem}; the settings of the version {in_force} are in force\n"))
    }

    /// Each version and problem has another action, by which tools find its Event.
    fn publish(&self, state: &[&str], event: Event) {
        let event = Event { action: format!("Take{}", Digest::short(state)), ..event };
        self.events.publish_lasting(self.config_map.as_ref(), SETTINGS, state, event);
    }
}

#[cfg(test)]
mod tests {
    use kube::{Client, Config};

    use super::*;
    use crate::report::failures::SETTINGS_WAIT_FOR_RIGHTS;

    #[tokio::test]
    async fn a_version_is_waited_for_and_a_refused_one_is_told_at_once() {
        let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        let events = Events::over(client, "binder");
        let status = SettingsStatus::new("a", events.clone(), None);
        let page = |wanted: Option<&str>| {
            let (code, text) = status.page(wanted);
            (code.as_u16(), text)
        };
        assert_eq!((page(None).0, page(Some("a")).0, page(Some("b")).0), (200, 200, 503));

        for _ in 0..2 {
            status.kept_out("b", SETTINGS_REFUSED, "kinds.x: lost".into());
        }
        assert_eq!((page(None).0, page(Some("a")).0, page(Some("b")).0), (422, 200, 422));
        assert!(
            page(Some("b")).1.contains("kinds.x: lost; the settings of the version a"),
            "{page:?}",
            page = page(Some("b"))
        );
        assert_eq!(page(Some("c")).0, 503);
        let exposed = events.metrics.encode().unwrap();
        for line in [
            "operator_settings_errors_total 1",
            "operator_settings_kept_out 1",
            "operator_settings_info{version=\"a\"} 1",
        ] {
            assert!(exposed.contains(line), "{line} is not in {exposed}");
        }

        status.kept_out("c", SETTINGS_WAIT_FOR_RIGHTS, "may not create secrets".into());
        assert_eq!((page(None).0, page(Some("c")).0), (503, 503));
        status.taken("c");
        assert_eq!((page(None).0, page(Some("c")).0, page(Some("a")).0), (200, 200, 503));
        let exposed = events.metrics.encode().unwrap();
        for line in [
            "operator_settings_errors_total 1",
            "operator_settings_kept_out 0",
            "operator_settings_info{version=\"c\"} 1",
        ] {
            assert!(exposed.contains(line), "{line} is not in {exposed}");
        }
        assert!(!exposed.contains("version=\"a\""), "{exposed}");
    }
}
