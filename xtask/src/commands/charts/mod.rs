//! `cargo xtask charts`: writes the common parts of all charts into each, because a chart is packaged without its
//! surroundings.

mod schema;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use local_cluster::files;
use serde_json::{Value, json};

use crate::{
    charts::{self, Chart},
    generated::{Generated, shown},
    workspace,
};

/// The text in the first line of each fully generated file.
const NOTE: &str = "Generated from charts/_shared by `cargo xtask charts`. Do not edit.";
/// The text in the line between a file's own part and its generated ending.
const ENDING_NOTE: &str = "From here on generated from charts/_shared by `cargo xtask charts`. Do not edit.";

/// The placeholder for the chart's name in an ending.
const CHART_NAME: &str = "CHART_NAME";

/// Writes the generated files of every chart; with `check`, only checks that all of them are up to date.
pub fn run(check: bool) -> Result<()> {
    let generated = generated(&workspace::charts())?;
    if check { generated.check() } else { generated.write() }
}

/// All generated files of the charts in a directory, from its `_shared`.
fn generated(directory: &Path) -> Result<Generated> {
    let mut generated = Generated {
        source: "charts/_shared",
        command: "cargo xtask charts",
        wanted: [].into(),
        surplus: Vec::new(),
    };
    let shared = directory.join("_shared");
    let [files, definitions, endings] =
        ["files", "definitions", "endings"].map(|directory| shared.join(directory));
    let shared_schema = read_json(&shared.join("schema.json"))?;
    for chart in charts::within(directory) {
        let has_definitions = chart.directory.join("files").exists();
        for source in std::iter::once(&files).chain(has_definitions.then_some(&definitions)) {
            for path in below(source)? {
                let place = path.strip_prefix(source)?;
                let text = files::read(&path)?;
                names_begin_with("catena", &text).with_context(|| shown(&path))?;
                generated.wanted.insert(chart.directory.join(place), whole(place, &text));
            }
        }
        for path in below(&endings)? {
            let target = chart.directory.join(path.strip_prefix(&endings)?);
            let ending = files::read(&path)?.replace(CHART_NAME, &chart.name);
            let text = with_ending(&target, &ending)?;
            generated.wanted.insert(target, text);
        }
        let schema = values_schema(&chart, &shared, &shared_schema)?;
        generated.wanted.insert(chart.directory.join("values.schema.json"), schema);
        for path in below(&chart.directory)?.into_iter().filter(|path| !generated.wanted.contains_key(path)) {
            // An icon, for example, is not text.
            let Ok(text) = fs::read_to_string(&path) else { continue };
            if text.lines().next().is_some_and(|line| line.contains(NOTE)) {
                generated.surplus.push(path);
            } else if path.starts_with(chart.directory.join("templates")) {
                names_begin_with(&chart.name, &text).with_context(|| shown(&path))?;
            }
        }
    }
    Ok(generated)
}

/// A file of every chart.
fn whole(place: &Path, text: &str) -> String {
    if place.starts_with("templates") {
        // A comment of the template and not of its output, so that an empty rendering stays empty.
        format!("{{{{- /* {NOTE} */ -}}}}\n{text}")
    } else {
        format!("# {NOTE}\n{text}")
    }
}

/// A chart's own part of a file, unchanged, with the common ending.
fn with_ending(path: &Path, ending: &str) -> Result<String> {
    let is_markdown = path.extension().is_some_and(|extension| extension == "md");
    let mark = if is_markdown { format!("<!-- {ENDING_NOTE} -->") } else { format!("# {ENDING_NOTE}") };
    let present = if path.exists() { files::read(path)? } else { String::new() };
    let own = present.split(&mark).next().unwrap_or_default().trim_end();
    let text = format!("{own}\n\n{mark}\n\n{ending}");
    if !is_markdown {
        // A value in both parts is refused here.
        serde_saphyr::from_str::<Value>(&text).with_context(|| format!("{} is not YAML", shown(path)))?;
    }
    Ok(text.trim_start().to_owned())
}

/// Fails if a named template that `text` defines has a name outside `prefix`. A parent chart merges those of all its subcharts,
/// and the last definition of a name applies to all of them: a name that two charts define differently would give one chart
/// the other's objects.
fn names_begin_with(prefix: &str, text: &str) -> Result<()> {
    let names = text.split("define \"").skip(1).filter_map(|rest| rest.split('"').next());
    for name in names {
        if name.strip_prefix(prefix).is_none_or(|rest| !rest.starts_with('.')) {
            bail!("the named template {name:?} does not begin with \"{prefix}.\": rename it");
        }
    }
    Ok(())
}

/// The schema of a chart: the part of all charts, those of several that its own one includes by their names, and its own.
fn values_schema(chart: &Chart, shared: &Path, of_all: &Value) -> Result<String> {
    let path = chart.directory.join("schema.json");
    let (mut own, mut joined) = (read_json(&path)?, of_all.clone());
    let included = own.as_object_mut().and_then(|own| own.remove("include")).unwrap_or_default();
    for name in included.as_array().into_iter().flatten().filter_map(Value::as_str) {
        let part = shared.join("schemas").join(format!("{name}.json"));
        joined = schema::join(&joined, read_json(&part)?).with_context(|| shown(&part))?;
    }
    joined = schema::join(&joined, own).with_context(|| shown(&path))?;
    joined["$comment"] = json!(NOTE.replace("charts/_shared", "schema.json and charts/_shared/schema.json"));
    joined["title"] = json!(format!("Values of {}", chart.name));
    Ok(serde_json::to_string_pretty(&joined)? + "\n")
}

fn read_json(path: &Path) -> Result<Value> {
    serde_json::from_str(&files::read(path)?).with_context(|| format!("{} is not JSON", shown(path)))
}

/// All files in a directory and the directories within it.
fn below(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for path in files::list(directory)? {
        if path.is_dir() {
            all.extend(below(&path)?);
        } else {
            all.push(path);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
