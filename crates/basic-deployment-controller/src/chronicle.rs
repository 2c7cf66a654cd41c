//! Tells the milestones of each `BasicDeployment` by Events: best effort, never a reason to fail.

use std::{collections::HashMap, sync::Arc, time::Instant};

use basic_deployment_controller::{
    Settings,
    decide::Action,
    milestones::{self, Change, News},
    observed::Observed,
};
use kube::{Resource, runtime::events::EventType};
use operator_kit::{
    object::ObjectId,
    report::{Events, Milestone},
    run::LiveSettings,
};
use parking_lot::Mutex;

/// Tells milestones.
pub struct Chronicle {
    events: Events,
    settings: LiveSettings<Settings>,
    /// The beginning of the change of each object whose end is awaited, by its uid. The next leader does not know it, and
    /// does not tell the end.
    changing: Arc<Mutex<HashMap<String, (Milestone, Instant)>>>,
    /// The generation of each object whose pause was told, by its uid: a failure in the middle of a pause begins no other.
    /// The next leader does not know it, and may tell the pause again after a failure.
    paused: Arc<Mutex<HashMap<String, Option<i64>>>>,
}

impl Chronicle {
    pub fn new(events: Events, settings: LiveSettings<Settings>) -> Self {
        Self { events, settings, changing: Arc::default(), paused: Arc::default() }
    }

    /// The milestone that an action is, once it has succeeded.
    pub fn milestone(&self, observed: &Observed, action: &Action) -> Option<News> {
        let uid = ObjectId::of(&*observed.deployment).uid;
        let tells_all = self.settings.current().events.normal;
        if !tells_all {
            // Its end may not be seen.
            self.forget(uid);
        }
        let changing = self.changing.lock().get(uid).cloned();
        let changing = changing.map(|(began, at)| Change { began, since: at.elapsed() });
        let generation = &observed.deployment.metadata.generation;
        let is_told =
            |news: &News| matches!(news, News::Paused(_)) && self.paused.lock().get(uid) == Some(generation);
        milestones::of(observed, action, changing.as_ref())
            .filter(|news| tells_all && !is_told(news) || matches!(news, News::Silent(_)))
    }

    /// Tells the milestone of an action that has succeeded.
    pub fn tell(&self, observed: &Observed, news: News) {
        let deployment = &*observed.deployment;
        let uid = ObjectId::of(deployment).uid;
        let milestone = match news {
            News::Begins(milestone) => {
                let mut changing = self.changing.lock();
                let under_way = changing.get(uid);
                if !under_way.is_some_and(|(under_way, _)| milestones::is_part_of(&milestone, under_way)) {
                    changing.insert(uid.to_owned(), (milestone.clone(), Instant::now()));
                }
                milestone
            }
            News::Ends(milestone) => {
                self.changing.lock().remove(uid);
                milestone
            }
            News::Paused(milestone) => {
                self.paused.lock().insert(uid.to_owned(), deployment.metadata.generation);
                // The time of a pause is not that of the change in which it comes.
                self.changing.lock().remove(uid);
                milestone
            }
            News::Silent(note) => {
                self.events.warn(&deployment.object_ref(&()), "ContractBroken", &note);
                return;
            }
        };
        self.events.mark(EventType::Normal, &deployment.object_ref(&()), milestone);
    }

    /// Forgets an object that is gone, or about which nothing is told.
    pub fn forget(&self, uid: &str) {
        self.changing.lock().remove(uid);
        self.paused.lock().remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use basic_deployment_controller::{observed::Found, status::status};
    use catena_api::keys;
    use operator_kit::testing::{Answer, answering, in_turn};
    use serde_json::json;

    use super::*;
    use crate::fixtures::observed;

    fn settings(normal: bool) -> LiveSettings<Settings> {
        let settings = json!({
            "children": [{"apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet"}],
            "templates": {"default": "{}"},
            "events": {"normal": normal},
        });
        LiveSettings::fixed(serde_json::from_value(settings).unwrap())
    }

    fn milestone(reason: &'static str) -> Milestone {
        Milestone { reason, action: reason.into(), note: String::new(), related: None }
    }

    fn begins(reason: &'static str) -> News {
        News::Begins(milestone(reason))
    }

    /// A chronicle in which a rollout began twenty seconds ago.
    fn rolling_out() -> Chronicle {
        let (client, _) = answering(in_turn(&[Answer::Echo("event")]));
        let chronicle = Chronicle::new(Events::over(client, "test"), settings(true));
        chronicle.tell(&observed(), begins("RollingOut"));
        for (_, began) in chronicle.changing.lock().values_mut() {
            *began = began.checked_sub(Duration::from_secs(20)).unwrap();
        }
        chronicle
    }

    /// A pause that holds a rendering back.
    fn paused() -> Observed {
        let mut paused = observed();
        Arc::make_mut(&mut paused.deployment).spec.paused = true;
        let Found::Ours(child) = &mut paused.child else { panic!("no child") };
        Arc::make_mut(child).object["metadata"]["annotations"][keys::HASH] = "old".into();
        paused
    }

    #[tokio::test]
    async fn a_pause_is_told_once_also_if_a_failure_is_reported_meanwhile() {
        let (client, _) = answering(in_turn(&[Answer::Echo("event")]));
        let chronicle = Chronicle::new(Events::over(client, "test"), settings(true));
        let mut paused = paused();
        let milestone = |observed: &Observed| {
            chronicle.milestone(observed, &Action::WriteStatus(Box::new(status(observed))))
        };
        let Some(told @ News::Paused(_)) = milestone(&paused) else { panic!("it is not told") };
        assert!(milestone(&paused).is_some(), "its status could not be written");
        chronicle.tell(&paused, told);
        // A failure was reported, and is over: the last status is not that of the pause.
        assert_eq!(milestone(&paused), None);
        Arc::make_mut(&mut paused.deployment).metadata.generation = Some(2);
        assert!(milestone(&paused).is_some(), "it is another pause");
    }

    /// The seconds that the end of the open change would tell.
    fn seconds(chronicle: &Chronicle) -> Option<u64> {
        let changing = chronicle.changing.lock();
        changing.values().next().map(|(_, began)| began.elapsed().as_secs())
    }

    #[tokio::test]
    async fn the_end_of_a_change_is_not_told_long_after_it_if_events_were_off_meanwhile() {
        let mut chronicle = rolling_out();
        chronicle.settings = settings(false);
        assert_eq!(chronicle.milestone(&observed(), &Action::Settle), None);
        chronicle.settings = settings(true);
        assert_eq!(chronicle.milestone(&observed(), &Action::Settle), None);
        assert_eq!(seconds(&chronicle), None);
    }

    #[tokio::test]
    async fn another_scaling_and_what_follows_a_pause_have_times_of_their_own() {
        let chronicle = rolling_out();
        chronicle.tell(&observed(), News::Paused(milestone("Paused")));
        assert_eq!(seconds(&chronicle), None, "the pause is not a part of the rollout");
        chronicle.tell(&observed(), begins("Scaling"));
        for (_, began) in chronicle.changing.lock().values_mut() {
            *began = began.checked_sub(Duration::from_secs(20)).unwrap();
        }
        chronicle.tell(&observed(), begins("Scaling"));
        assert!(seconds(&chronicle).is_some_and(|seconds| seconds < 20), "the first one was given up");
    }

    #[tokio::test]
    async fn scaling_and_restarts_in_the_middle_of_a_rollout_leave_its_beginning() {
        let chronicle = rolling_out();
        for also in ["Scaling", "Restarting"] {
            chronicle.tell(&observed(), begins(also));
            assert!(seconds(&chronicle).is_some_and(|seconds| seconds >= 20), "{also}");
        }
        chronicle.tell(&observed(), begins("RollingBack"));
        assert!(seconds(&chronicle).is_some_and(|seconds| seconds < 20), "the end names another revision");
    }
}
