use serde_json::{Value, json};

use super::{
    super::grants::{Change, Ledger},
    *,
};

const CONTROLLER: &str = "command-reaper";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn written(second: i64, resource: &str, object: Value) -> (Timestamp, Change) {
    let object = Box::new(serde_json::from_value(object).unwrap());
    (at(second), Change::Written { resource: resource.into(), object })
}

fn role(second: i64, rules: &Value) -> (Timestamp, Change) {
    let labels = json!({"app.kubernetes.io/managed-by": "Helm"});
    let object = json!({"metadata": {"name": "role", "labels": labels}, "rules": rules});
    written(second, "clusterroles", object)
}

fn rule(verbs: &[&str], resource: &str) -> Value {
    json!({"apiGroups": [""], "resources": [resource], "verbs": verbs})
}

fn binding() -> (Timestamp, Change) {
    let object = json!({
        "metadata": {"name": "binding", "labels": {"app.kubernetes.io/managed-by": "Helm"}},
        "subjects": [{"kind": "ServiceAccount", "name": CONTROLLER, "namespace": "catena-system"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "role"},
    });
    written(0, "clusterrolebindings", object)
}

fn request(verb: &str, resource: &str) -> Request {
    Request {
        account: Account(CONTROLLER.into()),
        verb: verb.into(),
        resource: resource.into(),
        namespace: "shop".into(),
        name: "web".into(),
    }
}

fn log(changes: Vec<(Timestamp, Change)>, used: &[(&str, &str)]) -> Log {
    let used = used.iter().map(|(verb, resource)| request(verb, resource)).collect();
    Log { ledger: Ledger { changes }, used, ..Log::default() }
}

fn exceptions(unused: &[&str], denied: &[&str]) -> Exceptions {
    let of = |rights: &[&str]| {
        let exception = |right: &&str| Exception {
            controller: CONTROLLER.into(),
            right: (*right).into(),
            namespace: None,
            reason: "it says why".into(),
        };
        rights.iter().map(exception).collect()
    };
    Exceptions { unused: of(unused), denied: of(denied), ..Exceptions::default() }
}

fn told(log: &Log, exceptions: &Exceptions, part: Part) -> Vec<String> {
    compare(std::slice::from_ref(log), exceptions, part).iter().map(ToString::to_string).collect()
}

#[test]
fn a_right_that_was_used_once_is_needed_and_one_that_was_not_is_told() {
    let granted =
        log(vec![binding(), role(0, &json!([rule(&["get", "delete"], "pods")]))], &[("get", "pods")]);
    let none = Exceptions::default();
    assert_eq!(told(&granted, &none, Part::Whole), ["granted and never used: command-reaper: delete pods"]);
    assert_eq!(told(&granted, &none, Part::Selected), [""; 0], "the other tests may use it");
    assert_eq!(told(&granted, &exceptions(&["delete pods"], &[]), Part::Whole), [""; 0]);
}

#[test]
fn a_right_on_one_name_is_not_used_by_a_request_for_another_one() {
    let mut one = rule(&["get"], "pods");
    one["resourceNames"] = json!(["web", "other"]);
    let granted = log(vec![binding(), role(0, &json!([one]))], &[("get", "pods")]);
    assert_eq!(
        told(&granted, &Exceptions::default(), Part::Whole),
        ["granted and never used: command-reaper: get pods named other"]
    );
}

#[test]
fn a_right_on_a_kind_is_not_used_by_a_request_for_its_status_or_by_another_controller() {
    let mut granted = log(vec![binding(), role(0, &json!([rule(&["patch"], "pods/status")]))], &[]);
    granted.used.insert(request("patch", "pods"));
    let of_another = Request { account: Account("command-binder".into()), ..request("patch", "pods/status") };
    granted.used.insert(of_another);
    assert_eq!(told(&granted, &Exceptions::default(), Part::Whole).len(), 1);
}

#[test]
fn a_right_that_is_used_on_one_of_two_clusters_is_needed() {
    let grants = || vec![role(1, &json!([rule(&["delete"], "pods")])), binding()];
    let told = |logs: &[Log]| compare(logs, &Exceptions::default(), Part::Whole).len();
    assert_eq!(told(&[log(grants(), &[]), log(grants(), &[])]), 1);
    assert_eq!(told(&[log(grants(), &[]), log(grants(), &[("delete", "pods")])]), 0);
}

#[test]
fn an_exception_that_is_used_or_that_nothing_needs_is_told() {
    let granted = log(vec![binding(), role(0, &json!([rule(&["get"], "pods")]))], &[("get", "pods")]);
    let told = told(&granted, &exceptions(&["get pods", "get secrets"], &["list pods"]), Part::Whole);
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told.iter().any(|told| told.starts_with("used, although")), "{told:?}");
    assert!(told.iter().any(|told| told.ends_with("command-reaper: get secrets")), "{told:?}");
    assert!(told.iter().any(|told| told.ends_with("command-reaper: list pods")), "{told:?}");
}

#[test]
fn a_right_that_is_sometimes_needed_may_be_used_or_not_and_must_be_granted() {
    let sometimes =
        |right: &str| Exceptions { sometimes: exceptions(&[right], &[]).unused, ..Exceptions::default() };
    for used in [&[("get", "pods")][..], &[]] {
        let granted = log(vec![binding(), role(0, &json!([rule(&["get"], "pods")]))], used);
        assert_eq!(told(&granted, &sometimes("get pods"), Part::Whole), [""; 0]);
    }
    let granted = log(vec![binding(), role(0, &json!([]))], &[]);
    assert_eq!(told(&granted, &sometimes("get pods"), Part::Whole).len(), 1);
}

#[test]
fn a_rule_for_each_kind_in_the_values_is_used_when_it_is_used_for_one_of_them() {
    let chart = role(0, &json!([]));
    let values = role(1, &json!([rule(&["list", "delete"], "pods"), rule(&["list", "delete"], "secrets")]));
    let granted = log(vec![binding(), chart, values], &[("list", "pods")]);
    assert_eq!(
        told(&granted, &Exceptions::default(), Part::Whole),
        [
            "granted for each configured kind, and never used for any: command-reaper: delete pods; command-reaper: delete \
          secrets"
        ]
    );
}

#[test]
fn what_others_grant_is_theirs_to_know() {
    let of_others = json!({"metadata": {"name": "role"}, "rules": [rule(&["get"], "pods")]});
    let aggregated = json!({
        "metadata": {"name": "role", "labels": {"app.kubernetes.io/managed-by": "Helm"}},
        "aggregationRule": {},
        "rules": [rule(&["get"], "pods")],
    });
    for object in [of_others, aggregated] {
        let granted = log(vec![binding(), written(0, "clusterroles", object)], &[]);
        assert_eq!(told(&granted, &Exceptions::default(), Part::Whole), [""; 0]);
    }
}

#[test]
fn a_denied_request_is_told_unless_its_right_was_just_taken_or_is_just_coming() {
    let with = || role(100, &json!([rule(&["get"], "pods")]));
    let without = || role(200, &json!([]));
    for (second, is_told) in [(10, true), (91, false), (150, false), (250, false), (270, true)] {
        let mut log = log(vec![binding(), role(0, &json!([])), with(), without()], &[]);
        log.denied.insert(request("get", "pods"), vec![at(second)]);
        let none = Exceptions::default();
        assert_eq!(told(&log, &none, Part::Selected).len(), usize::from(is_told), "after {second} s");
        let listed = exceptions(&[], &["get pods"]);
        assert_eq!(told(&log, &listed, Part::Selected), [""; 0], "a test says that it is on purpose");
        let mut elsewhere = exceptions(&[], &["get pods"]);
        elsewhere.denied[0].namespace = Some("e2e-other-".into());
        assert_eq!(
            told(&log, &elsewhere, Part::Selected).len(),
            usize::from(is_told),
            "in another namespace"
        );
    }
}

#[test]
fn discovery_that_a_starting_server_denies_is_no_matter_of_the_charts() {
    for (path, is_told) in
        [("/apis/apps/v1", false), ("/api", false), ("/apiserver", true), ("/metrics", true)]
    {
        let denied = [(request("get", path), vec![at(0)])].into();
        let log = Log { denied, ..log(Vec::new(), &[]) };
        assert_eq!(told(&log, &Exceptions::default(), Part::Selected).len(), usize::from(is_told), "{path}");
    }
}

#[test]
fn a_denied_request_is_explained_by_the_loss_of_a_binding() {
    let gone = Change::Gone {
        resource: "clusterrolebindings".into(),
        namespace: String::new(),
        name: "binding".into(),
    };
    let changes = vec![binding(), role(0, &json!([rule(&["get"], "pods")])), (at(100), gone)];
    let mut log = log(changes, &[]);
    log.denied.insert(request("get", "pods"), vec![at(110)]);
    assert_eq!(told(&log, &Exceptions::default(), Part::Selected), [""; 0]);
    log.denied.insert(request("get", "pods"), vec![at(110), at(170)]);
    assert_eq!(told(&log, &Exceptions::default(), Part::Selected).len(), 1);
}
