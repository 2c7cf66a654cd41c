//! Tools that are on this machine already, used only in the version that go.mod pins.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::pins::{Tool, minor};

/// A binary of the pinned minor version in `KUBEBUILDER_ASSETS` or on PATH.
pub fn find(tool: Tool, pinned: &str) -> Option<PathBuf> {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = assets.into_iter().chain(std::env::split_paths(&path));
    directories.map(|directory| directory.join(tool.binary())).find(|candidate| {
        candidate.is_file() && minor(pinned).is_some_and(|wanted| version(tool, candidate) == Some(wanted))
    })
}

fn version(tool: Tool, binary: &Path) -> Option<(u32, u32)> {
    let arguments: &[&str] = match tool {
        Tool::Kubectl => &["version", "--client"],
        Tool::Helm => &["version", "--short"],
        _ => &["--version"],
    };
    let output = Command::new(binary).args(arguments).output().ok()?;
    first_version(&String::from_utf8_lossy(&output.stdout))
}

/// The first word that looks like a version, in any context.
fn first_version(text: &str) -> Option<(u32, u32)> {
    text.split_whitespace()
        .filter(|word| word.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit()))
        .find_map(minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_in_what_each_tool_prints() {
        assert_eq!(first_version("Kubernetes v1.37.1\n"), Some((1, 37)));
        assert_eq!(first_version("Client Version: v1.36.2\nKustomize Version: v5.8.0"), Some((1, 36)));
        assert_eq!(first_version("etcd Version: 3.7.3\nGit SHA: 1234567\nGo Version: go1.26"), Some((3, 7)));
        assert_eq!(first_version("v4.3.1+g8e2a"), Some((4, 3)));
        assert_eq!(first_version("kwok version v0.8.0 go1.26 (linux/amd64)"), Some((0, 8)));
        assert_eq!(first_version("no idea"), None);
    }
}
