//! Issues a command, and waits until it has finished.

mod wait;

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, Result, anyhow};
use catena_api::contract::FieldPath;
use catena_cluster::{Change, Cluster, How, Identity, Kind};
use catena_terminal::parse_duration;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use kube::core::DynamicObject;
use operator_watch::ObjectId;
use serde_json::{Value, json};

use crate::output::{Format, Output, write};

/// Options for issuing a command.
#[derive(Args, Clone, Debug)]
pub struct Issuing {
    /// Wait until the command has finished; the exit code is 0 if it succeeded, 1 if it failed, 2 after a timeout
    #[arg(long)]
    wait: bool,
    /// The timeout of --wait, for example 90s or 10m
    #[arg(long, default_value = "10m", value_name = "DURATION", value_parser = parse_duration, requires = "wait")]
    timeout: Duration,
    /// Print the command instead of issuing it: as it would be sent (client), or as the server would store it (server)
    #[arg(long, value_enum, value_name = "WHERE", conflicts_with = "wait")]
    dry_run: Option<DryRun>,
    /// The name of the command object [default: derived from the target's name and the time]
    #[arg(long)]
    name: Option<String>,
    /// Delete the command this long after it has finished, for example 1h
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    ttl: Option<Duration>,
    /// Fail the command if it has not succeeded this long after its creation
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    deadline: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DryRun {
    /// Do not send it to the server
    Client,
    /// Let the server check it without storing it
    Server,
}

impl Issuing {
    /// Whether the server gets to know the command.
    pub fn is_sent(&self) -> bool {
        self.dry_run != Some(DryRun::Client)
    }

    /// Issues a command of a kind for a target, with these fields, or shows it. Its name has the verb.
    pub async fn issue(
        &self,
        cluster: &Cluster,
        output: Output,
        kind: &Kind,
        verb: &str,
        target: &str,
        fields: Value,
    ) -> Result<ExitCode> {
        let mut command = self.command(cluster, kind, unique_name(target, verb), fields)?;
        if self.is_sent() {
            let (Identity { name, namespace, .. }, document) = (Identity::of(&command), json!(command));
            let (place, create) = (cluster.at(kind, namespace.as_deref(), &name), Change::Create(&document));
            let created = place.write(create, How { dry_run: self.dry_run.is_some(), ..How::STRICT }).await;
            command = created.map_err(|error| cluster.refused(kind, &name, "create", error))?;
            command.types.get_or_insert_with(|| kind.types());
            command.metadata.managed_fields = None;
        }
        write(&self.text(output, kind, &command)?)?;
        // It does not wait for one that is not issued.
        if self.wait {
            return Ok(Box::pin(wait::until_finished(cluster, kind, &command, self.timeout)).await);
        }
        Ok(ExitCode::SUCCESS)
    }

    fn command(&self, cluster: &Cluster, kind: &Kind, name: String, fields: Value) -> Result<DynamicObject> {
        let mut command = fields;
        let namespace = kind.is_namespaced.then_some(cluster.namespace.as_str());
        let seconds = |duration: Option<Duration>| duration.map(|duration| Value::from(duration.as_secs()));
        let more = [
            (".apiVersion", Some(kind.resource.api_version.as_str().into())),
            (".kind", Some(kind.resource.kind.as_str().into())),
            (".metadata.name", Some(self.name.clone().unwrap_or(name).into())),
            (".metadata.namespace", namespace.map(Value::from)),
            (".spec.ttlSecondsAfterFinished", seconds(self.ttl)),
            (".spec.activeDeadlineSeconds", seconds(self.deadline)),
        ];
        for (path, value) in more {
            if let Some(value) = value {
                set(&mut command, path, value)?;
            }
        }
        serde_json::from_value(command).context("the command cannot be constructed")
    }

    /// A command as it is printed; the whole of one that is not issued, by default as YAML.
    fn text(&self, output: Output, kind: &Kind, object: &DynamicObject) -> Result<String> {
        match output.format {
            None if self.dry_run.is_none() => Ok(format!("{} created\n", Identity::of(object))),
            Some(Format::Name) => Ok(format!("{}/{}\n", kind.full_name(), ObjectId::of(object).name)),
            format => format.unwrap_or(Format::Yaml).render(object),
        }
    }
}

/// Sets a field of a command, creating the objects on the way to it. A path is one below `spec`, unless it begins with a dot.
pub fn set(command: &mut Value, path: &str, value: Value) -> Result<()> {
    let from_top = match path.strip_prefix('.') {
        Some(path) => path.to_owned(),
        None => format!("spec.{}", path.strip_prefix("spec.").unwrap_or(path)),
    };
    let field: FieldPath = from_top.parse().map_err(|_| {
        anyhow!(
            "{path:?} is not a field: write names separated by dots, for example spec.targetRef.name, and quote one with other \
             characters, as in .metadata.annotations['example.org/ticket']"
        )
    })?;
    field.set(command, value);
    Ok(())
}

/// A unique name; the names for one target sort by time.
fn unique_name(target: &str, verb: &str) -> String {
    const MAX_LENGTH: usize = 253;
    let suffix = format!("-{verb}-{:x}", Timestamp::now().as_millisecond());
    let target = target.get(..MAX_LENGTH - suffix.len()).unwrap_or(target).trim_end_matches('.');
    format!("{target}{suffix}")
}

#[cfg(test)]
mod tests {
    use catena_cluster::testing::kinds;

    use super::*;

    #[test]
    fn the_name_of_a_command_is_one_line_also_if_it_is_not_issued() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            issuing: Issuing,
        }
        let (kinds, name) = (kinds(), Output { format: Some(Format::Name) });
        let command: DynamicObject = serde_json::from_value(json!({"metadata": {"name": "again"}})).unwrap();
        for options in [&["run"][..], &["run", "--dry-run", "client"], &["run", "--dry-run", "server"]] {
            let line = <Line as clap::Parser>::parse_from(options);
            let text = line.issuing.text(name, kinds.find("bdr").unwrap(), &command).unwrap();
            assert_eq!(text, "basicdeploymentrestarts.catena.dev/again\n", "{options:?}");
        }
    }

    #[test]
    fn the_name_of_a_command_for_a_target_with_a_long_name_is_one() {
        for length in 225..245 {
            let name = unique_name(&format!("{}.b", "a".repeat(length)), "restart");
            assert!(name.len() <= 253 && !name.contains(".-"), "{name}");
        }
    }
}
