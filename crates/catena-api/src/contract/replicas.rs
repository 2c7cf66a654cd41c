use serde::{Deserialize, Deserializer, Serialize, de::Error};

use super::{FieldPath, Output, Pods};

/// Label on a CRD that honours the replica contract; its value is the contract's version.
pub const REPLICAS_LABEL: &str = "contract.catena.dev/replicas";

/// The version of the replica contract that this crate describes.
pub const REPLICAS_VERSION: &str = "v1";

/// The places at which a kind has the fields of the replica contract, version `v1`.
///
/// | direction | field | meaning |
/// |---|---|---|
/// | in | `replicas` | number of desired replicas |
/// | in | `restartedAt` | restart token: replicas created under another value are to be replaced |
/// | in, optional | `minReadySeconds` | seconds for which a replica has to be ready before it is available |
/// | in, optional | `podReplacementPolicy` | whether a replica replaces one that still terminates |
/// | in, optional | `maps` | maps that belong to the template as a whole, where it renders them |
/// | out | `active` | number of replicas that serve |
/// | out | `observedGeneration` | the generation that the other outputs refer to |
/// | out | `ready` | whether all replicas have the current template and token, and serve, and no older one is counted |
/// | out, optional | `updated` | number of replicas of the current template and token |
/// | out, optional | `available` | number of replicas that have been ready for `minReadySeconds` |
/// | out, optional | `terminating` | number of replicas that are being deleted and not gone |
/// | out, optional | `blockedBy`, `stalled` | reasons for not being ready |
/// | out, optional | `paused` | why the child waits on purpose |
/// | out, optional | `conditions` | with `Ready` and `Stalled`, if those two are not mapped |
/// | out, optional | `selector` | the scale subresource |
/// | optional | `pods` | where the parent looks for the pod that keeps a child from serving |
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ReplicaContract {
    /// In: number of desired replicas.
    pub replicas: FieldPath,
    /// In: the restart token; an empty path means that the kind has none.
    #[serde(deserialize_with = "path_unless_empty")]
    pub restarted_at: Option<FieldPath>,
    /// In, optional: number of seconds for which a replica has to be ready before it is available.
    #[serde(default)]
    pub min_ready_seconds: Option<FieldPath>,
    /// In, optional: [`PodReplacementPolicy`](crate::PodReplacementPolicy).
    #[serde(default)]
    pub pod_replacement_policy: Option<FieldPath>,
    /// In, optional: maps that belong to the template as a whole, where it renders them: keys added by others are removed.
    pub maps: Vec<FieldPath>,
    /// Out: number of replicas that serve.
    pub active: Output,
    /// Out: generation of the spec that the status refers to.
    pub observed_generation: Output,
    /// Out: whether all replicas have the current template and token, and serve, and no older one is counted. By default,
    /// the condition `Ready` reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<Output>,
    /// Out, optional: number of replicas of the current template and token, ready or not.
    pub updated: Output,
    /// Out, optional: number of replicas that have been ready for `minReadySeconds`, of any template. Without it, `active`
    /// counts.
    #[serde(default)]
    pub available: Option<Output>,
    /// Out, optional: number of replicas that are being deleted and not gone, of any template.
    #[serde(default)]
    pub terminating: Option<Output>,
    /// Out, optional: first object that is not ready.
    pub blocked_by: Output,
    /// Out, optional: `{reason, message}` while the child cannot proceed by itself. By default, the condition `Stalled`
    /// reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stalled: Option<Output>,
    /// Out, optional: `{reason, message}` while the child waits on purpose, such as for a person. It does not run out of time then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<Output>,
    /// Out, optional: conditions; the parent reads `Ready` and `Stalled`, if those two are not mapped.
    pub conditions: FieldPath,
    /// Out, optional: label selector of the pods, as text.
    pub selector: Output,
    /// Optional: the pods among which the parent looks for the one that keeps a child from serving, while the child reports no
    /// blocker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<Pods>,
}

impl Default for ReplicaContract {
    fn default() -> Self {
        let path = |names: [&str; 2]| FieldPath::of(names);
        Self {
            replicas: path(["spec", "replicas"]),
            restarted_at: Some(path(["spec", "restartedAt"])),
            min_ready_seconds: Some(path(["spec", "minReadySeconds"])),
            pod_replacement_policy: Some(path(["spec", "podReplacementPolicy"])),
            maps: vec![path(["spec", "parameters"])],
            active: Output::field(["status", "active"]),
            observed_generation: Output::field(["status", "observedGeneration"]),
            ready: None,
            updated: Output::field(["status", "updated"]),
            available: Some(Output::field(["status", "available"])),
            terminating: Some(Output::field(["status", "terminating"])),
            blocked_by: Output::field(["status", "blockedBy"]),
            stalled: None,
            paused: None,
            conditions: path(["status", "conditions"]),
            selector: Output::field(["status", "selector"]),
            pods: None,
        }
    }
}

impl ReplicaContract {
    /// The fields that the parent writes, by their names in the contract.
    pub fn written(&self) -> impl Iterator<Item = (&'static str, &FieldPath)> {
        let token = self.restarted_at.as_ref().map(|token| ("restartedAt", token));
        [("replicas", &self.replicas)].into_iter().chain(token)
    }

    /// The optional fields that the parent writes if its own spec sets them, by their names in the contract.
    pub fn handed(&self) -> impl Iterator<Item = (&'static str, &FieldPath)> {
        let seconds = self.min_ready_seconds.as_ref().map(|path| ("minReadySeconds", path));
        let policy = self.pod_replacement_policy.as_ref().map(|path| ("podReplacementPolicy", path));
        seconds.into_iter().chain(policy)
    }

    /// What is wrong with the fields that the parent writes, each sentence with the name in the contract first.
    pub fn problems(&self) -> impl Iterator<Item = String> {
        let is_uncounted = |first: &String| ["metadata", "status"].contains(&first.as_str());
        let fields = self.written().chain(self.handed());
        let uncounted = fields.filter(move |(_, path)| path.names().first().is_some_and(is_uncounted));
        uncounted.map(|(name, path)| {
            format!(
                "{name}: {path} is not a part of the spec, so that a change of it gives no new generation, and an old status would be taken for its effect; name a field of the spec"
            )
        })
    }

    /// Whether it says how readiness is reported: numbers of other fields do not tell whether an old replica is counted for
    /// a new one.
    #[must_use]
    pub fn says_ready(&self) -> bool {
        let own = Self::default();
        self.ready.is_some() || (&self.active, &self.updated) == (&own.active, &own.updated)
    }
}

fn path_unless_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<FieldPath>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?.filter(|text| !text.is_empty());
    text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kind_without_a_restart_token_says_so_with_an_empty_path() {
        let contract: ReplicaContract = serde_json::from_value(json!({"restartedAt": ""})).unwrap();
        assert_eq!(contract.restarted_at, None);
        let again: ReplicaContract = serde_json::from_value(json!(contract)).unwrap();
        assert_eq!(again, contract);
        let contract: ReplicaContract = serde_json::from_value(json!({})).unwrap();
        assert_eq!(contract.restarted_at, ReplicaContract::default().restarted_at);
        assert_eq!(contract.restarted_at.unwrap().to_string(), "spec.restartedAt");
    }

    /// Another kind may use the names of a `BasicReplicaSet` for something else.
    #[test]
    fn a_mapping_has_what_is_optional_only_where_it_names_it() {
        let read = |contract| serde_json::from_value::<ReplicaContract>(contract).unwrap();
        let paths = |contract: &ReplicaContract| {
            let handed: Vec<_> = contract.handed().map(|(_, path)| path.to_string()).collect();
            let counts = [&contract.available, &contract.terminating].into_iter().flatten();
            handed.into_iter().chain(counts.map(ToString::to_string)).collect::<Vec<_>>()
        };
        let own =
            ["spec.minReadySeconds", "spec.podReplacementPolicy", "status.available", "status.terminating"];
        assert_eq!(paths(&ReplicaContract::default()), own);
        assert!(paths(&read(json!({"active": "status.readyReplicas"}))).is_empty());
        let named = read(json!({"minReadySeconds": "spec.ripe", "available": {"cel": "1"}}));
        assert_eq!(paths(&named), ["spec.ripe", "1"]);
        assert_eq!(read(json!(named)), named);
    }

    #[test]
    fn a_mapping_of_other_numbers_has_to_say_when_all_are_ready() {
        let says_ready = |contract| serde_json::from_value::<ReplicaContract>(contract).unwrap().says_ready();
        assert!(says_ready(json!({"restartedAt": "spec.token"})));
        assert!(!says_ready(json!({"active": "status.readyReplicas"})));
        assert!(says_ready(json!({"active": "status.readyReplicas", "ready": {"cel": "true"}})));
    }
}
