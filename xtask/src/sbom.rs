//! The software bill of materials of a program: the crates that are compiled into it, as CycloneDX.
//!
//! Crates that only run while it is built (build scripts, macros, tests) are no part of it. Which features a crate has, and so which
//! optional crates it uses, is resolved as for the build of the images, where all controllers are built together.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use cargo_metadata::{DependencyKind, Metadata as Resolved, MetadataCommand, Node, Package, PackageId};
use cyclonedx_bom::{
    external_models::spdx::SpdxExpression,
    models::{
        bom::{Bom, SpecVersion},
        component::{Classification, Component, Components},
        dependency::{Dependencies, Dependency},
        license::{LicenseChoice, Licenses},
        metadata::Metadata,
    },
    prelude::{Purl, Validate},
};

use crate::{cargo, charts};

/// The bill of materials of a program of the checkout for a target such as `x86_64-unknown-linux-gnu`, as JSON; the same text for
/// the same crates.
///
/// # Errors
/// When there is no such program, or cargo cannot tell its crates.
pub fn bill_of(program: &str, target: &str) -> Result<Vec<u8>> {
    let controllers: Vec<String> = charts::all().into_iter().map(|chart| chart.name).collect();
    let is_controller = controllers.iter().any(|controller| controller == program);
    let built_together = if is_controller { controllers } else { vec![program.to_owned()] };
    Crates::resolve(&built_together, target)?.bill_of(program)
}

/// The crates of some programs for one target.
struct Crates {
    resolved: Resolved,
    /// The name and version of each crate that is compiled for any of the programs.
    compiled: BTreeSet<(String, String)>,
}

impl Crates {
    /// As the lock file has them, for programs that are built together.
    fn resolve(programs: &[String], target: &str) -> Result<Self> {
        let metadata = told(&["metadata", "--format-version=1", "--locked", "--filter-platform", target])?;
        let resolved = MetadataCommand::parse(metadata).context("cargo metadata cannot be read")?;
        // It resolves features for the tests, too, and the tree does not.
        let mut arguments = vec!["tree", "--locked", "--target", target, "--edges=normal,no-proc-macro"];
        arguments.extend(["--prefix=none", "--format={p}"]);
        arguments.extend(programs.iter().flat_map(|program| ["--package", program]));
        let compiled = told(&arguments)?.lines().filter_map(name_and_version).collect();
        Ok(Self { resolved, compiled })
    }

    fn bill_of(&self, program: &str) -> Result<Vec<u8>> {
        let root = self.resolved.workspace_packages().into_iter().find(|package| package.name == program);
        let root = root.with_context(|| format!("there is no crate {program:?} in the checkout"))?;
        let linked = self.linked_into(&root.id)?;
        let mut components = Vec::new();
        let mut dependencies = Vec::new();
        for (id, uses) in &linked {
            if **id != root.id {
                components.push(component(&self.resolved[id], Classification::Library)?);
            }
            let mut uses: Vec<String> = uses.iter().map(|used| reference(&self.resolved[used])).collect();
            uses.sort();
            dependencies
                .push(Dependency { dependency_ref: reference(&self.resolved[id]), dependencies: uses });
        }
        components.sort_by(|a, b| a.bom_ref.cmp(&b.bom_ref));
        dependencies.sort_by(|a, b| a.dependency_ref.cmp(&b.dependency_ref));
        let bom = Bom {
            // A number or a time would make another text of the same crates.
            serial_number: None,
            metadata: Some(Metadata {
                component: Some(component(root, Classification::Application)?),
                ..Metadata::default()
            }),
            components: Some(Components(components)),
            dependencies: Some(Dependencies(dependencies)),
            ..Bom::default()
        };
        let checked = bom.validate_version(SpecVersion::V1_5);
        if !checked.passed() {
            bail!("the bill of materials of {program} is not valid: {checked:?}");
        }
        let mut text = Vec::new();
        bom.output_as_json_v1_5(&mut text).context("could not write the bill of materials")?;
        Ok(text)
    }

    /// The crates that are linked into one, itself included, each with those that it uses.
    fn linked_into<'a>(&'a self, root: &'a PackageId) -> Result<BTreeMap<&'a PackageId, Vec<&'a PackageId>>> {
        let resolve = self.resolved.resolve.as_ref().context("cargo resolved no dependencies")?;
        let nodes: BTreeMap<&PackageId, &Node> = resolve.nodes.iter().map(|node| (&node.id, node)).collect();
        let mut linked = BTreeMap::new();
        let mut open = BTreeSet::from([root]);
        while let Some(id) = open.pop_first() {
            let node = nodes.get(id).with_context(|| format!("cargo resolved no {id}"))?;
            let uses: Vec<&PackageId> = node
                .deps
                .iter()
                .filter(|used| used.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal))
                .map(|used| &used.pkg)
                .filter(|used| self.is_compiled(&self.resolved[*used]))
                .collect();
            open.extend(uses.iter().filter(|used| !linked.contains_key(**used) && **used != id));
            linked.insert(id, uses);
        }
        Ok(linked)
    }

    fn is_compiled(&self, package: &Package) -> bool {
        self.compiled.contains(&(package.name.to_string(), package.version.to_string()))
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

fn component(package: &Package, r#type: Classification) -> Result<Component> {
    let version = package.version.to_string();
    let mut component = Component::new(r#type, &package.name, &version, Some(reference(package)));
    let purl = Purl::new("cargo", &package.name, &version);
    component.purl = Some(purl.with_context(|| format!("{} cannot be named as a package", package.name))?);
    component.licenses = package.license.as_ref().map(|license| Licenses(vec![choice(license)]));
    Ok(component)
}

fn choice(license: &str) -> LicenseChoice {
    // How crates said it before they wrote SPDX.
    match SpdxExpression::try_from(license.replace('/', " OR ")) {
        Ok(expression) => LicenseChoice::Expression(expression),
        Err(_) => LicenseChoice::license(license),
    }
}

fn reference(package: &Package) -> String {
    format!("{}@{}", package.name, package.version)
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
