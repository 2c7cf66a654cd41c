//! Files that are generated, committed, and checked for drift.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use local_cluster::files;

use crate::workspace;

/// All files that one command generates.
pub struct Generated {
    /// Their source, as a part of a sentence.
    pub source: &'static str,
    /// The command that writes them.
    pub command: &'static str,
    /// The text of each file.
    pub wanted: BTreeMap<PathBuf, String>,
    /// Formerly generated files.
    pub surplus: Vec<PathBuf>,
}

impl Generated {
    /// Fails with the names of all files that are out of date.
    pub fn check(&self) -> Result<()> {
        let wrong: Vec<String> = self.differing().chain(&self.surplus).map(|path| shown(path)).collect();
        if !wrong.is_empty() {
            bail!(
                "{} not as generated from {}: run `{}` and commit the result",
                wrong.join(", "),
                self.source,
                self.command
            );
        }
        println!("{} files are as generated from {}", self.wanted.len(), self.source);
        Ok(())
    }

    /// Writes the files that differ and removes those that are surplus.
    pub fn write(&self) -> Result<()> {
        let mut changed = 0;
        for path in self.differing() {
            if let Some(directory) = path.parent() {
                files::create_directory(directory)?;
            }
            files::write(path, &self.wanted[path])?;
            println!("wrote {}", shown(path));
            changed += 1;
        }
        for path in &self.surplus {
            fs::remove_file(path).with_context(|| format!("could not remove {}", path.display()))?;
            println!("removed {}", shown(path));
            changed += 1;
        }
        if changed == 0 {
            println!("{} files were up to date", self.wanted.len());
        }
        Ok(())
    }

    fn differing(&self) -> impl Iterator<Item = &PathBuf> {
        self.wanted
            .iter()
            .filter(|(path, text)| fs::read_to_string(path).ok().as_ref() != Some(text))
            .map(|(path, _)| path)
    }
}

/// A path for messages, relative to the checkout.
pub fn shown(path: &Path) -> String {
    path.strip_prefix(workspace::root()).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_names_each_file_that_drifted_is_missing_or_is_surplus_and_a_write_mends_them() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in ["same", "drifted", "surplus"] {
            fs::write(path(name), name).unwrap();
        }
        let generated = Generated {
            source: "a test",
            command: "cargo test",
            wanted: [("same", "same"), ("drifted", "as wanted"), ("sub/missing", "new")]
                .map(|(name, text)| (path(name), text.to_owned()))
                .into(),
            surplus: vec![path("surplus")],
        };

        let error = generated.check().unwrap_err().to_string();
        for name in ["drifted", "sub/missing", "surplus"] {
            assert!(error.contains(&path(name).display().to_string()), "{name} is not in: {error}");
        }
        assert!(!error.contains("same"), "{error}");

        generated.write().unwrap();
        assert_eq!(fs::read_to_string(path("drifted")).unwrap(), "as wanted");
        assert_eq!(fs::read_to_string(path("sub/missing")).unwrap(), "new");
        assert!(!path("surplus").exists());
    }
}
