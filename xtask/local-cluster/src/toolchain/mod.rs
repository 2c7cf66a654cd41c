//! The real programs of a local cluster, pinned in `control-plane/go.mod`.

mod at_hand;
mod build;
mod pins;

use std::{collections::BTreeMap, path::PathBuf, thread};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use self::pins::Pins;
pub use self::pins::Tool;

const CLIENTS: [Tool; 2] = [Tool::Kubectl, Tool::Helm];

/// The path of each tool.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Toolchain {
    binaries: BTreeMap<String, PathBuf>,
}

impl Toolchain {
    /// Finds each tool in the cache or on this machine, and builds the missing ones.
    pub async fn provide() -> Result<Self> {
        Self::aside(&Tool::ALL).await
    }

    /// Finds or builds the tools for any cluster: kubectl and helm.
    pub async fn clients() -> Result<Self> {
        Self::aside(&CLIENTS).await
    }

    /// The same for callers that have nothing else to wait for.
    pub(crate) fn clients_at_once() -> Result<Self> {
        Self::of(&CLIENTS)
    }

    /// Works on a separate thread, which is abandoned if a signal comes first.
    async fn aside(wanted: &'static [Tool]) -> Result<Self> {
        let (tell, told) = oneshot::channel();
        thread::spawn(move || tell.send(Self::of(wanted)));
        told.await.context("the search for the tools ended unexpectedly")?
    }

    fn of(wanted: &[Tool]) -> Result<Self> {
        let pins = Pins::new(build::GO_MOD);

        let mut binaries = BTreeMap::new();
        let mut missing = Vec::new();
        let built = build::directory(&pins);
        for &tool in wanted {
            let cached = built.as_ref().ok().map(|directory| directory.join(tool.binary()));
            if let Some(path) = cached.filter(|path| path.is_file()) {
                binaries.insert(tool.binary().to_owned(), path);
            } else if let Some(path) = at_hand::find(tool, pins.version(tool)?) {
                binaries.insert(tool.binary().to_owned(), path);
            } else {
                missing.push(tool);
            }
        }
        if !missing.is_empty() {
            // Go is needed only from here on.
            let directory = built.with_context(|| {
                let versions = missing.iter().filter_map(|&tool| Some((tool, pins.version(tool).ok()?)));
                let names: Vec<_> =
                    versions.map(|(tool, version)| format!("{} {version}", tool.binary())).collect();
                format!("not in the cache, and not on PATH in this minor version: {}", names.join(", "))
            })?;
            build::build(&missing, &pins, &directory)?;
            for tool in missing {
                binaries.insert(tool.binary().to_owned(), directory.join(tool.binary()));
            }
        }
        Ok(Self { binaries })
    }

    /// The path of one tool.
    pub fn path(&self, tool: Tool) -> Result<&PathBuf> {
        self.binaries.get(tool.binary()).with_context(|| {
            format!("no {} in this cluster's state: take it down and bring it up again", tool.binary())
        })
    }

    /// Each tool's name and path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &PathBuf)> {
        self.binaries.iter().map(|(name, path)| (name.as_str(), path))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use tokio::time::timeout;

    use super::*;
    use crate::{again, lock};

    #[tokio::test]
    async fn without_go_the_missing_tools_are_named_with_their_versions() {
        let machine = tempfile::tempdir().unwrap();
        let variables = [
            ("PATH", machine.path().into()),
            ("KUBEBUILDER_ASSETS", machine.path().into()),
            ("CATENA_CACHE", machine.path().into()),
        ];
        let test = "toolchain::tests::without_go_the_missing_tools_are_named_with_their_versions";
        if again::has(test, &variables) {
            let said = format!("{:#}", Toolchain::clients().await.unwrap_err());
            for part in ["kubectl v", "helm v4", "install Go"] {
                assert!(said.contains(part), "{said}");
            }
        }
    }

    #[tokio::test]
    async fn a_wait_for_the_tools_of_another_run_can_be_interrupted() {
        let machine = tempfile::tempdir().unwrap();
        let go = again::program(machine.path(), "go", "echo go1.99.0");
        let variables = [("PATH", go), ("CATENA_CACHE", machine.path().into())];
        let test = "toolchain::tests::a_wait_for_the_tools_of_another_run_can_be_interrupted";
        if !again::has(test, &variables) {
            return;
        }
        let directory = build::directory(&Pins::new(build::GO_MOD)).unwrap();
        fs::create_dir_all(&directory).unwrap();
        let other = lock::wait_for(&directory.join(build::LOCK), "is none").unwrap();
        // Without this end, a wait that blocks would last for ever.
        thread::spawn(move || {
            thread::sleep(Duration::from_secs(5));
            drop(other);
        });
        assert!(timeout(Duration::from_millis(100), Toolchain::provide()).await.is_err());
    }
}
