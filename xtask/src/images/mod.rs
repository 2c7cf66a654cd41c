//! Container images of the programs: one static binary each, on nothing.

pub mod archive;
pub mod binaries;

use anyhow::{Result, bail};

use crate::charts;

/// The program of the end-to-end tests and the demo if nothing can be pulled.
pub const WORKLOAD: &str = "workload";

/// The plugin, which the charts run to check an upgrade.
pub const PLUGIN: &str = "kubectl-catena";

/// The programs that charts run.
pub fn programs() -> Vec<String> {
    let controllers = charts::all().into_iter().map(|chart| chart.name);
    controllers.chain([PLUGIN.to_owned()]).collect()
}

/// Those of them that are chosen by name; all without one.
pub fn chosen(only: &[String]) -> Result<Vec<String>> {
    let all = programs();
    if let Some(unknown) = only.iter().find(|name| !all.contains(name)) {
        bail!("there is no program {unknown:?}; there are {}", all.join(", "));
    }
    Ok(if only.is_empty() { all } else { only.to_vec() })
}

/// The names of an image of this checkout. The workload has two, for changes between two versions.
pub fn references(program: &str) -> Vec<String> {
    let mut references = vec![reference(program)];
    if program == WORKLOAD {
        references.push(format!("catena/{program}:another"));
    }
    references
}

/// The image of a program of this checkout.
pub fn reference(program: &str) -> String {
    format!("catena/{program}:{}", env!("CARGO_PKG_VERSION"))
}
