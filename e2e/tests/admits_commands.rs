//! Naming a target does not imply the right to command it: the binder's chart has the API server
//! check the user's rights on the target. Each test changes the release.

use anyhow::{Result, ensure};
use catena_api::BasicDeploymentRestart;
use e2e::{
    BINDER, COMMANDED, Cluster, Namespace, Release, WAIT_TIMEOUT, deployment, eventually,
    kinds_without_admission, kubectl_with_input, open_kind,
};
use kube::ResourceExt;
use serde_json::{Value, json};

type Restart = BasicDeploymentRestart;

fn restart(name: &str, target: &Value) -> String {
    json!({
        "apiVersion": "catena.dev/v1alpha1",
        "kind": "BasicDeploymentRestart",
        "metadata": {"name": name},
        "spec": {"targetRef": target},
    })
    .to_string()
}

/// Runs kubectl as a user, with the given input, and returns its output.
struct As<'n> {
    namespace: &'n Namespace,
    who: &'static [&'static str],
}

const ANN: &[&str] = &["--as", "ann"];
/// He may create commands, and do nothing else.
const BOB: &[&str] = &["--as", "bob"];
const BOB_OF_OPERATIONS: &[&str] = &["--as", "bob", "--as-group", "operations"];
const ADMINISTRATOR: &[&str] = &[];

impl As<'_> {
    async fn run(&self, verb: &[&str], object: &str) -> Result<(bool, String)> {
        let place = ["--namespace", &self.namespace.name, "--filename", "-"];
        kubectl_with_input(&[verb, self.who, &place].concat(), object).await
    }

    async fn succeeds(&self, verb: &[&str], object: &str) -> Result<()> {
        let (succeeded, said) = self.run(verb, object).await?;
        ensure!(succeeded, "{:?} {verb:?}: {said}", self.who);
        Ok(())
    }

    /// Returns the output.
    async fn is_refused(&self, verb: &[&str], object: &str) -> Result<String> {
        let (succeeded, said) = self.run(verb, object).await?;
        ensure!(!succeeded, "{:?} {verb:?} was taken: {said}", self.who);
        ensure!(said.contains("Forbidden") || said.contains("forbidden"), "{said}");
        Ok(said)
    }

    /// Waits until a create is refused or accepted, because a policy takes effect a moment after its creation.
    async fn until(&self, is_admitted: bool, object: &str) {
        let what = format!("{:?} is {}", self.who, if is_admitted { "admitted" } else { "refused" });
        eventually(&what, WAIT_TIMEOUT, async || {
            match self.run(&["create", "--dry-run=server"], object).await {
                Ok((succeeded, _)) if succeeded == is_admitted => Ok(()),
                other => Err(other),
            }
        })
        .await;
    }
}

const CREATE: &[&str] = &["create"];
const APPLY: &[&str] = &["apply", "--server-side"];

/// Grants the rights in `rules` in a namespace to users and a group.
async fn grant(namespace: &Namespace, name: &str, rules: Value, subjects: &[(&str, &str)]) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    let subjects: Vec<_> =
        subjects.iter().map(|(kind, name)| json!({"kind": kind, "name": name, "apiGroup": group})).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name}, "rules": rules},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name}, "subjects": subjects,
        },
    ]});
    As { namespace, who: ADMINISTRATOR }.succeeds(CREATE, &list.to_string()).await
}

#[tokio::test]
async fn a_user_commands_only_what_the_user_may_change() -> Result<()> {
    let cluster = Cluster::changing_one_of(&COMMANDED, BINDER).await?;
    let namespace = cluster.namespace("admission").await?;
    let commands = json!([{
        "apiGroups": ["catena.dev"],
        "resources": ["basicdeploymentrestarts"],
        "verbs": ["create", "get", "patch", "update"],
    }]);
    grant(&namespace, "commands", commands, &[("User", "ann"), ("User", "bob")]).await?;
    let web = json!([{
        "apiGroups": ["catena.dev"], "resources": ["basicdeployments"], "resourceNames": ["web"], "verbs": ["update"],
    }]);
    grant(&namespace, "web", web, &[("User", "ann"), ("Group", "operations")]).await?;
    namespace.create(&deployment("web", 1)).await?;
    let [ann, bob, operations, administrator] =
        [ANN, BOB, BOB_OF_OPERATIONS, ADMINISTRATOR].map(|who| As { namespace: &namespace, who });
    let on_web = |name: &str| restart(name, &json!({"name": "web"}));
    let release = Release::upgrade(&cluster, BINDER, &json!({"kinds": kinds_without_admission()?})).await?;
    bob.until(true, &on_web("before")).await;

    // Unless a value says otherwise, a kind of commands that are carried out is guarded.
    release.change(&json!({})).await?;
    bob.until(false, &on_web("bob")).await;
    let said = bob.is_refused(CREATE, &on_web("bob")).await?;
    for part in ["bob may not update basicdeployments.catena.dev web", &namespace.name, "ask for a Role"] {
        ensure!(said.contains(part), "{part} is not in: {said}");
    }
    bob.is_refused(APPLY, &on_web("bob")).await?;
    operations.succeeds(CREATE, &on_web("operations")).await?;

    ann.succeeds(CREATE, &on_web("ann")).await?;
    ann.succeeds(APPLY, &on_web("ann-applies")).await?;
    ann.is_refused(CREATE, &restart("ann-other", &json!({"name": "other"}))).await?;
    let own = json!({"name": "web", "namespace": namespace.name});
    ann.succeeds(CREATE, &restart("ann-own", &own)).await?;

    // Not even a user with all rights may command across namespaces.
    let elsewhere = restart("elsewhere", &json!({"name": "web", "namespace": "default"}));
    let said = administrator.is_refused(CREATE, &elsewhere).await?;
    ensure!(said.contains("works only in its own namespace"), "{said}");

    // Other changes of a command need no right on the target: labels, or the owner that the binder adds.
    let mut labelled: Value = serde_json::from_str(&on_web("ann"))?;
    labelled["metadata"]["labels"] = json!({"a": "label"});
    bob.succeeds(&["apply", "--server-side", "--force-conflicts"], &labelled.to_string()).await?;
    namespace.until("ann", "is bound", |ann: &Restart| !ann.owner_references().is_empty()).await;

    release.restore().await
}

/// A foreign kind: only labelled objects of the type Command are commands, for a Shop beside them or a Node.
fn operation_kind() -> String {
    open_kind("admission.example.com", "Operation", &["v1"]).to_string()
}

fn operation(name: &str, labels: &Value, spec: &Value) -> String {
    json!({
        "apiVersion": "admission.example.com/v1",
        "kind": "Operation",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    })
    .to_string()
}

#[tokio::test]
async fn commands_of_a_foreign_kind_ask_for_the_configured_verb_on_the_kind_that_they_name() -> Result<()> {
    let cluster = Cluster::changing_one_of(&COMMANDED, BINDER).await?;
    let namespace = cluster.namespace("admission").await?;
    let administrator = As { namespace: &namespace, who: ADMINISTRATOR };
    administrator.succeeds(&["apply"], &operation_kind()).await?;
    let operations = json!([{
        "apiGroups": ["admission.example.com"], "resources": ["operations"], "verbs": ["create", "get", "patch"],
    }]);
    grant(&namespace, "operations", operations, &[("User", "ann"), ("User", "bob")]).await?;
    let shops = json!([{"apiGroups": ["shops.example.com"], "resources": ["shops"], "verbs": ["close"]}]);
    grant(&namespace, "shops", shops, &[("User", "ann")]).await?;
    let values = json!({"kinds": [{
        "id": "operations",
        "group": "admission.example.com", "version": "v1", "resource": "operations", "kind": "Operation",
        "mode": "Observe",
        "selector": "tier=gold, !ignored, team!=none",
        "filter": "has(object.spec.type)\n&& object['spec'].type == 'Command'",
        "target": {
            "name": "object.spec.object.name",
            "kind": "object.spec.object.kind",
            "kinds": [
                {"group": "shops.example.com", "version": "v1", "resource": "shops", "kind": "Shop"},
                {"group": "", "version": "v1", "resource": "nodes", "kind": "Node", "scope": "Cluster"},
            ],
        },
        "admission": {"enabled": true, "verb": "close"},
    }]});
    let [ann, bob] = [ANN, BOB].map(|who| As { namespace: &namespace, who });
    let gold = json!({"tier": "gold"});
    // A kind that has just come is served a moment later.
    let on = |kind: &str| json!({"type": "Command", "object": {"kind": kind, "name": "one"}});
    bob.until(true, &operation("bob", &gold, &on("Shop"))).await;
    // From before the policy: it would not be admitted.
    let held = |labels: &Value, finalizers: &[&str]| -> Result<String> {
        let mut object: Value =
            serde_json::from_str(&operation("former", labels, &json!({"type": "Command"})))?;
        object["metadata"]["finalizers"] = json!(finalizers);
        Ok(object.to_string())
    };
    administrator.succeeds(APPLY, &held(&gold, &["example.com/held"])?).await?;
    let release = Release::upgrade(&cluster, BINDER, &values).await?;
    bob.until(false, &operation("bob", &gold, &on("Shop"))).await;
    let said = bob.is_refused(CREATE, &operation("bob", &gold, &on("Shop"))).await?;
    ensure!(said.contains("bob may not close shops.shops.example.com or nodes one"), "{said}");
    ann.succeeds(APPLY, &operation("ann", &gold, &on("Shop"))).await?;
    // A reference without a kind means the first one, as the binder reads it.
    for (name, spec) in [("empty", on("")), ("open", json!({"type": "Command", "object": {"name": "one"}}))] {
        bob.is_refused(CREATE, &operation(name, &gold, &spec)).await?;
        ann.succeeds(CREATE, &operation(name, &gold, &spec)).await?;
    }
    ann.is_refused(CREATE, &operation("node", &gold, &on("Node"))).await?;
    administrator.succeeds(CREATE, &operation("node", &gold, &on("Node"))).await?;
    administrator.is_refused(CREATE, &operation("odd", &gold, &on("Odd"))).await?;
    let said = administrator.run(CREATE, &operation("none", &gold, &json!({"type": "Command"}))).await?;
    ensure!(!said.0 && said.1.contains("names no target"), "{}", said.1);

    // What a command was before can be labelled and let go, even if it could no longer be created.
    administrator
        .succeeds(APPLY, &held(&json!({"tier": "gold", "seen": "yes"}), &["example.com/held"])?)
        .await?;
    administrator.succeeds(&["delete", "--wait=false"], &held(&gold, &[])?).await?;
    administrator.succeeds(APPLY, &held(&gold, &[])?).await?;

    // An object that is no command needs no right until it becomes one.
    let others = [
        ("plain", json!({}), on("Shop")),
        ("ignored", json!({"tier": "gold", "ignored": "yes"}), on("Shop")),
        ("team", json!({"tier": "gold", "team": "none"}), on("Shop")),
        ("typed", gold.clone(), json!({"type": "Note", "object": {"kind": "Shop", "name": "one"}})),
        ("untyped", gold.clone(), json!({"object": {"kind": "Shop", "name": "one"}})),
    ];
    for (name, labels, spec) in others {
        bob.succeeds(APPLY, &operation(name, &labels, &spec)).await?;
        bob.is_refused(APPLY, &operation(name, &gold, &on("Shop"))).await?;
    }
    // Whoever changes what a command asks for commands its target; labels ask for nothing.
    let mut more = on("Shop");
    more["force"] = true.into();
    bob.is_refused(APPLY, &operation("ann", &gold, &more)).await?;
    bob.succeeds(APPLY, &operation("ann", &json!({"tier": "gold", "seen": "yes"}), &on("Shop"))).await?;
    ann.succeeds(APPLY, &operation("ann", &gold, &more)).await?;
    // A right on one target is no right on another.
    ann.is_refused(APPLY, &operation("ann", &gold, &on("Node"))).await?;
    release.restore().await?;
    kubectl_with_input(&["delete", "--filename", "-"], &operation_kind()).await?;
    Ok(())
}

#[tokio::test]
async fn a_policy_reads_a_command_as_the_binder_does_in_whatever_version_it_comes() -> Result<()> {
    const SHOPS: &str = "shops.example.com";
    let cluster = Cluster::changing_one_of(&COMMANDED, BINDER).await?;
    let namespace = cluster.namespace("admission").await?;
    let [administrator, ann, bob] = [ADMINISTRATOR, ANN, BOB].map(|who| As { namespace: &namespace, who });
    administrator.succeeds(&["apply"], &operation_kind()).await?;
    let operations =
        json!([{"apiGroups": ["admission.example.com"], "resources": ["operations"], "verbs": ["create"]}]);
    grant(&namespace, "operations", operations, &[("User", "ann"), ("User", "bob")]).await?;
    let services = json!([{"apiGroups": [SHOPS], "resources": ["services"], "verbs": ["close"]}]);
    grant(&namespace, "services", services, &[("User", "ann")]).await?;
    let values = json!({"kinds": [{
        "id": "operations",
        // No longer served, or not yet.
        "group": "admission.example.com", "version": "v0", "resource": "operations", "kind": "Operation",
        "mode": "Observe",
        "target": {
            "name": "object.metadata.labels['admission.example.com/target']",
            "kind": "object.spec.`kind`",
            "group": "object.spec.group",
            "kinds": [
                {"group": SHOPS, "version": "v1", "resource": "services", "kind": "Service"},
                {"group": "", "version": "v1", "resource": "services", "kind": "Service"},
                {"group": "", "version": "v1", "resource": "nodes", "kind": "Node", "scope": "Cluster"},
            ],
        },
        "admission": {"enabled": true, "verb": "close"},
    }]});
    let one = json!({"admission.example.com/target": "one"});
    let service = |group: &str| operation("web", &one, &json!({"kind": "Service", "group": group}));
    bob.until(true, &service(SHOPS)).await;
    let release = Release::upgrade(&cluster, BINDER, &values).await?;
    bob.until(false, &service(SHOPS)).await;

    let dry_run: &[&str] = &["create", "--dry-run=server"];
    ann.succeeds(dry_run, &service(SHOPS)).await?;
    // An empty group is the core group, in which she may close nothing.
    ann.is_refused(dry_run, &service("")).await?;
    administrator.succeeds(dry_run, &service("")).await?;
    for (spec, labels, expected) in [
        (json!({"kind": "Service"}), &one, "object.spec.group must say which group"),
        (json!({"kind": "Service", "group": SHOPS}), &json!({}), "names no target"),
    ] {
        let (is_taken, said) = administrator.run(dry_run, &operation("web", labels, &spec)).await?;
        ensure!(!is_taken && said.contains(expected), "{spec}: {said}");
    }
    let node = operation("web", &one, &json!({"kind": "Node"}));
    let said = bob.is_refused(dry_run, &node).await?;
    ensure!(!said.contains(&format!("in the namespace {}", namespace.name)), "{said}");
    release.restore().await?;
    kubectl_with_input(&["delete", "--filename", "-"], &operation_kind()).await?;
    Ok(())
}

#[tokio::test]
async fn a_command_in_another_version_is_judged_as_the_configured_one_and_as_it_was_sent() -> Result<()> {
    let cluster = Cluster::changing_one_of(&COMMANDED, BINDER).await?;
    let namespace = cluster.namespace("admission").await?;
    let [administrator, bob] = [ADMINISTRATOR, BOB].map(|who| As { namespace: &namespace, who });
    let kind = open_kind("versions.example.com", "Move", &["v1", "v2"]).to_string();
    administrator.succeeds(&["apply"], &kind).await?;
    let moves = json!([{"apiGroups": ["versions.example.com"], "resources": ["moves"], "verbs": ["create"]}]);
    grant(&namespace, "moves", moves, &[("User", "bob")]).await?;
    let one = |version: &str| {
        json!({
            "apiVersion": format!("versions.example.com/{version}"),
            "kind": "Move",
            "metadata": {"name": "one"},
            "spec": {"to": "node"},
        })
        .to_string()
    };
    bob.until(true, &one("v2")).await;

    // It is a command by its version alone, which shows the version that each policy saw.
    let values = |is_command: &str| {
        json!({"kinds": [{
            "id": "moves",
            "group": "versions.example.com", "version": "v1", "resource": "moves", "kind": "Move",
            "mode": "Observe",
            "filter": format!("object.apiVersion == 'versions.example.com/{is_command}'"),
            "target": {
                "name": "object.spec.to",
                "kinds": [{"group": "", "version": "v1", "resource": "nodes", "kind": "Node", "scope": "Cluster"}],
            },
            "admission": {"enabled": true, "verb": "close"},
        }]})
    };
    let release = Release::upgrade(&cluster, BINDER, &values("v1")).await?;
    let policy = "ValidatingAdmissionPolicy 'command-binder-moves'";
    for version in ["v1", "v2"] {
        bob.until(false, &one(version)).await;
        let said = bob.is_refused(CREATE, &one(version)).await?;
        ensure!(said.contains(policy), "{version}: {said}");
    }
    release.change(&values("v2")).await?;
    bob.until(true, &one("v1")).await;
    bob.until(false, &one("v2")).await;
    let said = bob.is_refused(CREATE, &one("v2")).await?;
    ensure!(said.contains("ValidatingAdmissionPolicy 'command-binder-moves-other-versions'"), "{said}");
    release.restore().await?;
    bob.until(true, &one("v2")).await;
    kubectl_with_input(&["delete", "--filename", "-"], &kind).await?;
    Ok(())
}
