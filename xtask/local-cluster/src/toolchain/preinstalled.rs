//! Programs that are on this machine already, used only in a version that fits.

use std::{
    io::Read,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use super::pins::{Tool, minor};

/// Older ones do not know `--take-ownership`.
const OLDEST_HELM: (u32, u32) = (3, 17);

/// Time for a program to tell its version: what is on PATH may be anything.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes that are read of what it says.
const MAX_SAID: u64 = 16 << 10;

/// A binary in `KUBEBUILDER_ASSETS` or on PATH whose version fits the pinned one. Without one, a client that does not fit
/// is mentioned.
pub fn find(tool: Tool, pinned: &str) -> Option<PathBuf> {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = assets.into_iter().chain(std::env::split_paths(&path));
    let mut refusal = None;
    for candidate in directories.map(|directory| directory.join(tool.binary())).filter(|path| path.is_file())
    {
        let version = version(tool, &candidate);
        let Some(reason) = refused(tool, version.as_deref(), pinned) else { return Some(candidate) };
        let found = version.unwrap_or_else(|| "of no known version".to_owned());
        refusal.get_or_insert_with(|| {
            format!("{} {found} at {} is not taken: {reason}", tool.binary(), candidate.display())
        });
    }
    if let (Some(refusal), Tool::Kubectl | Tool::Helm) = (refusal, tool) {
        eprintln!("{refusal}");
    }
    None
}

/// Why a version does not fit. The clients talk to servers of other versions, too.
fn refused(tool: Tool, found: Option<&str>, pinned: &str) -> Option<String> {
    let (found, wanted) = (found.and_then(minor), minor(pinned)?);
    let (fits, needed) = match tool {
        Tool::Kubectl => {
            let is_near = |(major, minor): (u32, u32)| major == wanted.0 && minor.abs_diff(wanted.1) <= 1;
            (found.is_some_and(is_near), format!("{pinned} ± 1 minor is needed"))
        }
        Tool::Helm => {
            let (major, minor) = OLDEST_HELM;
            let is_known = |found| (OLDEST_HELM..=(wanted.0, u32::MAX)).contains(&found);
            (found.is_some_and(is_known), format!("v{major}.{minor} to v{} is needed", wanted.0))
        }
        _ => (found == Some(wanted), format!("the minor of {pinned} is needed")),
    };
    (!fits).then_some(needed)
}

fn version(tool: Tool, binary: &Path) -> Option<String> {
    let arguments: &[&str] = match tool {
        Tool::Kubectl => &["version", "--client"],
        Tool::Helm => &["version", "--short"],
        _ => &["--version"],
    };
    let said = said(Command::new(binary).args(arguments), PATIENCE)?;
    first_version(&String::from_utf8_lossy(&said)).map(str::to_owned)
}

/// The output of a program that succeeds in time.
fn said(program: &mut Command, patience: Duration) -> Option<Vec<u8>> {
    let program = program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = program.spawn().ok()?;
    let output = child.stdout.take()?;
    let (sender, receiver) = mpsc::channel();
    // It is not waited for: a child of the program may keep the pipe open.
    thread::spawn(move || {
        let mut said = Vec::new();
        if output.take(MAX_SAID).read_to_end(&mut said).is_ok() {
            sender.send(said).ok();
        }
    });
    let end = Instant::now() + patience;
    let status = loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(5)),
            ended => break ended.ok().flatten(),
        }
    };
    if status.is_none() {
        child.kill().and_then(|()| child.wait()).ok();
    }
    status.filter(ExitStatus::success)?;
    receiver.recv_timeout(patience).ok()
}

/// The first word that looks like a version, in any context.
fn first_version(text: &str) -> Option<&str> {
    text.split_whitespace()
        .filter(|word| word.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit()))
        .find(|word| minor(word).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_in_what_each_tool_prints() {
        assert_eq!(first_version("Kubernetes v1.37.1\n"), Some("v1.37.1"));
        assert_eq!(first_version("Client Version: v1.36.2\nKustomize Version: v5.8.0"), Some("v1.36.2"));
        assert_eq!(first_version("etcd Version: 3.7.3\nGit SHA: 1234567\nGo Version: go1.26"), Some("3.7.3"));
        assert_eq!(first_version("v4.3.1+g8e2a"), Some("v4.3.1+g8e2a"));
        assert_eq!(first_version("kwok version v0.8.0 go1.26 (linux/amd64)"), Some("v0.8.0"));
        assert_eq!(first_version("no idea"), None);
    }

    #[test]
    fn a_program_that_fails_hangs_or_talks_without_end_tells_nothing() {
        let said = |script: &str, patience| said(Command::new("sh").args(["-c", script]), patience);
        assert_eq!(said("echo v1.37.1", PATIENCE).unwrap(), b"v1.37.1\n");
        for script in ["echo v3.18.2; exit 126", "echo v3.18.2; exec sleep 60", "exec yes v4"] {
            assert_eq!(said(script, Duration::from_millis(500)), None, "{script}");
        }
    }

    #[test]
    fn a_client_may_be_of_another_minor_and_a_server_may_not() {
        let fits = |tool, found, pinned| refused(tool, Some(found), pinned).is_none();
        for (found, is_taken) in
            [("v1.35.9", false), ("v1.36.0", true), ("v1.37.9", true), ("v1.38.0", true), ("v1.39.0", false)]
        {
            assert_eq!(fits(Tool::Kubectl, found, "v1.37.1"), is_taken, "{found}");
            assert_eq!(fits(Tool::ApiServer, found, "v1.37.1"), found == "v1.37.9", "{found}");
        }
        for (found, is_taken) in
            [("v2.17.0", false), ("v3.16.4", false), ("v3.17.0", true), ("v4.0.0", true), ("v5.0.0", false)]
        {
            assert_eq!(fits(Tool::Helm, found, "v4.3.1"), is_taken, "{found}");
        }
        assert_eq!(
            refused(Tool::Kubectl, Some("v1.32.4"), "v1.37.1").unwrap(),
            "v1.37.1 ± 1 minor is needed"
        );
        assert_eq!(refused(Tool::Helm, None, "v4.3.1").unwrap(), "v3.17 to v4 is needed");
    }
}
