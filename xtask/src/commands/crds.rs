//! `cargo xtask crds`

use std::{collections::BTreeMap, fs, path::PathBuf};

use anyhow::{Context, Result, bail};
use kube::ResourceExt;

use crate::workspace;

const HEADER: &str = "# Generated from crates/catena-api by `cargo xtask crds`. Do not edit.\n";

/// Writes crds/*.yaml from the types; with `check`, only says whether they are as they would be written.
pub fn run(check: bool) -> Result<()> {
    let directory = workspace::root().join("crds");
    let wanted = wanted()?;
    let present = present(&directory)?;
    let mut differing: Vec<String> = wanted
        .iter()
        .filter(|(name, text)| present.get(*name) != Some(text))
        .map(|(name, _)| name.clone())
        .collect();
    let surplus: Vec<&String> = present.keys().filter(|name| !wanted.contains_key(*name)).collect();
    if check {
        differing.extend(surplus.into_iter().cloned());
        if !differing.is_empty() {
            bail!(
                "crds/ is not what the types say ({}): the types were changed; run `cargo xtask crds` and commit \
                 the result",
                differing.join(", ")
            );
        }
        println!("crds/ is up to date: {} files", wanted.len());
        return Ok(());
    }
    fs::create_dir_all(&directory).with_context(|| format!("could not create {}", directory.display()))?;
    for name in &differing {
        let path = directory.join(name);
        fs::write(&path, &wanted[name]).with_context(|| format!("could not write {}", path.display()))?;
        println!("wrote crds/{name}");
    }
    for name in surplus {
        let path = directory.join(name);
        fs::remove_file(&path).with_context(|| format!("could not remove {}", path.display()))?;
        println!("removed crds/{name}");
    }
    if differing.is_empty() {
        println!("crds/ was up to date");
    }
    Ok(())
}

fn wanted() -> Result<BTreeMap<String, String>> {
    catena_api::crds()
        .into_iter()
        .map(|crd| {
            let name = crd.name_any();
            let yaml =
                serde_saphyr::to_string(&crd).with_context(|| format!("could not write {name} as YAML"))?;
            Ok((format!("{name}.yaml"), format!("{HEADER}{yaml}")))
        })
        .collect()
}

fn present(directory: &PathBuf) -> Result<BTreeMap<String, String>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error).with_context(|| format!("could not list {}", directory.display())),
    };
    let mut present = BTreeMap::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let text =
                fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
            present.insert(path.file_name().unwrap_or_default().to_string_lossy().into_owned(), text);
        }
    }
    Ok(present)
}
