//! Builds missing programs from their Go modules, once per user.

use std::{
    collections::VecDeque,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use indicatif::HumanCount;
use sha2::{Digest, Sha256};

use super::{
    downloads::hex,
    pins::{self, GO_MOD, Tool, minor},
};
use crate::{cache, files, progress::Step};

const GO_SUM: &str = include_str!("../../control-plane/go.sum");

/// Locked in the directory of the tools while they are built.
pub const LOCK: &str = ".lock";

/// The linker drops all debug information: without it, the build cache is a fifth smaller.
const BUILD_FLAGS: [&str; 4] = ["-trimpath", "-mod=readonly", "-buildvcs=false", "-gcflags=all=-dwarf=false"];

/// Lines of a failed build that are shown.
const LAST_LINES: usize = 15;

/// The directory of the tools of the present go.mod, whether or not they are built yet.
pub fn directory() -> Result<PathBuf> {
    let mut hasher = Sha256::new();
    hasher.update(GO_MOD);
    hasher.update(GO_SUM);
    hasher.update(linker_flags()?);
    hasher.update(BUILD_FLAGS.join(" "));
    Ok(cache::directory()?.join("tools").join(hex(&hasher.finalize()[..8])))
}

/// Fails if Go is missing, or is too old for these tools.
pub fn ensure_possible(tools: &[Tool]) -> Result<()> {
    let names = pins::names(tools)?;
    ensure_go().with_context(|| {
        format!("not in the cache, not on this machine in a version that fits, and not downloaded: {names}")
    })
}

/// Builds the given tools into `directory`. Two runs at once are safe: one waits for the other.
pub fn build(tools: &[Tool], directory: &Path) -> Result<()> {
    files::create_directory(directory)?;
    let _lock = files::lock(&directory.join(LOCK), "builds the tools")?;
    let missing: Vec<Tool> =
        tools.iter().copied().filter(|tool| !directory.join(tool.binary()).is_file()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    ensure_possible(&missing)?;
    let names = pins::names(&missing)?;
    eprintln!(
        "Building from source, once: {names}. A machine that never built all of them needs about ten minutes."
    );
    let module = write_module(directory)?;
    let step = Step::start("building from source");
    step.note("fetching modules");
    let packages = missing.iter().map(|tool| tool.package());
    let mut total = 0_u64;
    run(go().current_dir(&module).args(["list", "-deps"]).args(packages.clone()), || total += 1)?;

    // A killed run may have left it.
    fs::remove_dir_all(directory.join("unfinished")).ok();
    let unfinished = tempfile::Builder::new().prefix("unfinished").rand_bytes(0).tempdir_in(directory)?;
    let mut build = go();
    build.current_dir(&module).args(["build", "-v"]).args(BUILD_FLAGS);
    build.arg(format!("-ldflags={}", linker_flags()?)).arg("-o").arg(unfinished.path()).args(packages);
    let mut compiled = 0;
    run(&mut build, || {
        compiled += 1;
        step.note(format!("compiled {} of {} packages", HumanCount(compiled), HumanCount(total)));
    })?;
    for tool in missing {
        // A reader never sees half a binary.
        let binary = unfinished.path().join(tool.built_as());
        fs::rename(&binary, directory.join(tool.binary()))
            .with_context(|| format!("could not move {} into place", binary.display()))?;
    }
    step.done("");
    Ok(())
}

/// Writes the module to a separate directory, so that the tools can be built without a checkout.
fn write_module(directory: &Path) -> Result<PathBuf> {
    let module = directory.join("module");
    files::create_directory(&module)?;
    files::write(&module.join("go.mod"), GO_MOD)?;
    files::write(&module.join("go.sum"), GO_SUM)?;
    Ok(module)
}

/// Runs go, and tells of each package that it names on either of its outputs.
fn run(go: &mut Command, mut package: impl FnMut()) -> Result<()> {
    let (output, input) = std::io::pipe().context("could not make a pipe")?;
    go.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input);
    let mut child = go.spawn().context("could not run go")?;
    // Else this process would hold the pipe open.
    go.stdout(Stdio::null()).stderr(Stdio::null());
    let mut last = VecDeque::new();
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        if line.contains(char::is_whitespace) {
            last.push_back(line);
            last.drain(..last.len().saturating_sub(LAST_LINES));
        } else {
            package();
        }
    }
    let status = child.wait().context("could not wait for go")?;
    if !status.success() {
        bail!(
            "building from source failed: go ended with {status}; its last words:\n{}\nIf modules could not be fetched, check the network or set \
             GOPROXY.",
            Vec::from(last).join("\n"),
        );
    }
    Ok(())
}

fn go() -> Command {
    let mut go = Command::new("go");
    // Never fetch another Go behind the user's back; flags of the user's own would change the key's meaning; no program
    // needs a C compiler.
    go.env("GOTOOLCHAIN", "local").env("GOFLAGS", "").env("GOWORK", "off").env("CGO_ENABLED", "0");
    go
}

fn ensure_go() -> Result<()> {
    let wanted = pins::go()?;
    let output = match go().args(["env", "GOVERSION"]).output() {
        Ok(output) => output,
        Err(error) => bail!(
            "Go was not found: {error}; programs that were not downloaded are built from source: install Go \
             {wanted} or newer (https://go.dev/dl/) and put it on PATH, or set CATENA_DOWNLOADS to the file of a mirror"
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
    Ok(())
}

/// Without these flags, Kubernetes' programs report the version v0.0.0-master.
fn linker_flags() -> Result<String> {
    let version = pins::version(Tool::ApiServer)?;
    let (major, minor) =
        minor(version).with_context(|| format!("go.mod pins an odd Kubernetes version: {version}"))?;
    let package = "k8s.io/component-base/version";
    Ok(format!(
        "-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::again;

    #[test]
    fn the_last_words_of_a_failed_build_are_shown() {
        let machine = tempfile::tempdir().unwrap();
        let script = r#"[ "$1" = env ] && echo go1.99.0 && exit; [ "$1" = list ] && echo a/b && exit; seq -f 'line %g' 20 >&2; echo a/b >&2; exit 2"#;
        let variables = [("PATH", again::program(machine.path(), "go", script))];
        if again::has("toolchain::build::tests::the_last_words_of_a_failed_build_are_shown", &variables) {
            let error = build(&[Tool::Helm], machine.path()).unwrap_err();
            let said = error.to_string();
            assert!(said.contains("exit status: 2") && said.contains("GOPROXY"), "{said}");
            assert!(said.contains("words:\nline 6\n") && said.contains("line 20\n"), "{said}");
            assert!(!machine.path().join("helm").exists());
        }
    }
}
