//! Counts requests in the audit log, by user.

use std::{
    collections::BTreeMap,
    fmt::Write,
    fs::File,
    io::{BufRead, BufReader, Seek, SeekFrom},
};

use anyhow::{Context, Result};
use local_cluster::LocalCluster;
use serde::Deserialize;

/// A position in the audit log.
pub struct Requests {
    offset: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    verb: String,
    user: User,
    object_ref: Option<Object>,
    response_status: Option<Answer>,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Deserialize)]
struct Object {
    #[serde(default)]
    resource: String,
    subresource: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    code: u16,
    #[serde(default)]
    message: String,
}

impl Requests {
    /// The present end of the log.
    pub fn from_now(cluster: &LocalCluster) -> Result<Self> {
        let log = File::open(cluster.audit_log()).context("could not open the audit log")?;
        Ok(Self { offset: log.metadata()?.len() })
    }

    /// The writes of the users since then, as lines to print, without Leases.
    pub fn since(&self, cluster: &LocalCluster, users: &[&str], objects: usize) -> Result<String> {
        let mut log = File::open(cluster.audit_log()).context("could not open the audit log")?;
        log.seek(SeekFrom::Start(self.offset))?;
        let mut writes: BTreeMap<String, usize> = BTreeMap::new();
        let mut refused: BTreeMap<u16, (usize, String)> = BTreeMap::new();
        for line in BufReader::new(log).lines() {
            // The last line may be incomplete.
            let Ok(entry) = serde_json::from_str::<Entry>(&line?) else { continue };
            let object = entry.object_ref.unwrap_or(Object { resource: String::new(), subresource: None });
            let is_write = matches!(entry.verb.as_str(), "create" | "update" | "patch" | "delete");
            if !is_write || object.resource == "leases" || !users.contains(&entry.user.username.as_str()) {
                continue;
            }
            let place = object
                .subresource
                .map_or(object.resource.clone(), |sub| format!("{}/{sub}", object.resource));
            *writes.entry(format!("{} {place}", entry.verb)).or_default() += 1;
            if let Some(answer) = entry.response_status.filter(|answer| !(200..300).contains(&answer.code)) {
                refused.entry(answer.code).or_insert((0, answer.message)).0 += 1;
            }
        }
        Ok(table(&writes, &refused, objects))
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of requests are far below 2^52")]
fn table(
    writes: &BTreeMap<String, usize>,
    refused: &BTreeMap<u16, (usize, String)>,
    objects: usize,
) -> String {
    let total: usize = writes.values().sum();
    let mut text = format!("  {total} writes, {:.2} per object:", total as f64 / objects as f64);
    for (what, count) in writes {
        let _ = write!(text, " {what} {count},");
    }
    let _ = writeln!(text, " refused: {}", refused.values().map(|(count, _)| count).sum::<usize>());
    for (code, (count, message)) in refused {
        let _ = writeln!(text, "  {count} × {code}, the first: {message}");
    }
    text
}
