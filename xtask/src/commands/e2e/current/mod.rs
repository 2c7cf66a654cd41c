//! The suite on the cluster of the current kubeconfig context. The cluster may belong to somebody: `--yes` says that it is
//! meant, one with Catena is refused, and everything that the suite creates is removed.

mod context;
mod found;

use std::{path::PathBuf, process::Stdio, time::Duration};

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use local_cluster::{Access, Interrupt};
use tokio::{process::Command, time::sleep};

use super::suite::{Chosen, Suite};
use crate::{
    cargo, charts,
    images::PLUGIN,
    post_mortem::{ended, on_failure},
};
use context::Context;
use found::{Found, OF_A_TEST};

/// The options for the current cluster.
#[derive(clap::Args)]
pub struct OnCurrent {
    /// With --on current: this is the cluster that is meant
    #[arg(long)]
    yes: bool,
    /// With --on current: values of every chart, such as image.repository; `${CHART}` in it is the chart's name
    #[arg(long, value_name = "FILE")]
    values: Option<PathBuf>,
}

impl OnCurrent {
    pub fn are_given(&self) -> bool {
        self.yes || self.values.is_some()
    }
}

/// The current cluster, which may be used.
pub struct Current {
    context: Context,
    /// The content before the suite.
    found: Found,
    /// Kinds of other projects that stay untouched.
    kinds_of_others: Vec<String>,
}

impl Current {
    /// Looks at the cluster, which is only read until then; fails if the suite could harm something, and without `--yes`.
    pub async fn checked(options: &OnCurrent, interrupt: &Interrupt) -> Result<Self> {
        let context = Context::current(options.values.as_deref(), interrupt).await?;
        let (name, server) = (&context.name, &context.server);
        let found = Found::look(&context)?;
        let in_the_way = found.in_the_way(&context)?;
        ensure!(
            in_the_way.is_empty(),
            "the suite would replace or delete what the cluster {name} ({server}) has already: {}; use another cluster, or \
             take it away there first",
            in_the_way.join(", ")
        );
        ensure!(
            options.yes,
            "nothing was done: on the cluster {name} ({server}), the suite would install, upgrade and uninstall Catena's \
             charts and definitions, create namespaces e2e-* with hundreds of pods, and delete all of it in the end, but with --keep; \
             add --yes if this is the cluster that you mean, or change it with `kubectl config use-context`"
        );
        println!("on the cluster {name} ({server})");
        let kinds_of_others = found.kinds_of_others(&context)?;
        Ok(Self { context, found, kinds_of_others })
    }

    /// Builds, installs, tests and cleans up.
    pub async fn run(self, suite: &Suite, chosen: Chosen, interrupt: &Interrupt) -> Result<()> {
        let access = &self.context.cluster.access;
        let result = self.on_cluster(suite, chosen, interrupt).await;
        let result = on_failure(result, &format!("current-{}", std::process::id()), &access.logs, || {
            Some(access.clone())
        });
        if suite.keep {
            eprintln!("everything is left in the cluster of the context {}", self.context.name);
            return result;
        }
        let taken_away = self.found.take_away_the_rest(&self.context).with_context(|| {
            format!(
                "not everything was taken away from the cluster {}: `helm list --namespace {}` and `kubectl get namespaces \
                 {OF_A_TEST}` show what is left",
                self.context.name,
                charts::NAMESPACE
            )
        });
        ended(result, taken_away)
    }

    async fn on_cluster(&self, suite: &Suite, chosen: Chosen, interrupt: &Interrupt) -> Result<()> {
        // The only program that runs from here; all others come from images.
        cargo::build(&[PLUGIN.to_owned()], interrupt).await?;
        let cluster = &self.context.cluster;
        charts::install(cluster, &charts::of_the_suite(), interrupt).await?;
        let image = self.context.kubectl(&[
            "get",
            "deployment/backup-controller",
            "--namespace=catena-system",
            "--output=jsonpath={.spec.template.spec.containers[0].image}",
        ])?;
        let mut variables = vec![("CATENA_JOB_IMAGE", image)];
        if !self.kinds_of_others.is_empty() {
            variables.push(("CATENA_KINDS_OF_OTHERS", self.kinds_of_others.join(", ")));
        }
        let queue = suite.queue(chosen.alone);
        let tests = suite.run_in_turn(&chosen.shared, &queue, cluster, "current", &variables, interrupt);
        let result = tokio::select! {
            result = tests => result,
            never = touch_pods(&cluster.access) => never,
        };
        suite.sum_up(&[&cluster.access], result, interrupt)
    }
}

/// Time between touches; tests wait for new settings for a minute.
const EVERY: Duration = Duration::from_secs(3);

/// Touches the controllers' pods again and again, until it is dropped: a controller reads its settings from a mounted
/// ConfigMap, and a kubelet of somebody's cluster checks it for changes once a minute, and at once when the pod itself
/// changes. Failures are retried, because a test may have uninstalled a controller.
async fn touch_pods(access: &Access) -> ! {
    loop {
        let touched = format!("e2e.catena.dev/touched-at={}", Timestamp::now());
        Command::from(access.kubectl())
            .args(["annotate", "pods", "--all", "--overwrite", "--namespace", charts::NAMESPACE, &touched])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .status()
            .await
            .ok();
        sleep(EVERY).await;
    }
}
