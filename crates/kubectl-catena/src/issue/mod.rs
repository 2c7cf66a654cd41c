//! Issues a command, and waits until it has finished.

mod outcome;
mod wait;

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use http::Method;
use jiff::Timestamp;
use kube::{Resource, core::DynamicObject, discovery::ApiResource};
use operator_kit::object::ObjectId;
use serde_json::{Value, json};

use crate::{
    connection::{Cluster, Options, types},
    kinds::Kind,
    object::Identity,
    output::{Format, write},
    target::Target,
};

/// Options for issuing a command.
#[derive(Args, Clone, Debug)]
pub struct Issuing {
    /// Wait until the command has finished; the exit code is 0 if it succeeded, 1 if it failed, 2 after a timeout
    #[arg(long)]
    wait: bool,
    /// The timeout of --wait, for example 90s or 10m
    #[arg(long, default_value = "10m", value_name = "DURATION", value_parser = duration, requires = "wait")]
    timeout: Duration,
    /// Print the command instead of issuing it: as it would be sent (client), or as the server would store it (server)
    #[arg(long, value_enum, value_name = "WHERE", conflicts_with = "wait")]
    dry_run: Option<DryRun>,
    /// The name of the command object [default: derived from the target's name and the time]
    #[arg(long)]
    name: Option<String>,
    /// Delete the command this long after it has finished, for example 1h
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    ttl: Option<Duration>,
    /// Fail the command if it has not succeeded this long after its creation
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    deadline: Option<Duration>,
    /// The output format of the issued command
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Printed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DryRun {
    /// Do not send it to the server
    Client,
    /// Let the server check it without storing it
    Server,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Printed {
    /// Only resource and name
    Name,
    Json,
    Yaml,
}

/// A command to issue.
pub struct Order<'o> {
    /// Its kind, in any form that kubectl accepts, to be resolved by the server.
    pub kind: &'o str,
    /// The verb of its name, such as `restart`.
    pub verb: &'o str,
    /// The kind of its target, which must exist; empty if it is unknown.
    pub target_kind: &'o str,
    /// The name of its target.
    pub target: &'o str,
    /// Fields of the spec beside the reference.
    pub spec: Value,
}

impl Issuing {
    /// Issues a command, or shows it.
    pub async fn issue(&self, options: &Options, order: &Order<'_>) -> Result<ExitCode> {
        let cluster = options.connect().await?;
        let kind = cluster.kinds.find(order.kind)?.clone();
        let object = self.object(order, &kind, &cluster.namespace)?;
        if self.dry_run == Some(DryRun::Client) {
            self.print(&kind, &object)?;
            return Ok(ExitCode::SUCCESS);
        }
        if !order.target_kind.is_empty() {
            cluster
                .get(&Target { kind: order.target_kind.to_owned(), name: order.target.to_owned() })
                .await?;
        }
        let created = self.create(&cluster, &kind, &object).await?;
        // It does not wait for one that is not issued.
        self.print(&kind, &created)?;
        if self.wait {
            return Ok(Box::pin(wait::until_finished(&cluster, &kind, &created, self.timeout)).await);
        }
        Ok(ExitCode::SUCCESS)
    }

    fn object(&self, order: &Order, kind: &Kind, namespace: &str) -> Result<DynamicObject> {
        let mut spec = order.spec.clone();
        if let Some(ttl) = self.ttl {
            spec["ttlSecondsAfterFinished"] = ttl.as_secs().into();
        }
        if let Some(deadline) = self.deadline {
            spec["activeDeadlineSeconds"] = deadline.as_secs().into();
        }
        let name = self.name.clone().unwrap_or_else(|| unique_name(order.target, order.verb));
        let object = json!({
            "apiVersion": kind.resource.api_version, "kind": kind.resource.kind,
            "metadata": {"name": name, "namespace": namespace}, "spec": spec,
        });
        serde_json::from_value(object).context("the command cannot be constructed")
    }

    async fn create(&self, cluster: &Cluster, kind: &Kind, object: &DynamicObject) -> Result<DynamicObject> {
        let namespace = object.metadata.namespace.as_deref().filter(|_| kind.is_namespaced);
        let url = DynamicObject::url_path(&kind.resource, namespace);
        let dry_run = if self.dry_run.is_some() { "dryRun=All&" } else { "" };
        // As in kubectl, an unknown field is an error and not silently dropped.
        let url = format!("{url}?{dry_run}fieldManager=kubectl-catena&fieldValidation=Strict");
        let name = ObjectId::of(object).name;
        let created = cluster.send::<DynamicObject>(Method::POST, &url, &serde_json::to_value(object)?).await;
        let mut created = created.map_err(|error| cluster.refused(kind, name, "create", error))?;
        created.types.get_or_insert_with(|| types(kind));
        created.metadata.managed_fields = None;
        Ok(created)
    }

    /// Prints a command; the whole of one that is not issued, by default as YAML.
    fn print(&self, kind: &Kind, object: &DynamicObject) -> Result<()> {
        let ApiResource { plural, group, .. } = &kind.resource;
        let text = match self.output {
            Some(Printed::Json) => Format::Json.render(object)?,
            None if self.dry_run.is_none() => format!("{} created\n", Identity::of(object)),
            Some(Printed::Name) if self.dry_run.is_none() => {
                format!("{plural}.{group}/{}\n", ObjectId::of(object).name)
            }
            _ => Format::Yaml.render(object)?,
        };
        write(&text)
    }
}

/// A unique name; the names for one target sort by time.
fn unique_name(target: &str, verb: &str) -> String {
    const MAX_LENGTH: usize = 253;
    let suffix = format!("-{verb}-{}", base36(Timestamp::now().as_millisecond().unsigned_abs()));
    let target = target.get(..MAX_LENGTH - suffix.len()).unwrap_or(target);
    format!("{target}{suffix}")
}

fn base36(mut number: u64) -> String {
    let mut digits = Vec::new();
    while number > 0 {
        let digit = u32::try_from(number % 36).unwrap_or(0);
        digits.extend(char::from_digit(digit, 36));
        number /= 36;
    }
    digits.iter().rev().collect()
}

/// A duration in the format of kubectl: `90s`, `10m`, `1h30m`, or a number of seconds.
pub fn duration(text: &str) -> Result<Duration> {
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    let parsed = text.parse::<jiff::SignedDuration>().ok().and_then(|span| Duration::try_from(span).ok());
    match parsed {
        Some(duration) => Ok(duration),
        None => bail!("{text:?} is not a duration: write it like 90s, 10m or 1h30m"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_in_kubectl() {
        let seconds = |text: &str| duration(text).map(|duration| duration.as_secs()).ok();
        for (text, expected) in [
            ("90s", Some(90)),
            ("10m", Some(600)),
            ("1h30m", Some(5400)),
            ("45", Some(45)),
            ("soon", None),
            ("-5s", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }

    #[test]
    fn a_number_is_short_in_base_36() {
        assert_eq!(
            (base36(35), base36(36), base36(1_800_000_000_000)),
            ("z".into(), "10".into(), "mywpiww0".into())
        );
    }
}
