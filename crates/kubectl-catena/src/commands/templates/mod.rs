//! `kubectl catena templates`

mod values;

use std::{collections::BTreeMap, process::ExitCode};

use anyhow::{Context, Result, bail};
use catena_cluster::{Cluster, Identity, Kind, Options, is_missing_right};
use catena_terminal::{Cell, Table, Tone};
use clap::{Args, Subcommand};
use operator_kit::write::Writer;
use operator_watch::{ApiError, Cause};
use serde::Serialize;
use serde_json::Value;

use self::values::Source;
use super::exit_code;
use crate::output::Output;

/// The action on templates.
#[derive(Subcommand)]
pub enum Command {
    /// Check whether the API server accepts what the templates in the values of a chart render, without storing anything;
    /// the exit code is 1 if it does not
    #[command(
        after_help = "Example: kubectl catena templates check -f values.yaml --parameters image=nginx:1.29\n\nIt creates each \
        object in a dry run in the namespace of -n, with the rights of the user. A template is rendered with 1 for every \
        parameter that is not given."
    )]
    Check(Arguments),
}

/// The values, and sample parameters.
#[derive(Args)]
pub struct Arguments {
    /// Values of a chart of Catena; - is the standard input. Later files override earlier ones, as in helm
    #[arg(short = 'f', long = "values", value_name = "FILE", required = true, value_hint = clap::ValueHint::FilePath)]
    files: Vec<String>,
    /// A parameter of the templates; can be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    parameters: Vec<String>,
}

/// Runs the action.
pub async fn run(options: &Options, output: Output, command: &Command) -> Result<ExitCode> {
    let Command::Check(arguments) = command;
    let values = values::read(&arguments.files)?;
    let sources = values::sources(&values).with_context(|| arguments.files.join(", "))?;
    let parameters = parameters(&arguments.parameters)?;
    let cluster = options.connect().await?;
    let mut trials = Vec::new();
    for source in &sources {
        trials.push(tried(&cluster, source, &parameters).await);
    }
    output.print(&trials, || text(&trials))?;
    let are_good = trials.iter().all(|trial| trial.outcome == Outcome::Accepted);
    Ok(exit_code(are_good))
}

fn parameters(assignments: &[String]) -> Result<BTreeMap<String, String>> {
    let parameter = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => bail!(
            "--parameters {text:?} has no name or no value: write NAME=VALUE, for example image=nginx:1.29"
        ),
    };
    assignments.iter().map(parameter).collect()
}

fn text(trials: &[Trial]) -> String {
    let mut table = Table::of(["", "TEMPLATE", "KIND", "NOTE"]);
    for Trial { template, kind, outcome, note, .. } in trials {
        let (sign, tone) = match outcome {
            Outcome::Accepted => ("✓", Tone::Good),
            Outcome::Refused => ("✗", Tone::Bad),
            Outcome::Unknown => ("?", Tone::Bad),
        };
        table.push([Cell::toned(tone, sign), template.into(), kind.into(), note.into()]);
    }
    let count = |outcome| trials.iter().filter(|trial| trial.outcome == outcome).count();
    let (refused, unknown) = (count(Outcome::Refused), count(Outcome::Unknown));
    let is_good = refused + unknown == 0;
    let verdict = if is_good {
        "the API server accepts what the templates render".to_owned()
    } else {
        let refused = (refused > 0).then(|| format!("{refused} of {} templates refused", trials.len()));
        let unknown = (unknown > 0).then(|| format!("{unknown} could not be checked"));
        refused.into_iter().chain(unknown).collect::<Vec<_>>().join(", ")
    };
    table.render_under(&verdict, is_good)
}

/// The result for a template.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Trial {
    /// Its field in the values.
    template: String,
    /// The API version that it renders; empty if it renders nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    api_version: String,
    /// The kind that it renders; empty if it renders nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    kind: String,
    /// Whether the API server accepts it.
    outcome: Outcome,
    /// The problem and the remedy, or a limit of the check.
    #[serde(skip_serializing_if = "String::is_empty")]
    note: String,
}

/// Whether the API server accepts what a template renders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Outcome {
    /// It accepts it.
    Accepted,
    /// The template does not render, or the server refuses the object.
    Refused,
    /// The server could not be asked.
    Unknown,
}

/// Tries a template.
async fn tried(cluster: &Cluster, source: &Source, parameters: &BTreeMap<String, String>) -> Trial {
    let (mut api_version, mut kind) = (String::new(), String::new());
    let (outcome, note) = match rendered(source, parameters) {
        Err(problem) => (Outcome::Refused, problem),
        Ok(samples) => {
            let text = |field: &str| {
                samples.first().and_then(|sample| sample[field].as_str()).unwrap_or_default().to_owned()
            };
            (api_version, kind) = (text("apiVersion"), text("kind"));
            accepts(cluster, &api_version, &kind, &samples).await
        }
    };
    Trial { template: source.field.clone(), api_version, kind, outcome, note }
}

/// The sample objects.
///
/// # Errors
/// With the mistakes in the template or the declarations of its parameters.
fn rendered(source: &Source, parameters: &BTreeMap<String, String>) -> Result<Vec<Value>, String> {
    if !source.mistakes.is_empty() {
        return Err(source.mistakes.join("; "));
    }
    let kinds: Vec<_> = source.kinds.iter().map(|(api_version, kind)| (&**api_version, &**kind)).collect();
    let samples = source.templates.samples(&source.name, parameters, source.variables, &kinds);
    samples.map_err(|error| error.to_string())
}

async fn accepts(cluster: &Cluster, api_version: &str, kind: &str, objects: &[Value]) -> (Outcome, String) {
    let wanted = Identity::new(api_version, kind, None, "");
    let served = cluster.kinds.of(&wanted).filter(|served| served.resource.api_version == api_version);
    let Some(Kind { resource, is_namespaced, .. }) = served else {
        let note = format!("the API server does not serve {kind} in {api_version}: install its definition");
        return (Outcome::Unknown, note);
    };
    let namespace = if *is_namespaced { &*cluster.namespace } else { "" };
    let mut result = (Outcome::Accepted, String::new());
    for object in objects {
        result = judge(Writer::dry_run_create(&cluster.client, resource, namespace, object).await);
        if result.0 != Outcome::Accepted {
            break;
        }
    }
    result
}

/// Admission comes after the check of the fields, so that its refusal proves that all fields are known.
fn judge(tried: Result<(), ApiError>) -> (Outcome, String) {
    let Err(error) = tried else { return (Outcome::Accepted, String::new()) };
    let said = error.to_string();
    match error.cause {
        Cause::AlreadyExists => (Outcome::Accepted, String::new()),
        Cause::UnknownField => (Outcome::Refused, said),
        Cause::Invalid => {
            let note =
                format!("{said}; if the value is that of a parameter, give a real one with --parameters");
            (Outcome::Refused, note)
        }
        Cause::Forbidden if !is_missing_right(&error.message) => in_this_namespace(&said),
        Cause::QuotaExceeded | Cause::QuotaRefused => in_this_namespace(&said),
        _ => (Outcome::Unknown, said),
    }
}

fn in_this_namespace(said: &str) -> (Outcome, String) {
    (Outcome::Accepted, format!("the fields are known, but in this namespace {said}"))
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use operator_watch::Verb;

    use super::*;

    #[test]
    fn a_parameter_without_a_name_or_value_is_refused_with_an_example() {
        for text in ["image", "=nginx"] {
            let error = parameters(&[text.to_owned()]).unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("image=nginx:1.29"), "{error}");
        }
        let given = parameters(&["a=b=c".to_owned(), "d=".to_owned()]).unwrap();
        assert_eq!(given, [("a".to_owned(), "b=c".to_owned()), ("d".to_owned(), String::new())].into());
    }

    #[test]
    fn a_template_that_could_not_be_checked_is_no_success() {
        use Outcome::{Accepted, Refused, Unknown};

        let trial = |outcome| Trial {
            template: "templates.default".into(),
            api_version: "v1".into(),
            kind: "Pod".into(),
            outcome,
            note: String::new(),
        };
        let said = |outcomes: &[Outcome]| {
            let trials: Vec<_> = outcomes.iter().copied().map(trial).collect();
            strip_str(&text(&trials)).to_string().lines().next().unwrap_or_default().to_owned()
        };
        assert_eq!(said(&[Accepted]), "the API server accepts what the templates render");
        assert_eq!(said(&[Accepted, Refused, Unknown]), "1 of 3 templates refused, 1 could not be checked");
    }

    fn judged(cause: Cause, message: &str) -> Outcome {
        judge(Err(ApiError::new(Verb::Write, ("Pod", "web"), cause, message))).0
    }

    #[test]
    fn only_a_server_that_has_read_the_fields_has_accepted_them() {
        let unknown = "strict decoding error: unknown field \"spec.readinessProb\"";
        let policy = "pods \"web\" is forbidden: violates PodSecurity \"restricted:latest\"";
        let right = "pods is forbidden: User \"jane\" cannot create resource \"pods\" in API group \"\"";
        assert_eq!(judge(Ok(())).0, Outcome::Accepted);
        assert_eq!(judged(Cause::UnknownField, unknown), Outcome::Refused);
        assert_eq!(judged(Cause::Invalid, "spec.containers: Required value"), Outcome::Refused);
        assert_eq!(judged(Cause::Forbidden, policy), Outcome::Accepted);
        assert_eq!(judged(Cause::QuotaExceeded, "q"), Outcome::Accepted);
        assert_eq!(judged(Cause::Forbidden, right), Outcome::Unknown);
        assert_eq!(judged(Cause::NotFound, ""), Outcome::Unknown);
        assert_eq!(judged(Cause::Silent, ""), Outcome::Unknown);
    }
}
