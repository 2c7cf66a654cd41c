//! `kubectl catena templates`

mod trial;
mod values;

use std::{collections::BTreeMap, process::ExitCode};

use anyhow::{Context, Result, bail};
use catena_cluster::{Options, Paint, Tone};
use clap::{Args, Subcommand};

use self::trial::{Outcome, Trial};
use super::exit_code;
use crate::screen::{Cell, Output, Table};

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
    #[arg(short = 'f', long = "values", value_name = "FILE", required = true)]
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
        trials.push(trial::of(&cluster, source, &parameters).await);
    }
    output.print(&trials, |paint| text(&trials, paint))?;
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

fn text(trials: &[Trial], paint: Paint) -> String {
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
    table.render_under(&verdict, is_good, paint)
}

#[cfg(test)]
mod tests {
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
            text(&trials, Paint::OFF).lines().next().unwrap_or_default().to_owned()
        };
        assert_eq!(said(&[Accepted]), "the API server accepts what the templates render");
        assert_eq!(said(&[Accepted, Refused, Unknown]), "1 of 3 templates refused, 1 could not be checked");
    }
}
