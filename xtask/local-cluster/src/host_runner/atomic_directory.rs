//! Files that change atomically, like a kubelet's ConfigMap and Secret volumes.
//!
//! The files lie in a dated directory, `..data` is a link to it, and each visible name is a link through `..data`:
//! swapping that one link changes everything, and a watcher sees the same as in a real pod.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::symlink,
    path::{Component, Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::files;

const DATA: &str = "..data";

/// Relative path → content.
pub type Payload = BTreeMap<String, Vec<u8>>;

/// Makes the directory contain exactly the payload. Returns whether anything was written.
pub fn write(directory: &Path, payload: &Payload) -> Result<bool> {
    for path in payload.keys() {
        let plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        ensure!(
            plain && !path.is_empty() && !path.starts_with(".."),
            "{path:?} is not a path inside a volume"
        );
    }
    files::create_directory(directory)?;
    let link = directory.join(DATA);
    let present = fs::read_link(&link).ok();
    if let Some(present) = &present
        && read(&directory.join(present)).is_ok_and(|now| now == *payload)
    {
        return Ok(false);
    }
    swap(directory, payload, present.as_deref())
        .with_context(|| format!("could not write the volume {}", directory.display()))?;
    Ok(true)
}

fn swap(directory: &Path, payload: &Payload, present: Option<&Path>) -> std::io::Result<()> {
    let stamp = jiff::Timestamp::now().as_nanosecond();
    let fresh = PathBuf::from(format!("..{stamp}"));
    fs::create_dir(directory.join(&fresh))?;
    for (path, content) in payload {
        let path = directory.join(&fresh).join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, content)?;
    }
    let unfinished = directory.join("..data_tmp");
    fs::remove_file(&unfinished).ok();
    symlink(&fresh, &unfinished)?;
    fs::rename(&unfinished, directory.join(DATA))?;

    let wanted: BTreeSet<&str> = payload.keys().filter_map(|path| path.split('/').next()).collect();
    for name in &wanted {
        let visible = directory.join(name);
        if fs::symlink_metadata(&visible).is_err() {
            symlink(Path::new(DATA).join(name), visible)?;
        }
    }
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with("..") && !wanted.contains(name.as_ref()) {
            fs::remove_file(directory.join(name.as_ref()))?;
        }
    }
    if let Some(present) = present {
        fs::remove_dir_all(directory.join(present))?;
    }
    Ok(())
}

fn read(directory: &Path) -> std::io::Result<Payload> {
    let mut payload = Payload::new();
    let mut open = vec![PathBuf::new()];
    while let Some(relative) = open.pop() {
        for entry in fs::read_dir(directory.join(&relative))? {
            let entry = entry?;
            let path = relative.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                open.push(path);
            } else {
                payload.insert(path.to_string_lossy().into_owned(), fs::read(entry.path())?);
            }
        }
    }
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(files: &[(&str, &str)]) -> Payload {
        files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
    }

    #[test]
    fn a_change_swaps_one_link_and_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let at = |path: &str| directory.path().join(path);
        assert!(write(directory.path(), &payload(&[("a", "1"), ("sub/b", "2")])).unwrap());
        let first = fs::read_link(at("..data")).unwrap();
        assert_eq!(fs::read_link(at("a")).unwrap(), Path::new("..data/a"));
        assert_eq!(fs::read_to_string(at("sub/b")).unwrap(), "2");

        assert!(!write(directory.path(), &payload(&[("a", "1"), ("sub/b", "2")])).unwrap());
        assert_eq!(fs::read_link(at("..data")).unwrap(), first);

        assert!(write(directory.path(), &payload(&[("a", "3")])).unwrap());
        assert_ne!(fs::read_link(at("..data")).unwrap(), first);
        assert_eq!(fs::read_to_string(at("a")).unwrap(), "3");
        let mut left: Vec<String> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left.len(), 3, "{left:?}");
        assert!(!left.contains(&"sub".to_owned()));
    }

    #[test]
    fn a_path_out_of_the_volume_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        for path in ["../x", "/x", "a/../../x", "", "..x"] {
            assert!(write(directory.path(), &payload(&[(path, "")])).is_err(), "{path}");
        }
    }
}
