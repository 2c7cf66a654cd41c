//! Builds missing tools, once per user.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use super::pins::{Pins, Tool, minor};
use crate::{cache, lock, progress::Step};

/// The Go module that pins the tools.
pub const GO_MOD: &str = include_str!("../../control-plane/go.mod");
const GO_SUM: &str = include_str!("../../control-plane/go.sum");

/// Locked in the directory of the tools while they are built.
pub const LOCK: &str = ".lock";

/// The directory of the tools of the present go.mod, whether or not they are built yet.
pub fn directory(pins: &Pins) -> Result<PathBuf> {
    let mut hasher = Sha256::new();
    hasher.update(GO_MOD);
    hasher.update(GO_SUM);
    hasher.update(go_version(pins)?);
    hasher.update(linker_flags(pins)?);
    hasher.update(BUILD_FLAGS.join(" "));
    let key = hasher.finalize().iter().take(8).fold(String::new(), |key, byte| format!("{key}{byte:02x}"));
    Ok(cache::directory()?.join("tools").join(key))
}

const BUILD_FLAGS: [&str; 3] = ["-trimpath", "-mod=readonly", "-buildvcs=false"];

/// Builds the given tools into `directory`. Two runs at once are safe: one waits for the other.
pub fn build(tools: &[Tool], pins: &Pins, directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("could not create {}", directory.display()))?;
    let _lock = lock::wait_for(&directory.join(LOCK), "builds the tools")?;
    let missing: Vec<Tool> =
        tools.iter().copied().filter(|tool| !directory.join(tool.binary()).is_file()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    eprintln!(
        "Building {} tool(s) of the local cluster from source, once. A machine that never built them \
         needs about ten minutes.",
        missing.len()
    );
    let module = write_module(directory)?;
    for (index, tool) in missing.iter().enumerate() {
        build_one(*tool, pins, &module, directory, &format!("{}/{}", index + 1, missing.len()))?;
    }
    Ok(())
}

/// Writes the module to a separate directory, so that the tools can be built without a checkout.
fn write_module(directory: &Path) -> Result<PathBuf> {
    let module = directory.join("module");
    fs::create_dir_all(&module).with_context(|| format!("could not create {}", module.display()))?;
    for (file, text) in [("go.mod", GO_MOD), ("go.sum", GO_SUM)] {
        let path = module.join(file);
        fs::write(&path, text).with_context(|| format!("could not write {}", path.display()))?;
    }
    Ok(module)
}

fn build_one(tool: Tool, pins: &Pins, module: &Path, directory: &Path, count: &str) -> Result<()> {
    let step = Step::start(format!("building {} {} ({count})", tool.binary(), pins.version(tool)?));
    let unfinished = directory.join(format!(".{}.{}", tool.binary(), std::process::id()));
    let output = go()
        .current_dir(module)
        .arg("build")
        .args(BUILD_FLAGS)
        .arg(format!("-ldflags={}", linker_flags(pins)?))
        .arg("-o")
        .arg(&unfinished)
        .arg(tool.package())
        .stdin(Stdio::null())
        .output()
        .context("could not run go")?;
    if !output.status.success() {
        fs::remove_file(&unfinished).ok();
        bail!(
            "building {} failed: go build ended with {}; its last words:\n{}\nIf modules could not be \
             fetched, check the network or set GOPROXY.",
            tool.binary(),
            output.status,
            tail(&String::from_utf8_lossy(&output.stderr), 15),
        );
    }
    // A reader never sees half a binary.
    fs::rename(&unfinished, directory.join(tool.binary()))
        .with_context(|| format!("could not move {} into place", unfinished.display()))?;
    step.done("");
    Ok(())
}

fn go() -> Command {
    let mut go = Command::new("go");
    // Never fetch another Go behind the user's back; flags of the user's own would change the key's meaning.
    go.env("GOTOOLCHAIN", "local").env("GOFLAGS", "").env("GOWORK", "off");
    go
}

fn go_version(pins: &Pins) -> Result<String> {
    let wanted = pins.go()?;
    let output = match go().args(["env", "GOVERSION"]).output() {
        Ok(output) => output,
        Err(error) => bail!(
            "Go was not found: {error}; the local cluster's tools are built from source: install Go {wanted} \
             or newer (https://go.dev/dl/) and put it on PATH"
        ),
    };
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let found = minor(version.trim_start_matches("go"));
    if !output.status.success() || found < minor(wanted) {
        bail!(
            "Go is too old: found {version}, the local cluster's tools need {wanted}; install a newer Go \
             (https://go.dev/dl/)"
        );
    }
    Ok(version)
}

/// Without these flags, Kubernetes' programs report the version v0.0.0-master.
fn linker_flags(pins: &Pins) -> Result<String> {
    let version = pins.version(Tool::ApiServer)?;
    let (major, minor) =
        minor(version).with_context(|| format!("go.mod pins an odd Kubernetes version: {version}"))?;
    let package = "k8s.io/component-base/version";
    Ok(format!(
        "-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    ))
}

fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
