//! The crates that others may use without Catena.

use std::process::Command;

use crate::cargo;

/// They depend only on each other, in this order.
const CRATES: [&str; 4] = ["catena-api", "operator-templates", "operator-watch", "operator-kit"];

/// Maximum number of public items of the framework, which only gets smaller; 50 are enough.
#[cfg(test)]
const SURFACE: usize = 50;

/// Packs the crates as for a registry, which it does not ask: whether their manifests and files are complete.
pub fn packing() -> Command {
    let mut packing = cargo::command();
    packing.args(["package", "--no-verify", "--offline", "--allow-dirty"]);
    packing.args(CRATES.iter().flat_map(|name| ["--package", name]));
    packing
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        fs,
        path::{Path, PathBuf},
    };

    use super::*;
    use crate::workspace;

    /// The sources of those that are for controllers of any kind.
    fn framework() -> impl Iterator<Item = PathBuf> {
        CRATES[1..].iter().map(|name| workspace::root().join("crates").join(name).join("src"))
    }

    /// The files of a folder and its folders, without tests.
    fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let is_product = |path: &PathBuf| path.file_stem().is_none_or(|name| name != "tests");
        entries
            .filter(is_product)
            .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
            .collect()
    }

    /// The product's part of a file.
    fn product(file: &Path) -> String {
        let text = fs::read_to_string(file).unwrap();
        text.split("\n#[cfg(test)]\n").next().unwrap_or_default().to_owned()
    }

    #[test]
    fn the_framework_names_nobody() {
        let mut named = Vec::new();
        let is_code = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "rs");
        for file in framework().flat_map(|folder| files(&folder)).filter(is_code) {
            let text = product(&file);
            let lines = text.lines().filter(|line| line.to_lowercase().contains("catena"));
            named.extend(lines.map(|line| format!("{}: {line}", file.display())));
        }
        assert!(named.is_empty(), "{named:#?}");
    }

    /// The items that are reachable from the root of a crate: no methods and fields, and nothing of other crates.
    fn reachable(root: &Path) -> BTreeSet<String> {
        let (mut items, mut modules) = (BTreeSet::new(), vec![root.join("lib.rs")]);
        while let Some(file) = modules.pop() {
            let text = product(&file).replace("#[cfg(feature = \"testing\")]\npub mod testing;\n", "");
            for (start, _) in text.match_indices("\npub ") {
                let item = &text[start + "\npub ".len()..];
                let name = |text: &str| {
                    text.split(|part: char| !(part.is_alphanumeric() || part == '_'))
                        .next()
                        .map(str::to_owned)
                };
                match item.split_once(' ') {
                    Some(("use", rest)) => items.extend(exported(rest.split(';').next().unwrap_or_default())),
                    Some(("mod", rest)) => modules.extend(name(rest).map(|name| module(&file, &name))),
                    Some(("async", rest)) => items.extend(rest.strip_prefix("fn ").and_then(name)),
                    Some((_, rest)) => items.extend(name(rest)),
                    None => {}
                }
            }
        }
        items
    }

    fn module(parent: &Path, name: &str) -> PathBuf {
        let folder = match parent.file_stem().and_then(|stem| stem.to_str()) {
            Some("lib" | "mod") | None => parent.parent().unwrap().to_owned(),
            Some(stem) => parent.with_file_name(stem),
        };
        let file = folder.join(format!("{name}.rs"));
        if file.exists() { file } else { folder.join(name).join("mod.rs") }
    }

    /// The names that a `use` of this crate's own exports: `{a::X, b::{Y, Z}}`.
    fn exported(tree: &str) -> Vec<String> {
        let (mut prefixes, mut path, mut names) = (Vec::new(), String::new(), Vec::new());
        for part in tree.chars().filter(|part| !part.is_whitespace()) {
            match part {
                '{' => prefixes.push(std::mem::take(&mut path)),
                ',' | '}' => {
                    if !path.is_empty() {
                        names.push(prefixes.concat() + &std::mem::take(&mut path));
                    }
                    if part == '}' {
                        prefixes.pop();
                    }
                }
                part => path.push(part),
            }
        }
        names.extend(Some(path).filter(|path| !path.is_empty()));
        let is_own = |path: &&String| !["kube::", "operator_"].iter().any(|other| path.starts_with(other));
        names.iter().filter(is_own).filter_map(|path| path.rsplit("::").next()).map(str::to_owned).collect()
    }

    #[test]
    fn the_surface_of_the_framework_only_gets_smaller() {
        let items: Vec<_> = framework().map(|root| reachable(&root)).collect();
        let count: usize = items.iter().map(BTreeSet::len).sum();
        assert!(count <= SURFACE, "{count} public items: {items:#?}");
    }

    #[test]
    fn the_names_of_a_use_are_found_at_any_depth() {
        assert_eq!(exported("{a::{X, b::Y}, c::Z, kube::W}"), ["X", "Y", "Z"]);
        assert_eq!(exported("a::X"), ["X"]);
    }
}
