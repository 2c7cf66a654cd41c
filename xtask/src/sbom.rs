//! The software bill of materials of a program: the crates that are compiled into it, as CycloneDX 1.5.
//!
//! Crates that only run while it is built (build scripts, macros, tests) are no part of it. Which features a crate has, and so which
//! optional crates it uses, is resolved as for the build of the images, where all controllers are built together.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use local_cluster::output;
use serde_json::{Value, json};

use crate::{cargo, charts};

/// The bill of materials of a program of the checkout for a target such as `x86_64-unknown-linux-gnu`, as JSON; the same text for
/// the same crates.
pub fn bill_of(program: &str, target: &str) -> Result<Vec<u8>> {
    let controllers: Vec<String> = charts::all().into_iter().map(|chart| chart.name).collect();
    let is_controller = controllers.iter().any(|controller| controller == program);
    let built_together = if is_controller { controllers } else { vec![program.to_owned()] };
    let uses = resolve(&built_together, target)?;
    let root = uses.keys().find(|one| one.name == program);
    let root = root.with_context(|| format!("there is no crate {program:?} in the checkout"))?;
    let (mut linked, mut open) = (BTreeSet::from([root]), vec![root]);
    while let Some(one) = open.pop() {
        open.extend(uses[one].iter().filter(|used| linked.insert(*used)));
    }
    // In the order of the references, as readers find them.
    let linked: BTreeMap<String, &Crate> = linked.into_iter().map(|one| (one.reference(), one)).collect();
    let libraries = linked.values().filter(|one| **one != root).map(|one| one.component("library"));
    let dependencies = linked.iter().map(|(reference, one)| {
        let uses: BTreeSet<String> = uses[*one].iter().map(Crate::reference).collect();
        json!({"ref": reference, "dependsOn": uses})
    });
    // Without a serial number or a time, which would make another text of the same crates.
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": root.component("application")},
        "components": libraries.collect::<Vec<_>>(),
        "dependencies": dependencies.collect::<Vec<_>>(),
    });
    serde_json::to_vec_pretty(&bill).context("could not write the bill of materials")
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Crate {
    name: String,
    version: String,
    /// Empty if it does not say.
    license: String,
}

/// The crates that are compiled for programs that are built together, as the lock file has them; each with those that it uses.
fn resolve(programs: &[String], target: &str) -> Result<BTreeMap<Crate, BTreeSet<Crate>>> {
    let mut cargo = cargo::command();
    cargo
        .args(["tree", "--locked", "--target", target, "--edges=normal,no-proc-macro"])
        .args(["--prefix=depth", "--format=\t{p}\t{l}\t"])
        .args(programs.iter().flat_map(|program| ["--package", program]));
    let tree = output(&mut cargo).context("cargo tree failed")?;
    let mut uses: BTreeMap<Crate, BTreeSet<Crate>> = BTreeMap::new();
    let mut above: Vec<Crate> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let (depth, found) = Crate::parse(line).with_context(|| format!("cargo tree told {line:?}"))?;
        above.truncate(depth);
        if let Some(user) = above.last().and_then(|user| uses.get_mut(user)) {
            user.insert(found.clone());
        }
        // A second time, those that it uses are left out.
        uses.entry(found.clone()).or_default();
        above.push(found);
    }
    Ok(uses)
}

impl Crate {
    /// A line of the tree, such as `2 tokio v1.54.1  MIT  (*)` with tabs between; a path may follow the version.
    fn parse(line: &str) -> Option<(usize, Self)> {
        let mut columns = line.split('\t');
        let depth = columns.next()?.parse().ok()?;
        let mut words = columns.next()?.split(' ');
        let (name, version) = (words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned());
        Some((depth, Self { name, version, license: columns.next()?.to_owned() }))
    }

    fn reference(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }

    fn component(&self, r#type: &str) -> Value {
        let Self { name, version, license } = self;
        let mut component = json!({
            "type": r#type,
            "bom-ref": self.reference(),
            "name": name,
            "version": version,
            // A version may have metadata behind a plus.
            "purl": format!("pkg:cargo/{name}@{}", version.replace('+', "%2B")),
        });
        if !license.is_empty() {
            // `A/B` is how crates said it before they wrote SPDX.
            component["licenses"] = json!([{"expression": license.replace('/', " OR ")}]);
        }
        component
    }
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
    fn no_program_links_another_one() {
        for program in programs() {
            let bill = bill(&program);
            let names = names(&bill);
            let linked = programs().into_iter().find(|other| names.contains(&other.as_str()));
            assert_eq!(linked, None, "{program}");
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
        let components = bill["components"].as_array().unwrap();
        assert!(components.is_sorted_by_key(|component| component["bom-ref"].as_str().unwrap()));
        let dependencies = bill["dependencies"].as_array().unwrap();
        assert_eq!(dependencies.len(), names(&bill).len() + 1, "the program itself has some, too");
        let of_program =
            dependencies.iter().find(|of| of["ref"].as_str().unwrap().starts_with("command-reaper@"));
        assert!(of_program.unwrap()["dependsOn"].to_string().contains("operator-kit@"));
    }

    #[test]
    fn every_program_that_ships_has_a_bill_and_it_is_the_same_every_time() {
        let bills: Vec<_> = programs().iter().map(|program| bill_of(program, TARGET).unwrap()).collect();
        assert_eq!(bills.len(), 7);
        assert_eq!(bills.last(), Some(&bill_of("kubectl-catena", TARGET).unwrap()));
        assert!(bill_of("nonsense", TARGET).is_err());
    }
}
