//! The paths in the checkout.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use anyhow::{Context, Result};
use local_cluster::output;
use serde_json::Value;

/// The root of the checkout.
pub fn root() -> PathBuf {
    // `cargo run` gives the present path of the manifest; the value from the build covers a direct start.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest.parent().map(Path::to_path_buf).unwrap_or(manifest)
}

/// The Helm charts, one directory each.
pub fn charts() -> PathBuf {
    root().join("charts")
}

/// Values that let a chart run on a local cluster.
pub fn local_values() -> PathBuf {
    root().join("xtask/values/local.yaml")
}

/// Values that let a chart run on a kind cluster.
pub fn kind_values() -> PathBuf {
    root().join("xtask/values/kind.yaml")
}

/// Values with which the end-to-end suite installs charts, on top of those of the cluster: a file for each chart that needs
/// any.
pub fn suite_values() -> PathBuf {
    root().join("xtask/values/e2e")
}

/// Cargo's target directory, wherever its variables and configuration put it.
pub fn target() -> Result<PathBuf> {
    static TARGET: OnceLock<PathBuf> = OnceLock::new();
    if let Some(target) = TARGET.get() {
        return Ok(target.clone());
    }
    let target = target_of(&mut Command::new("cargo"))?;
    Ok(TARGET.get_or_init(|| target).clone())
}

fn target_of(cargo: &mut Command) -> Result<PathBuf> {
    let metadata = output(cargo.current_dir(root()).args(["metadata", "--no-deps", "--format-version=1"]));
    let metadata = metadata.context("cargo metadata does not tell the target directory")?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata cannot be read")?;
    let target = metadata["target_directory"].as_str();
    Ok(target.context("cargo metadata does not tell the target directory")?.into())
}

/// How binaries are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// `cargo build`: what this program shares its dependencies with.
    Development,
    /// `cargo build --release`
    Release,
}

impl Profile {
    fn directory(self) -> &'static str {
        match self {
            Self::Development => "debug",
            Self::Release => "release",
        }
    }
}

/// The directory of a profile's binaries.
pub fn binaries(profile: Profile) -> Result<PathBuf> {
    let own = std::env::current_exe().context("could not find this program's own file")?;
    Ok(binaries_in(&target()?, &own, profile))
}

/// If cargo's configuration names a platform, its binaries are in a directory of that name, and so is this program.
fn binaries_in(target: &Path, own: &Path, profile: Profile) -> PathBuf {
    let within: Vec<_> = own.strip_prefix(target).into_iter().flatten().collect();
    match within[..] {
        [platform, built, _] if built == "debug" || built == "release" => {
            target.join(platform).join(profile.directory())
        }
        _ => target.join(profile.directory()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_directory_is_where_cargo_builds() {
        let relative = target_of(Command::new("cargo").env("CARGO_TARGET_DIR", "elsewhere")).unwrap();
        assert_eq!(relative, root().join("elsewhere"));
        let mut configured = Command::new("cargo");
        configured.env_remove("CARGO_TARGET_DIR").args(["--config", "build.target-dir='/configured'"]);
        assert_eq!(target_of(&mut configured).unwrap(), Path::new("/configured"));
    }

    #[test]
    fn the_binaries_of_a_configured_platform_are_found_by_this_program() {
        let binaries = |own: &str, profile| binaries_in(Path::new("/t"), Path::new(own), profile);
        let [development, release] = [Profile::Development, Profile::Release];
        assert_eq!(binaries("/t/debug/xtask", development), Path::new("/t/debug"));
        assert_eq!(binaries("/t/debug/xtask", release), Path::new("/t/release"));
        assert_eq!(binaries("/t/debug/deps/xtask-1", release), Path::new("/t/release"));
        assert_eq!(binaries("/elsewhere/a/debug/xtask", release), Path::new("/t/release"));
        let platform = "/t/x86_64-unknown-linux-gnu";
        let own = format!("{platform}/debug/xtask");
        assert_eq!(binaries(&own, development), Path::new(platform).join("debug"));
        assert_eq!(binaries(&own, release), Path::new(platform).join("release"));
    }
}
