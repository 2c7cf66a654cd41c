//! Terminating namespaces and definitions with remaining contents.

use serde_json::{Value, json};

use super::scene::*;

/// Its finalizers are in its spec, and those of its contents only in its conditions.
#[test]
fn a_namespace_that_waits_for_its_contents() {
    let remaining = |finalizer: &str| {
        let conditions = [
            condition(
                "NamespaceDeletionContentFailure",
                "False",
                "ContentDeleted",
                "All content successfully deleted",
            ),
            condition(
                "NamespaceContentRemaining",
                "True",
                "SomeResourcesRemain",
                "Some resources are remaining: configmaps. has 2 resource instances",
            ),
            condition(
                "NamespaceFinalizersRemaining",
                "True",
                "SomeFinalizersRemain",
                &format!(
                    "Some content in the namespace has finalizers remaining: {finalizer} in 2 resource instances"
                ),
            ),
        ];
        let body = json!({"metadata": {"deletionTimestamp": THEN}, "status": {"conditions": conditions}});
        vec![object("v1", "Namespace", "shop", None, body)]
    };
    let ours = explained("Namespace/shop", &remaining("catena.dev/backup"), &calm());
    insta::assert_snapshot!("namespace_held_for_backups", ours);
    let theirs = ask("Namespace/shop", &remaining("example.com/x"), &calm()).root_cause.unwrap();
    assert!(!theirs.advice.contains("held"), "{}", theirs.advice);
    assert!(theirs.message.contains("example.com/x in 2 resource instances"), "{}", theirs.message);
}

/// Its conditions come some seconds after its deletion, and say at first that nothing remains.
#[test]
fn a_namespace_is_never_told_to_be_held_by_nothing() {
    let empty = condition("NamespaceContentRemaining", "False", "ContentRemoved", "All content removed");
    for conditions in [json!([]), json!([empty])] {
        let body = json!({"metadata": {"deletionTimestamp": THEN}, "status": {"conditions": conditions}});
        let answer = ask("Namespace/shop", &[object("v1", "Namespace", "shop", None, body)], &calm());
        assert!(answer.sentence.contains("waits for its contents"), "{}", answer.sentence);
        assert!(!answer.sentence.contains("nothing holds"), "{}", answer.sentence);
    }
}

#[test]
fn a_namespace_that_waits_for_an_api_without_a_server() {
    let message =
        "Discovery failed for some groups, 1 failing: metrics.example.com/v1: stale GroupVersion discovery";
    let failed = condition("NamespaceDeletionDiscoveryFailure", "True", "DiscoveryFailed", message);
    let body = json!({"metadata": {"deletionTimestamp": THEN}, "status": {"conditions": [failed]}});
    let cause =
        ask("Namespace/shop", &[object("v1", "Namespace", "shop", None, body)], &calm()).root_cause.unwrap();
    assert!(cause.meaning.contains("an API that does not answer"), "{}", cause.meaning);
    assert!(cause.advice.contains("delete its APIService"), "{}", cause.advice);
    assert_eq!(cause.message, message);
}

#[test]
fn a_definition_is_judged_by_its_names() {
    let told = |accepted: Value, established: Value| {
        let body = json!({"status": {"conditions": [accepted, established]}});
        let name = "widgets.example.com";
        let definition = object("apiextensions.k8s.io/v1", "CustomResourceDefinition", name, None, body);
        explained(&format!("CustomResourceDefinition/{name}"), &[definition], &calm())
    };
    let well = told(
        condition("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
        condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted"),
    );
    assert_eq!(well, "CustomResourceDefinition/widgets.example.com is ready.\n");
    let taken = told(
        condition("NamesAccepted", "False", "ShortNamesConflict", "\"wd\" is already in use"),
        condition("Established", "False", "NotAccepted", "not all names are accepted"),
    );
    assert!(
        taken.contains("is not ready (ShortNamesConflict") && taken.contains("\"wd\" is already in use"),
        "{taken}"
    );
}

#[test]
fn a_definition_that_waits_for_its_instances() {
    let left = condition("Terminating", "True", "InstanceDeletionInProgress", "2 instances remain");
    let metadata =
        json!({"deletionTimestamp": THEN, "finalizers": ["customresourcecleanup.apiextensions.k8s.io"]});
    let body = json!({"metadata": metadata, "status": {"conditions": [left]}});
    let definition =
        object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.com", None, body);
    let asked = "CustomResourceDefinition/widgets.example.com";
    insta::assert_snapshot!("definition_with_instances", explained(asked, &[definition], &calm()));
}
