//! CPU profiles of the API server, by its own pprof, while a scenario runs.

use std::{convert::Infallible, fs, path::PathBuf};

use anyhow::{Context, Result};
use futures::AsyncReadExt;
use http::Request;
use kube::Client;

/// Duration of one profile, in seconds. The last one of a scenario is cut off with it, and lost.
const SECONDS: usize = 1;

/// Saves profiles as files of a folder, which `go tool pprof` adds up.
pub struct Profiler {
    client: Client,
    folder: PathBuf,
}

impl Profiler {
    /// A profiler whose folder is created if it is missing.
    pub fn new(client: Client, folder: PathBuf) -> Result<Self> {
        fs::create_dir_all(&folder).with_context(|| format!("could not create {}", folder.display()))?;
        Ok(Self { client, folder })
    }

    /// Does some work, and saves a profile of each second of it.
    pub async fn beside<T>(&self, name: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            done = work => done,
            failed = self.save_all(name) => match failed.context("could not profile the API server")? {},
        }
    }

    async fn save_all(&self, name: &str) -> Result<Infallible> {
        let mut number = 0;
        loop {
            let profile = self.profile().await?;
            number += 1;
            let path = self.folder.join(format!("{name}-{number:03}.pb.gz"));
            fs::write(&path, profile).with_context(|| format!("could not write {}", path.display()))?;
        }
    }

    async fn profile(&self) -> Result<Vec<u8>> {
        let request = Request::get(format!("/debug/pprof/profile?seconds={SECONDS}")).body(Vec::new())?;
        let mut answer = Box::pin(self.client.request_stream(request).await?);
        let mut profile = Vec::new();
        answer.read_to_end(&mut profile).await?;
        Ok(profile)
    }
}
