//! The software bill of materials of a program: the crates that are compiled into it, as CycloneDX 1.5.
//!
//! Crates that only run while it is built (build scripts, macros, tests) are no part of it. Which features a crate has, and so which
//! optional crates it uses, is resolved as for the build of the images, where all controllers are built together.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{cargo, charts};

/// The bill of materials of a program of the checkout for a target such as `x86_64-unknown-linux-gnu`, as JSON; the same text for
/// the same crates.
pub fn bill_of(program: &str, target: &str) -> Result<Vec<u8>> {
    let controllers: Vec<String> = charts::all().into_iter().map(|chart| chart.name).collect();
    let is_controller = controllers.iter().any(|controller| controller == program);
    let built_together = if is_controller { controllers } else { vec![program.to_owned()] };
    let bill = Crates::resolve(&built_together, target)?.bill_of(program)?;
    serde_json::to_vec_pretty(&bill).context("could not write the bill of materials")
}

/// The part of `cargo metadata` that is needed here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: BTreeSet<String>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Used>,
}

#[derive(Deserialize)]
struct Used {
    pkg: String,
    dep_kinds: Vec<UsedFor>,
}

/// `kind` is null for what a crate is linked with, and names what else it is used for.
#[derive(Deserialize)]
struct UsedFor {
    kind: Option<String>,
}

/// The crates of some programs for one target, by their ids.
struct Crates {
    packages: BTreeMap<String, Package>,
    workspace_members: BTreeSet<String>,
    nodes: BTreeMap<String, Vec<Used>>,
    /// The name and version of each crate that is compiled for any of the programs.
    compiled: BTreeSet<(String, String)>,
}

impl Crates {
    /// As the lock file has them, for programs that are built together.
    fn resolve(programs: &[String], target: &str) -> Result<Self> {
        let metadata = told(&["metadata", "--format-version=1", "--locked", "--filter-platform", target])?;
        let metadata: Metadata = serde_json::from_str(&metadata).context("cargo metadata cannot be read")?;
        // It resolves features for the tests, too, and the tree does not.
        let mut arguments = vec!["tree", "--locked", "--target", target, "--edges=normal,no-proc-macro"];
        arguments.extend(["--prefix=none", "--format={p}"]);
        arguments.extend(programs.iter().flat_map(|program| ["--package", program]));
        let compiled = told(&arguments)?.lines().filter_map(name_and_version).collect();
        Ok(Self {
            packages: metadata.packages.into_iter().map(|package| (package.id.clone(), package)).collect(),
            workspace_members: metadata.workspace_members,
            nodes: metadata.resolve.nodes.into_iter().map(|node| (node.id, node.deps)).collect(),
            compiled,
        })
    }

    fn bill_of(&self, program: &str) -> Result<Value> {
        let mut members = self.workspace_members.iter().filter_map(|id| self.packages.get(id));
        let root = members.find(|package| package.name == program);
        let root = root.with_context(|| format!("there is no crate {program:?} in the checkout"))?;
        let linked = self.linked_into(root)?;
        let libraries = linked.values().filter(|(package, _)| package.id != root.id);
        let dependencies = linked.iter().map(|(reference, (_, uses))| {
            let uses: BTreeSet<String> = uses.iter().map(|used| used.reference()).collect();
            json!({"ref": reference, "dependsOn": uses})
        });
        // Without a serial number or a time, which would make another text of the same crates.
        Ok(json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {"component": root.component("application")},
            "components": libraries.map(|(package, _)| package.component("library")).collect::<Vec<_>>(),
            "dependencies": dependencies.collect::<Vec<_>>(),
        }))
    }

    /// The crates that are linked into one, itself included, by their references, each with those that it uses.
    fn linked_into<'a>(
        &'a self,
        root: &'a Package,
    ) -> Result<BTreeMap<String, (&'a Package, Vec<&'a Package>)>> {
        let mut linked = BTreeMap::new();
        let mut open = vec![root];
        while let Some(package) = open.pop() {
            if linked.contains_key(&package.reference()) {
                continue;
            }
            let node = self.nodes.get(&package.id);
            let node = node.with_context(|| format!("cargo resolved no {}", package.id))?;
            let uses: Vec<&Package> = node
                .iter()
                .filter(|used| used.dep_kinds.iter().any(|used_for| used_for.kind.is_none()))
                .filter_map(|used| self.packages.get(&used.pkg))
                .filter(|used| self.compiled.contains(&(used.name.clone(), used.version.clone())))
                .collect();
            open.extend(&uses);
            linked.insert(package.reference(), (package, uses));
        }
        Ok(linked)
    }
}

impl Package {
    fn reference(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }

    fn component(&self, r#type: &str) -> Value {
        let Self { name, version, license, .. } = self;
        let mut component = json!({
            "type": r#type,
            "bom-ref": self.reference(),
            "name": name,
            "version": version,
            // A version may have metadata behind a plus.
            "purl": format!("pkg:cargo/{name}@{}", version.replace('+', "%2B")),
        });
        if let Some(license) = license {
            // `A/B` is how crates said it before they wrote SPDX.
            component["licenses"] = json!([{"expression": license.replace('/', " OR ")}]);
        }
        component
    }
}

/// What cargo answers.
fn told(arguments: &[&str]) -> Result<String> {
    let output = cargo::command().args(arguments).output().context("could not run cargo")?;
    if !output.status.success() {
        bail!("cargo {} failed: {}", arguments[0], String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("cargo told no text")
}

/// Of a line such as `tokio v1.54.1 (*)`.
fn name_and_version(line: &str) -> Option<(String, String)> {
    let mut words = line.split(' ');
    Some((words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::images::programs;

    const TARGET: &str = "x86_64-unknown-linux-gnu";

    fn bill(program: &str) -> Value {
        serde_json::from_slice(&bill_of(program, TARGET).unwrap()).unwrap()
    }

    fn names(bill: &Value) -> Vec<&str> {
        let components = bill["components"].as_array().unwrap().iter();
        components.map(|component| component["name"].as_str().unwrap()).collect()
    }

    #[test]
    fn a_bill_lists_what_is_linked_and_nothing_that_only_builds_or_tests() {
        let bill = bill("backup-controller");
        let names = names(&bill);
        for linked in ["operator-kit", "catena-api", "kube-client", "tokio", "serde", "rustls", "ring"] {
            assert!(names.contains(&linked), "{linked} is not in {names:?}");
        }
        // A macro, crates of tests and of build scripts, another platform's, other programs.
        for other in
            ["serde_derive", "proptest", "tower-test", "cc", "windows-sys", "xtask", "command-binder"]
        {
            assert!(!names.contains(&other), "{other} is in {names:?}");
        }
    }

    #[test]
    fn each_crate_has_its_version_its_license_and_its_dependencies() {
        let bill = bill("command-reaper");
        assert_eq!(bill["bomFormat"], "CycloneDX");
        assert_eq!(bill["metadata"]["component"]["name"], "command-reaper");
        for component in bill["components"].as_array().unwrap() {
            let (name, version) =
                (component["name"].as_str().unwrap(), component["version"].as_str().unwrap());
            assert_eq!(component["purl"], format!("pkg:cargo/{name}@{version}"));
            assert!(component["licenses"][0].is_object(), "{component}");
        }
        let dependencies = bill["dependencies"].as_array().unwrap();
        assert_eq!(dependencies.len(), names(&bill).len() + 1, "the program itself has some, too");
        let of_program =
            dependencies.iter().find(|of| of["ref"].as_str().unwrap().starts_with("command-reaper@"));
        assert!(of_program.unwrap()["dependsOn"].to_string().contains("operator-kit@"));
    }

    #[test]
    fn every_program_that_ships_has_a_bill_and_it_is_the_same_every_time() {
        let bills: Vec<_> = programs().iter().map(|program| bill_of(program, TARGET).unwrap()).collect();
        assert_eq!(bills.len(), 6);
        assert_eq!(bills.last(), Some(&bill_of("kubectl-catena", TARGET).unwrap()));
        assert!(bill_of("nonsense", TARGET).is_err());
    }
}
