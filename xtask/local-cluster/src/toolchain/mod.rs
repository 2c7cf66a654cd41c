//! The real programs of a local cluster, pinned in `control-plane/go.mod`.

mod at_hand;
mod build;
mod pins;

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use self::pins::Pins;
pub use self::pins::Tool;

/// The path of each tool.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Toolchain {
    binaries: BTreeMap<String, PathBuf>,
}

impl Toolchain {
    /// Finds each tool in the cache or on this machine, and builds the missing ones.
    pub fn provide() -> Result<Self> {
        Self::of(&Tool::ALL)
    }

    /// Finds or builds the tools for any cluster: kubectl and helm.
    pub fn clients() -> Result<Self> {
        Self::of(&[Tool::Kubectl, Tool::Helm])
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
            let directory = built?;
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
