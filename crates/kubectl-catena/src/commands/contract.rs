//! `kubectl catena contract`

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use catena_api::contract::ReplicaContract;
use catena_cluster::{Kind, Options};
use catena_conformance::{
    Report, Schema, check, check_command, is_command, labels,
    live::{self, Limits, Manifest, Mapping, Subject},
};
use clap::{Args, Subcommand};
use operator_templates::Yaml;
use serde_json::{Value, json};

use super::exit_code;
use crate::output::Output;

/// The action on a contract.
#[derive(Subcommand)]
pub enum Command {
    /// Check whether a kind honours the replica contract, or whether tools can wait for its commands; the exit code is 1
    /// if not
    ///
    /// Without --live, only the fields of the kind are compared with the replica contract.
    #[command(
        after_help = "Examples: kubectl catena contract check deployments.apps --path active=status.readyReplicas --cel 'ready=object.status.updatedReplicas == object.spec.replicas'\n\n\
        kubectl catena contract check deployments.apps --values examples/children/deployment.yaml --live --template web.yaml"
    )]
    Check(Arguments),
}

/// The kind, and its fields.
#[derive(Args)]
pub struct Arguments {
    /// The kind, in any form that kubectl accepts, or the name of its CRD
    kind: String,
    /// The path of a contract field in this kind, if it differs, for example active=status.readyReplicas
    #[arg(long, value_name = "FIELD=PATH")]
    path: Vec<String>,
    /// An output of the contract as a CEL expression over object, for example 'ready=object.status.phase == "Healthy"'
    #[arg(long, value_name = "FIELD=EXPRESSION")]
    cel: Vec<String>,
    /// A file of values of basic-deployment-controller with the contract of this kind, which the two options above change
    #[arg(long, value_name = "FILE")]
    values: Option<PathBuf>,
    /// Create objects in a namespace of their own, try the contract on them, and remove them
    #[arg(long, requires = "template")]
    live: bool,
    /// The manifest of one object of the kind that serves with any number of replicas
    #[arg(long, value_name = "FILE", requires = "live")]
    template: Option<PathBuf>,
    /// The same object with a change so that it never serves, or another object beside it, if the kind does not replace its
    /// replicas by itself [default: the template with images that cannot be pulled]
    #[arg(long, value_name = "FILE", requires = "live")]
    bad_template: Option<PathBuf>,
    #[command(flatten)]
    limits: Limits,
    /// Check it as a kind of commands, as is done for ours, for those in the values of command-binder, and for a CRD with the
    /// label catena.dev/command=true
    #[arg(long, conflicts_with_all = ["path", "cel", "values", "live"])]
    command: bool,
}

/// Checks a kind.
pub async fn run(options: &Options, output: Output, command: &Command) -> Result<ExitCode> {
    let Command::Check(arguments) = command;
    let own = mapping(Value::Null, &arguments.path, &arguments.cel)?;
    let cluster = options.connect().await?;
    let kind = cluster.kinds.find(arguments.kind.rsplit('/').next().unwrap_or_default())?;
    let name = kind.resource.kind.as_str();
    let mut mapping = match &arguments.values {
        Some(values) => mapping(of_file(values, kind, contract_of)?, &arguments.path, &arguments.cel)?,
        None => own,
    };
    let schema = Schema::read(&cluster, kind).await?;
    let labels = labels(&cluster, kind).await;
    if arguments.command || is_command(&cluster, kind, labels.as_ref()).await {
        arguments.ensure_no_replicas(name)?;
        return print(output, &check_command(&kind.resource, &schema));
    }
    ensure!(kind.is_namespaced, "{name} is cluster-wide, but a child is in the namespace of its parent");
    let report = check(&kind.resource, &schema, labels.as_ref(), arguments.is_mapped(), &mapping.contract);
    // Without its fields, a kind needs no trial.
    let is_tried = arguments.live && report.honours;
    let Some(template) = arguments.template.as_ref().filter(|_| is_tried) else {
        return print(output, &report);
    };
    // A path that the schema lacks is no input.
    if report.fields.iter().any(|field| field.name == "restartedAt" && !field.ok) {
        mapping.contract.restarted_at = None;
    }
    let subject = arguments.subject(kind, template, mapping)?;
    print(output, &Box::pin(live::check(cluster, &subject, &arguments.limits)).await?)
}

impl Arguments {
    fn is_mapped(&self) -> bool {
        self.values.is_some() || !(self.path.is_empty() && self.cel.is_empty())
    }

    fn ensure_no_replicas(&self, kind: &str) -> Result<()> {
        ensure!(
            !self.is_mapped() && !self.live,
            "{kind} is a kind of commands, which have no replicas: leave out --path, --cel, --values and --live"
        );
        Ok(())
    }

    /// The child to try.
    fn subject(&self, kind: &Kind, template: &Path, mapping: Mapping) -> Result<Subject> {
        let good = of_file(template, kind, Manifest::read)?;
        let bad = match &self.bad_template {
            Some(path) => of_file(path, kind, Manifest::read)?,
            None => good.with_missing_images().with_context(|| template.display().to_string())?,
        };
        Ok(Subject { kind: kind.clone(), mapping, good, bad })
    }
}

fn print(output: Output, report: &Report) -> Result<ExitCode> {
    output.print(report, || report.text())?;
    Ok(exit_code(report.honours))
}

/// The contract with other paths and expressions, in the form of the chart values.
fn mapping(mapped: Value, paths: &[String], expressions: &[String]) -> Result<Mapping> {
    let mapped = serde_json::from_value::<Option<ReplicaContract>>(mapped).context("its contract")?;
    let mut fields = serde_json::to_value(mapped.unwrap_or_default())?;
    for text in paths {
        let (field, path) = assignment("--path", text)?;
        fields[field] = path.into();
    }
    for text in expressions {
        let (field, expression) = assignment("--cel", text)?;
        fields[field] = json!({"cel": expression});
    }
    // An unknown name is refused with the known ones.
    let contract: ReplicaContract =
        serde_json::from_value(fields).map_err(|error| anyhow!("--path and --cel: {error}"))?;
    if let Some(problem) = contract.problems().next() {
        bail!(problem);
    }
    Mapping::try_from(contract).map_err(|error| anyhow!("{error}"))
}

fn assignment<'t>(option: &str, text: &'t str) -> Result<(&'t str, &'t str)> {
    text.split_once('=').with_context(|| {
        format!("{option} {text:?} has no value: write FIELD=VALUE, for example active=status.readyReplicas")
    })
}

/// What a file has about a kind.
fn of_file<T>(path: &Path, kind: &Kind, of: impl FnOnce(&str, &Kind) -> Result<T>) -> Result<T> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    of(&text, kind).with_context(|| path.display().to_string())
}

/// The contract of a kind in values: that of its entry of `children`.
fn contract_of(text: &str, kind: &Kind) -> Result<Value> {
    let values = Yaml::read(text).context("it is no YAML")?;
    let mut children = values["children"].as_array().into_iter().flatten();
    let (version, kind) = (kind.resource.api_version.as_str(), kind.resource.kind.as_str());
    let child = children.find(|child| child["apiVersion"] == version && child["kind"] == kind);
    let none = || format!("it has no entry of apiVersion {version} and kind {kind} in children");
    Ok(child.with_context(none)?["contract"].clone())
}

#[cfg(test)]
mod tests {
    use catena_cluster::testing::kinds;

    use super::*;

    #[test]
    fn an_unknown_contract_field_is_refused_with_the_known_ones() {
        let paths = |path: &str| mapping(json!({}), &[path.to_owned()], &[]).map(|mapping| mapping.contract);
        let error = paths("phase=status.x").unwrap_err().to_string();
        assert!(error.contains("active") && error.contains("replicas"), "{error}");
        let error = paths("active").unwrap_err().to_string();
        assert!(error.contains("FIELD=VALUE"), "{error}");
        assert_eq!(paths("active=status.x").unwrap().active.to_string(), "status.x");
        assert_eq!(paths("paused=status.x").unwrap().paused.unwrap().to_string(), "status.x");
        assert_eq!(paths("available=status.x").unwrap().available.unwrap().to_string(), "status.x");
        let computed = mapping(json!({}), &[], &["ready=object.a == 'b: c'".to_owned()]).unwrap();
        assert_eq!(computed.contract.ready.unwrap().to_string(), "object.a == 'b: c'");
    }

    #[test]
    fn a_contract_that_the_controller_refuses_is_refused() {
        let refused = |path: &[&str], cel: &[&str]| {
            let [paths, expressions] =
                [path, cel].map(|texts| texts.iter().map(ToString::to_string).collect::<Vec<_>>());
            mapping(Value::Null, &paths, &expressions)
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        let error = refused(&[], &["ready=object.(("]);
        assert!(error.contains("ready"), "{error}");
        for path in ["restartedAt=metadata.annotations.restarted", "replicas=status.replicas"] {
            assert!(refused(&[path], &[]).contains("is not a part of the spec"), "{path}");
        }
        assert_eq!(refused(&["replicas=spec.size"], &["ready=object.status.ready"]), "");
    }

    #[test]
    fn an_option_about_replicas_is_not_passed_over_for_a_kind_of_commands() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            arguments: Arguments,
        }
        let refused = |options: &[&str]| {
            let line = <Line as clap::Parser>::parse_from([&["check", "reindexes"][..], options].concat());
            line.arguments.ensure_no_replicas("Reindex").is_err()
        };
        assert!(!refused(&[]));
        let live = ["--live", "--template", "web.yaml"];
        for options in
            [&live[..], &["--path", "active=status.x"], &["--cel", "ready=true"], &["--values", "v"]]
        {
            assert!(refused(options), "{options:?}");
        }
    }

    #[test]
    fn the_contract_of_the_kind_is_found_among_the_children() {
        let kinds = kinds();
        let kind = kinds.find("deployments").unwrap();
        let values = "children: [{kind: Other}, {apiVersion: apps/v1, kind: Deployment, contract: {active: status.x}}]";
        assert_eq!(contract_of(values, kind).unwrap()["active"], "status.x");
        assert!(contract_of("templates: {}", kind).unwrap_err().to_string().contains("Deployment"));
    }
}
