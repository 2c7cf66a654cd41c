//! `kubectl catena contract check --live`

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use basic_deployment_controller::outputs::Mapping;
use catena_api::contract::ReplicaContract;
use catena_cluster::{Cluster, Kind};
use clap::{Args, ValueEnum};

use crate::{
    contract::{
        Fields, Report,
        live::{Limits, Manifest, Requirement, Requirements, Subject, check},
    },
    issue::duration,
};

/// How the contract is tried on real objects.
#[derive(Args)]
pub struct Trials {
    /// Create objects in a namespace of their own, try the contract on them, and remove them
    #[arg(long, requires = "template")]
    pub live: bool,
    /// The manifest of one object of the kind that serves with any number of replicas
    #[arg(long, value_name = "FILE", requires = "live")]
    template: Option<PathBuf>,
    /// The same object with a change so that it never serves, or another object beside it, if the kind does not replace its
    /// replicas by itself [default: the template with images that cannot be pulled]
    #[arg(long, value_name = "FILE", requires = "live")]
    bad_template: Option<PathBuf>,
    /// The time limit of each requirement, or of one, for example 5m or scaling=10m [default: 2m]
    #[arg(long, value_name = "[REQUIREMENT=]DURATION", value_parser = limit, requires = "live")]
    timeout: Vec<(Option<Requirement>, Duration)>,
    /// The time for which nothing may be written in the steady state, and the bad template may not be ready
    #[arg(long, default_value = "5s", value_name = "DURATION", value_parser = duration, requires = "live")]
    window: Duration,
}

/// The time limit of a requirement without one.
const TIMEOUT: Duration = Duration::from_secs(120);

/// `5m` or `scaling=5m`
fn limit(text: &str) -> Result<(Option<Requirement>, Duration)> {
    match text.split_once('=') {
        None => Ok((None, duration(text)?)),
        Some((name, limit)) => {
            let Ok(requirement) = Requirement::from_str(name, false) else {
                let names: Vec<_> = Requirement::value_variants().iter().map(ToString::to_string).collect();
                bail!("{name:?} is no requirement; there are: {}", names.join(", "));
            };
            Ok((Some(requirement), duration(limit)?))
        }
    }
}

impl Trials {
    /// Tries the contract of a kind, the fields of which have been checked.
    pub async fn check(
        &self,
        cluster: Cluster,
        kind: Kind,
        fields: &Fields,
        mut contract: ReplicaContract,
    ) -> Result<Report<Requirements>> {
        // A path that the schema lacks is no input.
        if fields.fields.iter().any(|field| field.name == "restartedAt" && !field.ok) {
            contract.restarted_at = None;
        }
        let Some(template) = &self.template else { bail!("--live needs --template") };
        let good = read(template, &kind)?;
        let bad = match &self.bad_template {
            Some(path) => read(path, &kind)?,
            None => good.with_missing_images().with_context(|| template.display().to_string())?,
        };
        let mapping = Mapping::try_from(contract).map_err(|error| anyhow::anyhow!("{error}"))?;
        Box::pin(check(cluster, &Subject { kind, mapping, good, bad }, &self.limits())).await
    }

    fn limits(&self) -> Limits {
        let mut all = self.timeout.iter().filter(|(requirement, _)| requirement.is_none());
        let own = self.timeout.iter().filter_map(|(requirement, limit)| Some(((*requirement)?, *limit)));
        Limits {
            each: all.next_back().map_or(TIMEOUT, |(_, limit)| *limit),
            own: own.collect(),
            window: self.window,
        }
    }
}

fn read(path: &Path, kind: &Kind) -> Result<Manifest> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    Manifest::read(&text, kind).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_limit_is_for_all_requirements_or_for_one() {
        assert_eq!(limit("90s").unwrap(), (None, Duration::from_secs(90)));
        assert_eq!(limit("budget=1m").unwrap(), (Some(Requirement::Budget), Duration::from_secs(60)));
        assert!(limit("speed=1m").unwrap_err().to_string().contains("steadyState"));
        assert!(limit("budget=soon").is_err());
    }
}
