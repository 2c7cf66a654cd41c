//! Every program alone has its dependencies with the features that they have in the whole workspace, so that each is compiled
//! once for a profile, whatever is selected.

use std::{collections::BTreeSet, process::Command};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// It has no Kubernetes client, and is only built for images.
const WITHOUT_CLIENT: &str = "workload";

fn cargo(arguments: &[&str]) -> Result<String> {
    let output = Command::new(env!("CARGO")).args(arguments).output().context("could not run cargo")?;
    ensure!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// The packages of other workspaces in what is built, each with its version and features. One may be there twice: once
/// for build scripts and macros.
fn packages(selection: &[&str]) -> Result<BTreeSet<String>> {
    let tree = cargo(&[&["tree", "--prefix=none", "--no-dedupe", "--format={p} [{f}]"], selection].concat())?;
    // Our own are followed by their paths.
    let others = tree.lines().filter(|line| !line.contains("(/"));
    Ok(others.map(|line| line.replace(" (proc-macro)", "")).collect())
}

/// The packages of the workspace that are programs, and those that share the features of programs.
fn programs() -> Result<(BTreeSet<String>, BTreeSet<String>)> {
    let metadata: Value = serde_json::from_str(&cargo(&["metadata", "--no-deps", "--format-version=1"])?)?;
    let packages = metadata["packages"].as_array().context("cargo names no packages")?;
    let has =
        |list: &Value, fits: &dyn Fn(&Value) -> bool| list.as_array().is_some_and(|all| all.iter().any(fits));
    let names = |fits: &dyn Fn(&Value) -> bool| {
        let fitting = packages.iter().filter(|package| fits(package));
        fitting.filter_map(|package| Some(package["name"].as_str()?.to_owned())).collect()
    };
    let is_program = |package: &Value| {
        package["name"] != WITHOUT_CLIENT && has(&package["targets"], &|target| target["kind"][0] == "bin")
    };
    let shares = |package: &Value| {
        has(&package["dependencies"], &|used| used["name"] == "workspace-hack" && used["kind"].is_null())
    };
    Ok((names(&is_program), names(&shares)))
}

#[test]
fn each_dependency_of_a_program_alone_is_one_of_the_whole_workspace() -> Result<()> {
    let (programs, sharing) = programs()?;
    ensure!(programs.len() >= 8, "there are more programs than {programs:?}");
    ensure!(programs.is_subset(&sharing), "without workspace-hack: {:?}", programs.difference(&sharing));
    let mut different = BTreeSet::new();
    // What is linked, and then also what build scripts and macros use, whose features may be others.
    for (of_whole, of_program) in [
        ("--edges=normal,dev,no-proc-macro", "--edges=normal,no-proc-macro"),
        ("--edges=normal,build,dev", "--edges=normal,build"),
    ] {
        let whole = packages(&["--workspace", of_whole])?;
        for program in &sharing {
            for package in packages(&["--package", program, of_program])?.difference(&whole) {
                different.insert(format!("{program}: {package}"));
            }
        }
    }
    ensure!(
        different.is_empty(),
        "add the missing features to crates/workspace-hack/Cargo.toml:\n{}",
        different.into_iter().collect::<Vec<_>>().join("\n")
    );
    Ok(())
}

#[test]
fn the_types_need_no_client() -> Result<()> {
    let types = packages(&["--package", "catena-api", "--edges=normal"])?;
    let client = ["kube-client ", "hyper ", "tokio "];
    let found: Vec<_> =
        types.iter().filter(|line| client.iter().any(|name| line.starts_with(name))).collect();
    ensure!(found.is_empty(), "catena-api has a client: {found:?}");
    Ok(())
}
