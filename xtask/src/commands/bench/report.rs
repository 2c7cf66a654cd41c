//! What is left of a run: tables on standard output, and a file on request.

use std::fs;

use anyhow::{Context, Result};
use serde::Serialize;

use super::{Options, sample::Sample, summary::Group, table};

#[derive(Serialize)]
struct Document<'a> {
    replicas: usize,
    pod_bytes: usize,
    runs: usize,
    cpus: usize,
    summary: &'a [Group],
    samples: &'a [Sample],
}

/// Prints the tables, and writes the file.
pub fn write(samples: &[Sample], options: &Options) -> Result<()> {
    let summary = Group::all(samples);
    println!("{}", table::all(&summary, options.runs.get()));
    if let Some(path) = &options.json {
        let document = Document {
            replicas: options.replicas.get(),
            pod_bytes: options.pod_bytes,
            runs: options.runs.get(),
            cpus: std::thread::available_parallelism()?.get(),
            summary: &summary,
            samples,
        };
        fs::write(path, serde_json::to_string_pretty(&document)?)
            .with_context(|| format!("could not write {}", path.display()))?;
    }
    Ok(())
}
