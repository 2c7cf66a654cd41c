//! Each object gets one restart command, until all have succeeded.

use std::time::Instant;

use anyhow::Result;
use catena_api::{BasicDeploymentRestart, command::SUCCEEDED};
use kube::{api::PostParams, runtime::watcher};
use serde_json::json;

use super::super::{
    figure::{Figure, TIME},
    trial::{Trial, each},
};

pub async fn run(trial: &Trial<'_>) -> Result<Vec<Figure>> {
    let commands = trial.others::<BasicDeploymentRestart>();
    let names = trial.names().map(|name| {
        let command = json!({"metadata": {"name": name}, "spec": {"targetRef": {"name": name}}});
        serde_json::from_value(command)
    });
    let new: Vec<BasicDeploymentRestart> = names.collect::<Result<_, _>>()?;
    let started = Instant::now();
    each(new.into_iter(), async |command| commands.create(&PostParams::default(), &command).await.map(drop))
        .await?;
    trial.until(&commands, watcher::Config::default(), trial.setting.objects, has_succeeded).await?;
    Ok(vec![Figure::seconds(TIME, started.elapsed())])
}

fn has_succeeded(command: &BasicDeploymentRestart) -> bool {
    let conditions = command.status.iter().flat_map(|status| &status.conditions);
    conditions.into_iter().any(|condition| condition.type_ == SUCCEEDED && condition.status == "True")
}
