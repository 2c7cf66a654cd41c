//! Which settings are in force, and why newer ones are not.

use std::sync::Arc;

use axum::http::StatusCode;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::Event;
use parking_lot::Mutex;

use crate::{
    render::short_digest,
    report::{Events, metrics::Metrics, normal, reason, warning},
};

/// The topic of Events about the newest settings.
const SETTINGS: &str = "settings";

/// Which settings are in force, and why newer ones are not: for `/settings`, metrics, Events and the log. A version is
/// the sha256 of the settings' text.
pub(crate) struct SettingsStatus {
    state: Mutex<State>,
    metrics: Arc<Metrics>,
}

struct State {
    in_force: String,
    /// The version of newer settings, and why they are not in force.
    newer: Option<(String, Problem)>,
}

/// The reason why settings are not in force.
#[derive(PartialEq)]
pub(crate) enum Problem {
    /// A mistake in them.
    Mistake(String),
    /// Rights that the controller does not have yet.
    Rights(String),
}

impl Problem {
    fn note(&self) -> String {
        let (Self::Mistake(problem) | Self::Rights(problem)) = self;
        format!("{problem}; this process keeps the previous settings until that is fixed")
    }
}

impl SettingsStatus {
    /// The status after the start with settings of this version.
    pub fn new(version: &str, metrics: Arc<Metrics>) -> Self {
        metrics.settings_in_force(version);
        Self { state: Mutex::new(State { in_force: version.to_owned(), newer: None }), metrics }
    }

    /// Records that settings are in force, and tells it if they replaced others.
    pub fn taken(&self, version: &str, events: &SettingsEvents) {
        let mut state = self.state.lock();
        version.clone_into(&mut state.in_force);
        state.newer = None;
        drop(state);
        self.metrics.settings_in_force(version);
        tracing::info!(version, "the settings changed");
        let note = format!("the settings of the version {version} are in force");
        events.publish_lasting(SETTINGS, &taking(&[version]), normal("SettingsTaken", &note));
    }

    /// Records that settings are not in force.
    pub fn kept_out(&self, version: &str, problem: Problem) {
        if matches!(problem, Problem::Mistake(_)) {
            self.metrics.settings_errors.inc();
        }
        let mut state = self.state.lock();
        if state.newer.as_ref().is_none_or(|(newer, known)| newer != version || *known != problem) {
            tracing::error!("{}", problem.note());
            state.newer = Some((version.to_owned(), problem));
        }
        self.metrics.settings_kept_out.set(1);
    }

    /// Tells why newer settings are not in force, if there are any.
    pub fn tell_problem(&self, events: &SettingsEvents) {
        let state = self.state.lock();
        let Some((version, problem)) = &state.newer else { return };
        let reason = match problem {
            Problem::Mistake(_) => reason::SETTINGS_REFUSED,
            Problem::Rights(_) => reason::SETTINGS_WAIT_FOR_RIGHTS,
        };
        let note = problem.note();
        events.publish_lasting(SETTINGS, &taking(&[version, &note]), warning(reason, &note));
    }

    /// The page about the settings. With the version that somebody waits for: success once it is in force, 422 when it is
    /// refused, and 503 until then. Without: success unless newer settings than those in force are known.
    pub fn page(&self, wanted: Option<&str>) -> (StatusCode, String) {
        let State { in_force, newer } = &*self.state.lock();
        if wanted == Some(in_force) || (wanted.is_none() && newer.is_none()) {
            return (StatusCode::OK, format!("the settings of the version {in_force} are in force\n"));
        }
        let (code, problem) = match newer {
            Some((version, problem)) if wanted.is_none_or(|wanted| wanted == version) => match problem {
                Problem::Mistake(mistake) => (StatusCode::UNPROCESSABLE_ENTITY, &**mistake),
                Problem::Rights(missing) => (StatusCode::SERVICE_UNAVAILABLE, &**missing),
            },
            _ => (StatusCode::SERVICE_UNAVAILABLE, "these settings have not arrived yet"),
        };
        (code, format!("{problem}; the settings of the version {in_force} are in force\n"))
    }
}

/// The action of an Event about settings: another one for each version and problem, by which `kubectl catena why` finds it.
fn taking(about: &[&str]) -> String {
    format!("Take{}", short_digest(about))
}

/// Tells of settings, and of kinds that they name, in Events about their `ConfigMap`, if that is known.
#[derive(Clone)]
pub struct SettingsEvents {
    pub(crate) events: Events,
    pub(crate) config_map: Option<ObjectReference>,
}

impl SettingsEvents {
    /// Events about a `ConfigMap`, without an [`Operator`](crate::run::Operator).
    #[must_use]
    pub fn over(events: Events, namespace: &str, config_map: &str) -> Self {
        let config_map = ObjectReference {
            api_version: Some("v1".into()),
            kind: Some("ConfigMap".into()),
            name: Some(config_map.into()),
            namespace: Some(namespace.into()),
            ..ObjectReference::default()
        };
        Self { events, config_map: Some(config_map) }
    }

    /// Publishes an Event about something that has happened.
    pub fn publish(&self, event: Event) {
        if let Some(map) = &self.config_map {
            self.events.publish(map, event);
        }
    }

    /// Publishes an Event about a state that may last; another action is another state.
    pub(crate) fn publish_lasting(&self, topic: &str, action: &str, event: Event) {
        if let Some(map) = &self.config_map {
            self.events.publish_lasting(map, topic, action, Event { action: action.into(), ..event });
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::{Client, Config};

    use super::*;

    #[tokio::test]
    async fn a_version_is_waited_for_and_a_refused_one_is_told_at_once() {
        let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        let events = SettingsEvents { events: Events::over(client, "binder"), config_map: None };
        let metrics = Arc::<Metrics>::default();
        let status = SettingsStatus::new("a", metrics.clone());
        let page = |wanted: Option<&str>| {
            let (code, text) = status.page(wanted);
            (code.as_u16(), text)
        };
        assert_eq!((page(None).0, page(Some("a")).0, page(Some("b")).0), (200, 200, 503));

        status.kept_out("b", Problem::Mistake("kinds.x: lost".into()));
        assert_eq!((page(None).0, page(Some("a")).0, page(Some("b")).0), (422, 200, 422));
        assert!(
            page(Some("b")).1.contains("kinds.x: lost; the settings of the version a"),
            "{page:?}",
            page = page(Some("b"))
        );
        assert_eq!(page(Some("c")).0, 503);
        let exposed = metrics.encode().unwrap();
        for line in [
            "catena_settings_errors_total 1",
            "catena_settings_kept_out 1",
            "catena_settings_info{version=\"a\"} 1",
        ] {
            assert!(exposed.contains(line), "{line} is not in {exposed}");
        }

        status.kept_out("c", Problem::Rights("may not create secrets".into()));
        assert_eq!((page(None).0, page(Some("c")).0), (503, 503));
        status.taken("c", &events);
        assert_eq!((page(None).0, page(Some("c")).0, page(Some("a")).0), (200, 200, 503));
        let exposed = metrics.encode().unwrap();
        for line in [
            "catena_settings_errors_total 1",
            "catena_settings_kept_out 0",
            "catena_settings_info{version=\"c\"} 1",
        ] {
            assert!(exposed.contains(line), "{line} is not in {exposed}");
        }
        assert!(!exposed.contains("version=\"a\""), "{exposed}");
    }
}
