//! What is left of a run: tables on standard output, and files on request.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use serde::Serialize;

use super::{
    Options, chart,
    sample::Sample,
    summary::{Group, Growth},
    table,
};

#[derive(Serialize)]
struct Document<'a> {
    replicas: usize,
    pod_bytes: usize,
    without_events: bool,
    runs: usize,
    cpus: usize,
    summary: &'a [Group],
    growth: &'a [Growth],
    samples: &'a [Sample],
}

/// Prints the tables, and writes the files.
pub fn write(samples: &[Sample], options: &Options) -> Result<()> {
    let summary = Group::all(samples);
    let growth = Growth::all(&summary);
    println!("{}", table::all(&summary, &growth, options.runs.get()));
    if let Some(path) = &options.json {
        let document = Document {
            replicas: options.replicas.get(),
            pod_bytes: options.pod_bytes,
            without_events: options.without_events,
            runs: options.runs.get(),
            cpus: std::thread::available_parallelism()?.get(),
            summary: &summary,
            growth: &growth,
            samples,
        };
        save(path, &serde_json::to_string_pretty(&document)?)?;
    }
    match &options.svg {
        Some(path) => save(path, &chart::svg(&summary)),
        None => Ok(()),
    }
}

fn save(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("could not write {}", path.display()))
}
