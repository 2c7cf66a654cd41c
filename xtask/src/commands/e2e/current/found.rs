//! The content of a cluster before the suite, so that everything else can be removed.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use local_cluster::{Step, explain};
use serde_json::Value;

use super::context::Context;
use crate::{charts::NAMESPACE, workspace};

const DEFINITION: &str = "customresourcedefinition.apiextensions.k8s.io/";
/// The selector of test namespaces, because others may be called e2e-*, too.
pub const OF_A_TEST: &str = "--selector=e2e.catena.dev/test";
/// The selector of everything that the charts install, under any name.
const INSTALLED: &str = "--selector=app.kubernetes.io/part-of=catena";

/// Names in the format of kubectl.
pub struct Found {
    /// Namespaces and definitions.
    names: BTreeSet<String>,
    /// Releases of helm in the namespace of the controllers.
    releases: BTreeSet<String>,
}

impl Found {
    pub fn look(context: &Context) -> Result<Self> {
        let names = context
            .kubectl(&[
                "get",
                "namespaces,customresourcedefinitions",
                "--output=name",
                "--request-timeout=30s",
            ])
            .with_context(|| format!("the cluster {} ({}) does not answer", context.name, context.server))?;
        let releases = context.helm(&["list", "--short", "--namespace", NAMESPACE])?;
        Ok(Self { names: lines(&names), releases: lines(&releases) })
    }

    /// Installations of the charts and objects of our kinds that belong to somebody, and that the suite would replace
    /// or delete.
    pub fn in_the_way(&self, context: &Context) -> Result<BTreeSet<String>> {
        let mut in_the_way = titles(context, &["deployments", INSTALLED])?;
        let ours: Vec<&str> = self
            .names
            .iter()
            .filter_map(|name| name.strip_prefix(DEFINITION))
            .filter(|name| catena_api::crds().iter().any(|crd| crd.metadata.name.as_deref() == Some(name)))
            .collect();
        if !ours.is_empty() {
            in_the_way.extend(titles(context, &[&ours.join(",")])?);
        }
        Ok(in_the_way)
    }

    /// Definitions of other projects that the suite would replace and delete, and with them all of their objects.
    pub fn kinds_of_others(&self, context: &Context) -> Result<Vec<String>> {
        let of_others = of_other_projects(context)?;
        let there = self.names.intersection(&of_others).filter_map(|name| name.strip_prefix(DEFINITION));
        Ok(there.map(ToOwned::to_owned).collect())
    }

    /// Removes new objects of the kinds that the suite creates.
    pub fn take_away_the_rest(&self, context: &Context) -> Result<()> {
        let step = Step::start("taking away what the suite made");
        let now = Self::look(context)?;
        let of_others = of_other_projects(context)?;
        let of_tests = lines(&context.kubectl(&["get", "namespaces", OF_A_TEST, "--output=name"])?);
        let namespaces_of_tests: Vec<&str> = of_tests.difference(&self.names).map(String::as_str).collect();
        let of_suite = |name: &&str| {
            name.ends_with("catena.dev") || name.ends_with("example.com") || of_others.contains(*name)
        };
        let new = now.names.difference(&self.names).map(String::as_str);
        let definitions: Vec<&str> =
            new.filter(|name| name.starts_with(DEFINITION)).filter(of_suite).collect();
        let system = format!("namespace/{NAMESPACE}");
        let system: Vec<&str> = if self.names.contains(&system) { Vec::new() } else { vec![&system] };

        // Each step runs even if the one before failed. Objects that are deleted first may be held by
        // backup-controller, which releases them when it is uninstalled.
        let mut done = vec![delete(context, &namespaces_of_tests, "--wait=false")];
        for release in now.releases.difference(&self.releases) {
            let uninstall = ["uninstall", release, "--namespace", NAMESPACE, "--wait", "--timeout=180s"];
            done.push(context.helm(&uninstall).map(drop));
        }
        if delete(context, &namespaces_of_tests, "--timeout=60s").is_err() {
            done.extend(namespaces_of_tests.iter().map(|namespace| free(context, namespace)));
        }
        for names in [namespaces_of_tests, definitions, system] {
            done.push(delete(context, &names, "--timeout=300s"));
        }
        let failed: Vec<String> =
            done.into_iter().filter_map(Result::err).map(|error| explain(&error)).collect();
        ensure!(failed.is_empty(), "{}", failed.join("; "));
        step.done("");
        Ok(())
    }
}

/// The objects of a kubectl query, by readable names.
fn titles(context: &Context, question: &[&str]) -> Result<BTreeSet<String>> {
    let columns = "--output=custom-columns=A:.kind,B:.metadata.namespace,C:.metadata.name";
    let listed =
        context.kubectl(&[&["get"], question, &["--all-namespaces", "--no-headers", columns]].concat())?;
    let title = |line: &String| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [kind, namespace, name] => format!("{kind} {namespace}/{name}"),
        _ => line.clone(),
    };
    Ok(lines(&listed).iter().map(title).collect())
}

fn delete(context: &Context, names: &[&str], wait: &str) -> Result<()> {
    if !names.is_empty() {
        context.kubectl(&[&["delete", "--ignore-not-found", wait], names].concat())?;
    }
    Ok(())
}

/// Removes the finalizers from the rest of a namespace that does not terminate: they come from an interrupted test, and
/// nobody else will remove them.
fn free(context: &Context, namespace: &str) -> Result<()> {
    let Some(name) = namespace.strip_prefix("namespace/") else { return Ok(()) };
    let kinds = context.kubectl(&["api-resources", "--namespaced", "--verbs=list,patch", "--output=name"])?;
    let kinds = lines(&kinds).into_iter().collect::<Vec<_>>().join(",");
    let left = context.kubectl(&["get", &kinds, "--namespace", name, "--output=json"])?;
    let left: Value = serde_json::from_str(&left).context("could not understand what kubectl listed")?;
    for object in held(&left) {
        let none = r#"--patch={"metadata":{"finalizers":null}}"#;
        context.kubectl(&["patch", &object, "--namespace", name, "--type=merge", none])?;
    }
    Ok(())
}

/// The objects of a list that have finalizers, in the format of kubectl: `kind.version.group/name`.
fn held(list: &Value) -> Vec<String> {
    let text = |object: &Value, field: &str| {
        object.pointer(field).and_then(Value::as_str).map(ToOwned::to_owned).unwrap_or_default()
    };
    let title = |object: &Value| {
        let api_version = text(object, "/apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        format!("{}.{version}.{group}/{}", text(object, "/kind"), text(object, "/metadata/name"))
    };
    let has_finalizers = |object: &&Value| {
        object.pointer("/metadata/finalizers").and_then(Value::as_array).is_some_and(|list| !list.is_empty())
    };
    list["items"].as_array().into_iter().flatten().filter(has_finalizers).map(title).collect()
}

/// The definitions that the suite installs temporarily.
fn of_other_projects(context: &Context) -> Result<BTreeSet<String>> {
    let files = workspace::root().join("e2e/crds").display().to_string();
    let names = ["create", "--dry-run=client", "--validate=false", "--output=name", "--filename", &files];
    Ok(lines(&context.kubectl(&names)?))
}

fn lines(text: &str) -> BTreeSet<String> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(ToOwned::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_has_finalizers_is_named_with_its_group() {
        let list = json!({"items": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "free"}},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": ["a/b"]}},
            {"apiVersion": "e2e.catena.dev/v1", "kind": "Gadget", "metadata": {"name": "it", "finalizers": ["a/b"]}},
        ]});
        assert_eq!(held(&list), ["ConfigMap.v1./held", "Gadget.v1.e2e.catena.dev/it"]);
    }
}
