//! Each object gets another image, until all pods are replaced.

use anyhow::Result;

use super::super::{figure::Figure, pod::NEXT_IMAGE, trial::Trial};

pub async fn run(trial: &Trial<'_>) -> Result<Vec<Figure>> {
    trial.change(&trial.subject.roll(NEXT_IMAGE)).await
}
