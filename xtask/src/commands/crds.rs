//! `cargo xtask crds`

pub mod compat;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use kube::ResourceExt;
use local_cluster::files;
use serde_json::Value;

use crate::{charts, generated::Generated, workspace};

const HEADER: &str = "# Generated from crates/catena-api by `cargo xtask crds`. Do not edit.\n";

/// Writes crds/*.yaml and the charts' copies from the types; with `check`, only checks that all files are up to date.
pub fn run(check: bool) -> Result<()> {
    let directory = workspace::root().join("crds");
    let definitions = definitions()?;
    let mut wanted: BTreeMap<PathBuf, String> = definitions
        .iter()
        .map(|(name, text)| (directory.join(format!("{name}.yaml")), text.clone()))
        .collect();
    let mut surplus: Vec<PathBuf> =
        yaml_files(&directory)?.into_iter().filter(|path| !wanted.contains_key(path)).collect();
    for chart in charts::all() {
        for (path, name) in copies(&chart.directory.join("files"))? {
            match definitions.get(&name) {
                Some(text) => drop(wanted.insert(path, text.clone())),
                None => surplus.push(path),
            }
        }
    }
    let generated = Generated { source: "the types", command: "cargo xtask crds", wanted, surplus };
    if check { generated.check() } else { generated.write() }
}

/// The definitions as YAML, by name.
fn definitions() -> Result<BTreeMap<String, String>> {
    catena_api::crds()
        .into_iter()
        .map(|crd| {
            let name = crd.name_any();
            let yaml =
                serde_saphyr::to_string(&crd).with_context(|| format!("could not write {name} as YAML"))?;
            Ok((name, format!("{HEADER}{yaml}")))
        })
        .collect()
}

/// The definitions that a chart carries, each with its name: a chart is packaged without its surroundings. They
/// are recognised by their first line.
fn copies(directory: &Path) -> Result<Vec<(PathBuf, String)>> {
    let mut copies = Vec::new();
    for path in yaml_files(directory)? {
        let text = files::read(&path)?;
        if text.starts_with(HEADER) {
            let document: Value = serde_saphyr::from_str(&text)
                .with_context(|| format!("{} is not YAML: copy it from crds/ again", path.display()))?;
            let name = document["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            copies.push((path, name));
        }
    }
    Ok(copies)
}

fn yaml_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let files = if directory.exists() { files::list(directory)? } else { Vec::new() };
    Ok(files.into_iter().filter(|path| path.extension() == Some("yaml".as_ref())).collect())
}
