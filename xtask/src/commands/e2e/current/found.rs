//! The content of a cluster before the suite, so that everything else can be removed.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use local_cluster::{Step, explain};

use super::context::Context;
use crate::{charts::NAMESPACE, workspace};

const DEFINITION: &str = "customresourcedefinition.apiextensions.k8s.io/";
/// The selector of test namespaces, because others may be called e2e-*, too.
pub const OF_A_TEST: &str = "--selector=e2e.catena.dev/test";
/// The selector of everything that the charts install, under any name.
const INSTALLED: &str = "--selector=app.kubernetes.io/part-of=catena";

/// Namespaces and definitions, named as kubectl names them.
pub struct Found(BTreeSet<String>);

impl Found {
    pub fn look(context: &Context) -> Result<Self> {
        let kinds = "namespaces,customresourcedefinitions";
        let names = context
            .kubectl(&["get", kinds, "--output=name", "--request-timeout=30s"])
            .with_context(|| format!("the cluster {} ({}) does not answer", context.name, context.server))?;
        Ok(Self(lines(&names)))
    }

    /// Installations of the charts and our kinds: they belong to somebody, and the suite would replace and delete them.
    pub fn in_the_way(&self, context: &Context) -> Result<Vec<String>> {
        let title = r#"--output=jsonpath={range .items[*]}Deployment {.metadata.namespace}/{.metadata.name}{"\n"}{end}"#;
        let deployments = context.kubectl(&["get", "deployments", "--all-namespaces", INSTALLED, title])?;
        let releases = releases(context)?.into_iter().map(|name| format!("release {NAMESPACE}/{name}"));
        let definitions = catena_api::crds().into_iter().filter_map(|crd| crd.metadata.name);
        let ours = definitions.map(|name| format!("{DEFINITION}{name}")).filter(|name| self.0.contains(name));
        Ok(lines(&deployments).into_iter().chain(releases).chain(ours).collect())
    }

    /// Definitions of other projects that the suite would replace and delete, and with them all of their objects.
    pub fn kinds_of_others(&self, context: &Context) -> Result<Vec<String>> {
        let of_others = of_other_projects(context)?;
        let there = self.0.intersection(&of_others).filter_map(|name| name.strip_prefix(DEFINITION));
        Ok(there.map(ToOwned::to_owned).collect())
    }

    /// Removes what the suite made: the releases, the namespaces of tests, and the definitions.
    pub fn take_away_the_rest(&self, context: &Context) -> Result<()> {
        let step = Step::start("taking away what the suite made");
        let now = Self::look(context)?;
        let installed = releases(context)?;
        let of_others = of_other_projects(context)?;
        let of_tests = lines(&context.kubectl(&["get", "namespaces", OF_A_TEST, "--output=name"])?);
        let of_tests: Vec<&str> = of_tests.difference(&self.0).map(String::as_str).collect();
        let new = || now.0.difference(&self.0).map(String::as_str);
        let is_of_suite = |name: &&str| {
            name.ends_with(".catena.dev") || name.ends_with(".example.com") || of_others.contains(*name)
        };
        let definitions: Vec<&str> =
            new().filter(|name| name.starts_with(DEFINITION)).filter(is_of_suite).collect();
        let system: Vec<&str> = new().filter(|name| *name == format!("namespace/{NAMESPACE}")).collect();

        // Each step runs even if the one before failed. Objects that are deleted first may be held by
        // backup-controller, which releases them when it is uninstalled.
        let mut done = vec![delete(context, &of_tests, "--wait=false")];
        for release in &installed {
            let uninstall = ["uninstall", release, "--namespace", NAMESPACE, "--wait", "--timeout=180s"];
            done.push(context.helm(&uninstall).map(drop));
        }
        for names in [of_tests, definitions, system] {
            done.push(delete(context, &names, "--timeout=300s"));
        }
        let failed: Vec<String> =
            done.into_iter().filter_map(Result::err).map(|error| explain(&error)).collect();
        ensure!(failed.is_empty(), "{}", failed.join("; "));
        step.done("");
        Ok(())
    }
}

/// The releases of helm in the namespace of the controllers.
fn releases(context: &Context) -> Result<BTreeSet<String>> {
    Ok(lines(&context.helm(&["list", "--short", "--namespace", NAMESPACE])?))
}

fn delete(context: &Context, names: &[&str], wait: &str) -> Result<()> {
    if !names.is_empty() {
        context.kubectl(&[&["delete", "--ignore-not-found", wait], names].concat())?;
    }
    Ok(())
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
