//! Many disturbed stories side by side, each in its own namespace with its own controllers.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::{StreamExt, stream};
use tokio::time::Instant;

use super::{
    cast::Stage,
    plan::Plan,
    story::{self, Outcome, Reference},
    table::Table,
};
use crate::Cluster;

/// Number of concurrent stories, which mostly wait.
const MAX_CONCURRENT_STORIES: usize = 8;

/// A cluster whose controllers are those of the stories, until it is ended.
pub struct Campaign {
    cluster: Cluster,
    stage: Stage,
    reference: Reference,
}

impl Campaign {
    /// Takes the cluster over, and runs an undisturbed story to count its requests.
    pub async fn begin() -> Result<Self> {
        let cluster = Cluster::alone().await?;
        let stage = Stage::take_over(&cluster).await?;
        let reference = story::undisturbed(&cluster, &stage).await?;
        for (controller, counts) in &reference.counts {
            println!(
                "{}: {} writes, {} lists, events {:?}",
                controller.name(),
                counts.writes,
                counts.lists,
                counts.events
            );
        }
        Ok(Self { cluster, stage, reference })
    }

    /// The result of an undisturbed story.
    #[must_use]
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    /// Runs a story for each of these sets of plans, and prints the outcomes; none is started after `limit`.
    pub async fn run(&self, stories: impl IntoIterator<Item = Vec<Plan>>, limit: Duration) -> Result<()> {
        let began = Instant::now();
        let mut outcomes = stream::iter(stories)
            .take_while(|_| std::future::ready(began.elapsed() < limit))
            .map(async |plans| {
                let told = story::disturbed(&self.cluster, &self.stage, &plans, &self.reference).await;
                (plans, told)
            })
            .buffer_unordered(MAX_CONCURRENT_STORIES);
        let (mut table, mut runs, mut failed) = (Table::default(), 0, Vec::new());
        while let Some((plans, outcome)) = outcomes.next().await {
            runs += 1;
            let outcome = outcome?;
            table.add(&plans, &outcome);
            let Outcome { lost, duplicated, offences, .. } = outcome;
            let problems: Vec<String> = lost.into_iter().chain(duplicated).chain(offences).collect();
            if !problems.is_empty() {
                let plans = Plan::print(&plans);
                eprintln!("`cargo xtask chaos --plan '{plans}'` replays: {}", problems.join("\n"));
                failed.push(plans);
            }
        }
        println!("{runs} runs in {:?}\n{table}", began.elapsed());
        ensure!(failed.is_empty(), "{} of {runs} runs failed:\n{}", failed.len(), failed.join("\n"));
        Ok(())
    }

    /// Gives the cluster its own controllers back.
    pub async fn end(self) -> Result<()> {
        self.stage.give_back(&self.cluster).await
    }
}
