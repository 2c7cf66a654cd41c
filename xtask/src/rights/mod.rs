//! The rights that the charts grant, compared with the requests of the controllers during the whole suite: no right is granted
//! that nobody uses. A right that is missing fails a test by itself. e2e/rights.yaml lists the exceptions.

mod compare;
mod grants;
mod log;

use std::path::Path;

use anyhow::{Result, bail};
use local_cluster::Step;

use self::{compare::Exceptions, log::Log};
use crate::workspace;

/// Compares the grants and the requests in the audit logs of a whole run, one of each cluster.
pub fn check(audit_logs: &[&Path]) -> Result<()> {
    let step = Step::start("comparing granted rights with used ones");
    let exceptions = Exceptions::read(&workspace::root().join("e2e/rights.yaml"))?;
    let logs: Vec<Log> = audit_logs.iter().map(|path| Log::read(path)).collect::<Result<_>>()?;
    let findings = compare::compare(&logs, &exceptions);
    if findings.is_empty() {
        step.done(log::summary(&logs));
        return Ok(());
    }
    for finding in &findings {
        println!("✗ {finding}");
    }
    bail!(
        "{} rights differ from those in use: change the chart, add the missing test, or list it with its reason in \
         e2e/rights.yaml",
        findings.len()
    )
}
