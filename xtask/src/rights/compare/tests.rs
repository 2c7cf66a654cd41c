use serde_json::{Value, json};

use super::{super::grants::Written, *};

const CONTROLLER: &str = "command-reaper";

fn written(resource: &str, object: Value) -> Written {
    Written { resource: resource.into(), object: serde_json::from_value(object).unwrap() }
}

fn role(rules: &Value) -> Written {
    let labels = json!({"app.kubernetes.io/managed-by": "Helm"});
    let object = json!({"metadata": {"name": "role", "labels": labels}, "rules": rules});
    written("clusterroles", object)
}

fn rule(verbs: &[&str], resource: &str) -> Value {
    json!({"apiGroups": [""], "resources": [resource], "verbs": verbs})
}

fn binding() -> Written {
    let object = json!({
        "metadata": {"name": "binding", "labels": {"app.kubernetes.io/managed-by": "Helm"}},
        "subjects": [{"kind": "ServiceAccount", "name": CONTROLLER, "namespace": "catena-system"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "role"},
    });
    written("clusterrolebindings", object)
}

fn request(verb: &str, resource: &str) -> Request {
    Request {
        account: CONTROLLER.into(),
        verb: verb.into(),
        resource: resource.into(),
        namespace: "shop".into(),
        name: "web".into(),
    }
}

fn log(written: Vec<Written>, used: &[(&str, &str)]) -> Log {
    let used = used.iter().map(|(verb, resource)| request(verb, resource)).collect();
    Log { written, used }
}

fn exceptions(unused: &[&str]) -> Exceptions {
    let exception = |right: &&str| Exception {
        controller: CONTROLLER.into(),
        right: (*right).into(),
        reason: "it says why".into(),
    };
    Exceptions { unused: unused.iter().map(exception).collect(), ..Exceptions::default() }
}

fn told(log: &Log, exceptions: &Exceptions) -> Vec<String> {
    compare(std::slice::from_ref(log), exceptions).iter().map(ToString::to_string).collect()
}

#[test]
fn a_right_that_was_used_once_is_needed_and_one_that_was_not_is_told() {
    let granted = log(vec![binding(), role(&json!([rule(&["get", "delete"], "pods")]))], &[("get", "pods")]);
    let none = Exceptions::default();
    assert_eq!(told(&granted, &none), ["granted and never used: command-reaper: delete pods"]);
    assert_eq!(told(&granted, &exceptions(&["delete pods"])), [""; 0]);
}

#[test]
fn a_right_on_one_name_is_not_used_by_a_request_for_another_one() {
    let mut one = rule(&["get"], "pods");
    one["resourceNames"] = json!(["web", "other"]);
    let granted = log(vec![binding(), role(&json!([one]))], &[("get", "pods")]);
    assert_eq!(
        told(&granted, &Exceptions::default()),
        ["granted and never used: command-reaper: get pods named other"]
    );
}

#[test]
fn a_right_on_a_kind_is_not_used_by_a_request_for_its_status_or_by_another_controller() {
    let mut granted = log(vec![binding(), role(&json!([rule(&["patch"], "pods/status")]))], &[]);
    granted.used.insert(request("patch", "pods"));
    let of_another = Request { account: "command-binder".into(), ..request("patch", "pods/status") };
    granted.used.insert(of_another);
    assert_eq!(told(&granted, &Exceptions::default()).len(), 1);
}

#[test]
fn a_right_that_is_used_on_one_of_two_clusters_is_needed() {
    let grants = || vec![role(&json!([rule(&["delete"], "pods")])), binding()];
    let told = |logs: &[Log]| compare(logs, &Exceptions::default()).len();
    assert_eq!(told(&[log(grants(), &[]), log(grants(), &[])]), 1);
    assert_eq!(told(&[log(grants(), &[]), log(grants(), &[("delete", "pods")])]), 0);
}

#[test]
fn an_exception_that_is_used_or_that_nothing_needs_is_told() {
    let granted = log(vec![binding(), role(&json!([rule(&["get"], "pods")]))], &[("get", "pods")]);
    let told = told(&granted, &exceptions(&["get pods", "get secrets"]));
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().any(|told| told.starts_with("used, although")), "{told:?}");
    assert!(told.iter().any(|told| told.ends_with("command-reaper: get secrets")), "{told:?}");
}

#[test]
fn a_right_that_is_sometimes_needed_may_be_used_or_not_and_must_be_granted() {
    let sometimes =
        |right: &str| Exceptions { sometimes: exceptions(&[right]).unused, ..Exceptions::default() };
    for used in [&[("get", "pods")][..], &[]] {
        let granted = log(vec![binding(), role(&json!([rule(&["get"], "pods")]))], used);
        assert_eq!(told(&granted, &sometimes("get pods")), [""; 0]);
    }
    let granted = log(vec![binding(), role(&json!([]))], &[]);
    assert_eq!(told(&granted, &sometimes("get pods")).len(), 1);
}

#[test]
fn a_rule_for_each_kind_in_the_values_is_used_when_it_is_used_for_one_of_them() {
    let chart = role(&json!([]));
    let values = role(&json!([rule(&["list", "delete"], "pods"), rule(&["list", "delete"], "secrets")]));
    let granted = log(vec![binding(), chart, values], &[("list", "pods")]);
    assert_eq!(
        told(&granted, &Exceptions::default()),
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
    let labels = json!({"app.kubernetes.io/managed-by": "Helm", "e2e.catena.dev/earlier-chart": "true"});
    let earlier = json!({"metadata": {"name": "role", "labels": labels}, "rules": [rule(&["get"], "pods")]});
    for object in [of_others, aggregated, earlier] {
        let granted = log(vec![binding(), written("clusterroles", object)], &[]);
        assert_eq!(told(&granted, &Exceptions::default()), [""; 0]);
    }
}

#[test]
fn a_star_is_any_kind_with_the_same_subresource() {
    let any = |right: &str| Exception { controller: "*".into(), right: right.into(), reason: "x".into() };
    for (right, verb, resource, is_about) in [
        ("update */finalizers", "update", "shops.example.com/finalizers", true),
        ("update */finalizers", "update", "shops.example.com", false),
        ("update *", "update", "shops.example.com/finalizers", false),
        ("update *", "patch", "shops.example.com", false),
        ("get pods", "get", "pods", true),
    ] {
        let [account, verb, resource] = ["command-binder", verb, resource].map(str::to_owned);
        let grant = Grant { account, verb, resource, namespace: None, name: None, by_values: None };
        assert_eq!(any(right).is_about(&grant), is_about, "{right}: {grant}");
    }
}

#[test]
fn the_committed_file_can_be_read() {
    let file = crate::workspace::root().join("e2e/rights.yaml");
    assert!(!Exceptions::read(&file).unwrap().unused.is_empty());
}
