//! What the kit makes of texts that somebody else wrote, and the texts that it sends: for tests that give it any.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    render::yaml,
    run::{Validate, parse_settings},
    watch::{Lenient, read_change, read_page},
};

/// Settings, as they are read from their file.
pub fn settings<S: DeserializeOwned + Validate>(text: &str) -> anyhow::Result<S> {
    parse_settings(Path::new("settings.yaml"), text)
}

/// The body of an apply, which the API server reads as YAML.
#[must_use]
pub fn applied(object: &Value) -> String {
    yaml::escape(&object.to_string())
}

/// The objects of a page of a list, each for itself, or why the page is not understood.
pub fn page<K: DeserializeOwned>(text: &str) -> Result<Vec<Result<K, String>>, String> {
    let objects = read_page(text).map_err(|error| error.to_string())?;
    Ok(objects.into_iter().map(|Lenient(object)| object.map_err(|unreadable| unreadable.error)).collect())
}

/// Whether a line of a watch is understood, even if the object in it is not.
#[must_use]
pub fn is_watch_line<K: DeserializeOwned>(text: &str) -> bool {
    read_change::<K>(text)
}
