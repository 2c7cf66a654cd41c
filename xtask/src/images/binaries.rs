//! Static binaries for images.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use local_cluster::Interrupt;

use crate::{cargo, charts, workspace};

/// The cargo profile of what ships.
const PROFILE: &str = "dist";

/// Builds the packages for Linux on this machine's processor, static, and the same wherever they are built: always all
/// controllers, because which features a dependency has, and so each binary, depends on what is built with it. Returns the
/// directory of the binaries.
pub async fn build(packages: &[String], interrupt: &Interrupt) -> Result<PathBuf> {
    let (target, _) = target()?;
    // Paths of this machine are removed from panic messages, so that a build elsewhere has the same digest.
    let cargo_home = cargo_home().context("cargo's home is not known: set CARGO_HOME")?;
    let flags = [
        "-Ctarget-feature=+crt-static".to_owned(),
        format!("--remap-path-prefix={}=/catena", workspace::root().display()),
        format!("--remap-path-prefix={}=/cargo", cargo_home.display()),
    ];
    let controllers: Vec<String> = charts::all().into_iter().map(|chart| chart.name).collect();
    let others: Vec<_> = packages.iter().filter(|package| !controllers.contains(package)).cloned().collect();
    for together in [controllers, others].iter().filter(|together| !together.is_empty()) {
        let mut build = cargo::command();
        build.args(["build", "--profile", PROFILE, "--target", target]);
        build.args(together.iter().flat_map(|package| ["--package", package]));
        build.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
        interrupt.run(&mut build).await?;
    }
    Ok(workspace::target()?.join(target).join(PROFILE))
}

/// What images are built for: the target, and how Docker calls its architecture.
pub fn target() -> Result<(&'static str, &'static str)> {
    if cfg!(not(target_os = "linux")) {
        bail!("images hold Linux binaries, and this is {}: run this on Linux", std::env::consts::OS);
    }
    match std::env::consts::ARCH {
        "x86_64" => Ok(("x86_64-unknown-linux-gnu", "amd64")),
        "aarch64" => Ok(("aarch64-unknown-linux-gnu", "arm64")),
        other => bail!("images are built on x86_64 and aarch64, and this is {other}"),
    }
}

fn cargo_home() -> Option<PathBuf> {
    std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")))
}
