//! The contract of a kind in the values of the chart.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::kinds::Kind;

/// The contract of a kind in a file of values: that of its entry of `children`.
pub fn contract(path: &Path, kind: &Kind) -> Result<Value> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    of(&text, kind).with_context(|| path.display().to_string())
}

fn of(text: &str, kind: &Kind) -> Result<Value> {
    let values: Value = serde_saphyr::from_str(text).context("it is no YAML")?;
    let mut children = values["children"].as_array().into_iter().flatten();
    let is_it = |child: &&Value| {
        child["apiVersion"] == *kind.resource.api_version && child["kind"] == *kind.resource.kind
    };
    match children.find(is_it) {
        Some(child) => Ok(child["contract"].clone()),
        None => bail!(
            "it has no entry of apiVersion {} and kind {} in children",
            kind.resource.api_version,
            kind.resource.kind
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::kinds;

    #[test]
    fn the_contract_of_the_kind_is_found_among_the_children() {
        let kinds = kinds();
        let kind = kinds.find("deployments").unwrap();
        let values = "children: [{kind: Other}, {apiVersion: apps/v1, kind: Deployment, contract: {active: status.x}}]";
        assert_eq!(of(values, kind).unwrap()["active"], "status.x");
        assert!(of("templates: {}", kind).unwrap_err().to_string().contains("Deployment"));
    }
}
