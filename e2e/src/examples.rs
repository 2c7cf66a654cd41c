use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{checkout, cluster::path_from, objects::loaded_image};

/// The program of an example, which is built with the plugin.
pub fn example_program(name: &str) -> Result<PathBuf> {
    Ok(path_from("CATENA_PLUGIN")?.with_file_name(name))
}

/// The text of a file under examples.
pub fn example(name: &str) -> Result<String> {
    let path = checkout().join("examples").join(name);
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
    Ok(with_loaded_image(&text))
}

/// The values of basic-deployment-controller for a kind of child, by an example under examples/children.
pub fn child_example(name: &str) -> Result<Value> {
    let file = checkout().join("examples/children").join(format!("{name}.yaml"));
    Ok(serde_saphyr::from_str(&std::fs::read_to_string(file)?)?)
}

/// A text with the image that was loaded into the nodes, if they are real and cannot pull.
pub(crate) fn with_loaded_image(text: &str) -> String {
    let Some(image) = loaded_image() else { return text.to_owned() };
    let lines = text.lines().map(|line| match line.split_once("image: ") {
        Some((indent, _)) => format!("{indent}image: {image}\n"),
        None => format!("{line}\n"),
    });
    lines.collect()
}
