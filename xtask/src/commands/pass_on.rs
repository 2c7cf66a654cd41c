//! `cargo xtask kubectl` and `cargo xtask helm`

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::process::CommandExt,
    path::Path,
    process::Command,
};

use anyhow::{Context, Result};

use crate::{
    charts,
    cluster::{home::Home, state::State},
    toolchain::Tool,
};

/// Becomes the tool, pointed at the cluster; returns only when that fails.
pub fn run(name: &str, tool: Tool, arguments: &[OsString]) -> Result<()> {
    let home = Home::of(name)?;
    let state = State::require(&home)?;
    let program = state.toolchain.path(tool)?;
    let error = Command::new(program).args(arguments).env("KUBECONFIG", home.kubeconfig()).exec();
    Err(error).with_context(|| format!("could not run {}", program.display()))
}

/// The same for helm, with the values that every chart of the checkout needs on this cluster: without them its pods land on
/// fake nodes, where they only look as if they ran.
pub fn helm(name: &str, arguments: &[OsString]) -> Result<()> {
    let values = Home::of(name)?.access()?.values;
    let arguments = match arguments.split_first() {
        Some((verb, rest)) if renders_a_chart_of_ours(verb, rest) => {
            eprintln!("with --values {}", values.display());
            // Before the user's, which have the last word.
            let ours = [verb.clone(), "--values".into(), values.into_os_string()];
            ours.into_iter().chain(rest.iter().cloned()).collect()
        }
        _ => arguments.to_vec(),
    };
    run(name, Tool::Helm, &arguments)
}

fn renders_a_chart_of_ours(verb: &OsStr, arguments: &[OsString]) -> bool {
    let charts: Vec<_> =
        charts::all().into_iter().filter_map(|chart| fs::canonicalize(chart.directory).ok()).collect();
    let is_ours =
        |argument: &OsString| fs::canonicalize(Path::new(argument)).is_ok_and(|path| charts.contains(&path));
    ["install", "upgrade", "template"].iter().any(|known| verb == *known) && arguments.iter().any(is_ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    fn is_ours(line: &[&str]) -> bool {
        let chart = workspace::charts().join("command-binder").into_os_string();
        let arguments = line[1..].iter().map(OsString::from).chain([chart]).collect::<Vec<_>>();
        renders_a_chart_of_ours(line[0].as_ref(), &arguments)
    }

    #[test]
    fn only_what_renders_a_chart_of_the_checkout_gets_values() {
        assert!(is_ours(&["upgrade", "--install", "command-binder"]));
        assert!(!is_ours(&["lint"]));
        assert!(!renders_a_chart_of_ours("install".as_ref(), &["other".into(), "/tmp".into()]));
    }
}
