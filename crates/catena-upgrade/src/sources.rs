//! The definitions in files and folders, and on standard input.

use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, ensure};
use operator_templates::Yaml;
use serde_json::Value;

use super::Definition;

/// How the definitions of a chart are checked.
const OF_A_CHART: &str = "pipe the output of `helm template --include-crds CHART`, with the values that enable them, into \
                          `kubectl catena upgrade check -`";

/// All definitions of these sources.
///
/// # Errors
/// When a source cannot be read or holds no definition, a definition is malformed, or two sources define the same kind.
pub fn definitions(files: &[PathBuf]) -> Result<Vec<Definition>> {
    let mut all: Vec<Definition> = Vec::new();
    for file in files {
        let found = if !is_standard_input(file) && file.is_dir() { of_folder(file)? } else { of_file(file)? };
        let source = source(file);
        ensure!(
            !found.is_empty(),
            "{source} holds no CustomResourceDefinition: name files or folders that do, or {OF_A_CHART}"
        );
        for definition in found {
            let is_known = all.iter().any(|known| known.name() == definition.name());
            ensure!(!is_known, "{} is defined twice: name each definition once", definition.name());
            all.push(definition);
        }
    }
    Ok(all)
}

fn is_standard_input(file: &Path) -> bool {
    file == Path::new("-")
}

fn source(file: &Path) -> String {
    if is_standard_input(file) { "standard input".to_owned() } else { file.display().to_string() }
}

fn of_file(file: &Path) -> Result<Vec<Definition>> {
    let source = source(file);
    let text =
        if is_standard_input(file) { io::read_to_string(io::stdin()) } else { fs::read_to_string(file) };
    let text = text.map_err(|error| match error.kind() {
        ErrorKind::InvalidData => {
            anyhow!("{source} is not text: name YAML files; for a chart, {OF_A_CHART}")
        }
        _ => anyhow!("{source} cannot be read: {error}"),
    });
    parse(&text?, &source)
}

/// Like `kubectl apply --filename FOLDER`: the manifests directly in it.
fn of_folder(folder: &Path) -> Result<Vec<Definition>> {
    let files: io::Result<Vec<_>> =
        fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut files = files.with_context(|| format!("{} cannot be read", folder.display()))?;
    let extension =
        |file: &PathBuf| file.extension().map(|extension| extension.to_string_lossy().into_owned());
    files.retain(|file| matches!(extension(file).as_deref(), Some("yaml" | "yml" | "json")));
    files.sort();
    let found: Result<Vec<_>> = files.iter().map(|file| of_file(file)).collect();
    Ok(found?.into_iter().flatten().collect())
}

/// The definitions in a text of YAML documents. Other documents may be anything.
fn parse(text: &str, source: &str) -> Result<Vec<Definition>> {
    ensure!(!text.trim().is_empty(), "{source} is empty");
    let mut found = Vec::new();
    for document in text.split("\n---").filter(|document| document.contains("CustomResourceDefinition")) {
        let mut value = Yaml::read(document).with_context(|| format!("{source} is not YAML"))?;
        let is_list = matches!(value["kind"].as_str(), Some("List" | "CustomResourceDefinitionList"));
        let items = if is_list { value["items"].take() } else { Value::Array(vec![value]) };
        let items = items.as_array().cloned().unwrap_or_default().into_iter();
        for value in items.filter(|item| item["kind"] == "CustomResourceDefinition") {
            let name = value["metadata"]["name"].as_str().unwrap_or("without a name").to_owned();
            let context = || format!("{source}: the definition {name} is not usable");
            found.push(Definition::new(value).with_context(context)?);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::definition::tests::definition;

    #[test]
    fn definitions_are_found_among_other_documents_and_in_lists() {
        let one = definition(&json!({}));
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [one, {"kind": "ConfigMap"}]});
        let text = format!("{{bad: [yaml\n---\n{one}\n--- # next\nkind: ConfigMap\n---\n{list}\n");
        assert_eq!(parse(&text, "here").unwrap().len(), 2);
        assert_eq!(parse(&format!("---\r\n{one}\r\n---\r\n{one}\r\n"), "here").unwrap().len(), 2);
        assert_eq!(parse(&format!("a: b\n--- {one}\n---\n"), "here").unwrap().len(), 1);
        assert!(parse("kind: ConfigMap\n", "here").unwrap().is_empty());
        assert!(parse(" \n", "here").unwrap_err().to_string().contains("is empty"));
    }

    #[test]
    fn a_malformed_definition_is_named_with_its_source() {
        let error =
            parse("kind: CustomResourceDefinition\nmetadata: {name: a.b}\n", "crds/a.yaml").unwrap_err();
        let error = format!("{error:#}");
        assert!(
            error.contains("crds/a.yaml") && error.contains("a.b") && error.contains("apiVersion"),
            "{error}"
        );
    }
}
