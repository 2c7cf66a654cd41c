use catena_api::{BasicReplicaSetSpec, surge_and_unavailable};

/// The limits of a replacement above and below the desired number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Desired pods.
    pub wanted: usize,
    /// Pods that may exist in addition.
    pub surge: usize,
    /// Pods that may be missing.
    pub unavailable: usize,
}

impl Budget {
    /// The budget of a set.
    #[must_use]
    pub fn of(spec: &BasicReplicaSetSpec) -> Self {
        let (surge, unavailable) =
            surge_and_unavailable(&spec.max_surge, &spec.max_unavailable, spec.replicas);
        let [wanted, surge, unavailable] =
            [spec.replicas, surge, unavailable].map(|number| usize::try_from(number).unwrap_or(0));
        Self { wanted, surge, unavailable }
    }

    /// The number of pods that may be created now.
    #[must_use]
    pub fn creatable(&self, updated: usize, outdated: usize) -> usize {
        let room = (self.most(outdated)).saturating_sub(updated + outdated);
        self.wanted.saturating_sub(updated).min(room)
    }

    /// The number of pods that may be created beside `stubborn` ones, which cannot be deleted: these may take up as much
    /// room as the set itself. Without that bound, each change of the template would add a generation of pods, and each
    /// pod that ends would add another one.
    #[must_use]
    pub fn room_beside(&self, stubborn: usize, others: usize) -> usize {
        (2 * self.wanted + self.surge).saturating_sub(stubborn + others)
    }

    /// The maximum number of pods: the surge counts only while there are old ones to replace.
    #[must_use]
    pub fn most(&self, outdated: usize) -> usize {
        if outdated == 0 { self.wanted } else { self.wanted + self.surge }
    }

    /// The number of pods that one step replaces; a set without pods proves nothing.
    #[must_use]
    pub fn step(&self) -> usize {
        (self.surge + self.unavailable).min(self.wanted).max(1)
    }

    /// The minimum number of serving pods.
    #[must_use]
    pub fn least(&self) -> usize {
        self.wanted.saturating_sub(self.unavailable)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

    use super::*;

    fn budget(replicas: i32, surge: IntOrString, unavailable: IntOrString) -> Budget {
        Budget::of(&BasicReplicaSetSpec {
            replicas,
            max_surge: surge,
            max_unavailable: unavailable,
            ..Default::default()
        })
    }

    fn percent(text: &str) -> IntOrString {
        IntOrString::String(text.into())
    }

    #[test]
    fn surge_is_rounded_up_and_missing_down() {
        let budget = budget(10, percent("25%"), percent("25%"));
        assert_eq!((budget.surge, budget.unavailable), (3, 2));
    }

    #[test]
    fn a_budget_never_forbids_every_replacement() {
        assert_eq!(budget(3, IntOrString::Int(0), IntOrString::Int(0)).unavailable, 1);
        assert_eq!(budget(3, IntOrString::Int(0), percent("10%")).unavailable, 1);
    }

    #[test]
    fn no_pod_is_made_on_top_without_old_ones() {
        assert_eq!(budget(4, percent("25%"), percent("25%")).creatable(4, 0), 0);
        assert_eq!(budget(4, percent("25%"), percent("25%")).creatable(0, 4), 1);
    }
}
