//! `cargo xtask kubectl` and `cargo xtask helm`

use std::{ffi::OsString, fs, os::unix::process::CommandExt, process::Command};

use anyhow::{Context, Result};

use crate::{charts, cluster::Cluster};

/// Replaces this process by kubectl for the cluster; returns only if that fails.
pub fn kubectl(name: &str, arguments: &[OsString]) -> Result<()> {
    become_client(Cluster::named(name)?.access.kubectl().args(arguments))
}

/// Replaces this process by helm, with the values that every chart of the checkout needs on this cluster: without them,
/// the pods of a local one land on fake nodes, where they only appear to run.
pub fn helm(name: &str, arguments: &[OsString]) -> Result<()> {
    let cluster = Cluster::named(name)?;
    let mut arguments = arguments.to_vec();
    if let Some(verb) = renders_a_chart_of_ours(&arguments) {
        eprintln!("with --values {}", cluster.values.display());
        // Before the user's values, which take precedence.
        let users = arguments.split_off(verb + 1);
        arguments.extend(["--values".into(), cluster.values.clone().into_os_string()]);
        arguments.extend(users);
    }
    become_client(cluster.access.helm().args(arguments))
}

fn become_client(client: &mut Command) -> Result<()> {
    let error = client.exec();
    Err(error).with_context(|| format!("could not run {}", client.get_program().display()))
}

/// The position of the verb that renders a chart of the checkout, if there is one.
fn renders_a_chart_of_ours(arguments: &[OsString]) -> Option<usize> {
    let charts: Vec<_> =
        charts::all().into_iter().filter_map(|chart| fs::canonicalize(chart.directory).ok()).collect();
    let is_ours = |argument: &OsString| fs::canonicalize(argument).is_ok_and(|path| charts.contains(&path));
    let verb = arguments
        .iter()
        .position(|argument| ["install", "upgrade", "template"].iter().any(|verb| argument == verb))?;
    arguments[verb..].iter().any(is_ours).then_some(verb)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    fn verb(line: &[&str]) -> Option<usize> {
        let chart = workspace::charts().join("command-binder").into_os_string();
        renders_a_chart_of_ours(&line.iter().map(OsString::from).chain([chart]).collect::<Vec<_>>())
    }

    #[test]
    fn only_what_renders_a_chart_of_the_checkout_gets_values() {
        assert_eq!(verb(&["upgrade", "--install", "command-binder"]), Some(0));
        assert_eq!(verb(&["--namespace", "catena-system", "upgrade", "command-binder"]), Some(2));
        assert_eq!(verb(&["lint"]), None);
        assert_eq!(renders_a_chart_of_ours(&["install", "other", "/tmp"].map(OsString::from)), None);
    }
}
