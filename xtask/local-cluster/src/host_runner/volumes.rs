//! The volumes of one pod, as directories that are updated with their sources.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::Result;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStateWaiting as Waiting, PodSpec, Volume};
use kube::ResourceExt;

use super::{
    atomic_directory,
    config_maps::ConfigMaps,
    mounts::Mounts,
    pod::Sandbox,
    status::waiting,
    token::{self, Token},
    volume_payload::{Known, payload},
};
use crate::journal::note;

/// Time between checks of tokens and retries of failed writes.
const TICK: Duration = Duration::from_secs(10);

/// The volumes, kept current as long as [`Volumes::keep_current`] runs.
pub struct Volumes<'a> {
    sandbox: &'a Sandbox,
    declared: Vec<Volume>,
    config_maps: ConfigMaps,
    /// By volume and position in its projections.
    tokens: Mutex<BTreeMap<(String, usize), Token>>,
}

impl<'a> Volumes<'a> {
    /// Starts watching the sources of the volumes; nothing is written yet.
    pub fn new(sandbox: &'a Sandbox, spec: &PodSpec) -> Self {
        let namespace = sandbox.pod().namespace().unwrap_or_default();
        Self {
            sandbox,
            declared: spec.volumes.clone().unwrap_or_default(),
            config_maps: ConfigMaps::watch(&sandbox.runner.client, &namespace, spec),
            tokens: Mutex::default(),
        }
    }

    /// Writes every volume; an error is the reason why a container has to wait.
    pub async fn write_all(&self) -> Result<(), Waiting> {
        for volume in &self.declared {
            self.write(volume).await?;
        }
        Ok(())
    }

    /// Waits until writing again may help.
    pub async fn changed(&self) {
        tokio::time::timeout(Duration::from_secs(1), self.config_maps.changed()).await.ok();
    }

    /// Follows each ConfigMap, and the tokens' expiry.
    pub async fn keep_current(&self) {
        loop {
            tokio::select! {
                () = self.config_maps.changed() => {}
                () = tokio::time::sleep(TICK) => {}
            }
            for volume in &self.declared {
                // As with a kubelet, the files stay while their source is gone.
                if let Err(problem) = self.write(volume).await
                    && problem.reason.as_deref() != Some("CreateContainerConfigError")
                {
                    let message = problem.message.unwrap_or_default();
                    note(&format!("volume {} of {}: {message}", volume.name, self.sandbox.title()));
                }
            }
        }
    }

    async fn write(&self, volume: &Volume) -> Result<(), Waiting> {
        self.refresh_tokens(volume).await.map_err(|error| volume_error(volume, &error))?;
        let pod = self.sandbox.pod();
        let known = Known {
            pod: &pod,
            address: self.sandbox.address,
            config_map: &|name| self.config_maps.get(name),
            token: &|index| {
                let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
                tokens.get(&(volume.name.clone(), index)).map(|token| token.text.clone())
            },
        };
        atomic_directory::write(&directory(&self.sandbox.directory, volume), &payload(volume, &known)?)
            .map(drop)
            .map_err(|error| volume_error(volume, &error))
    }

    async fn refresh_tokens(&self, volume: &Volume) -> Result<()> {
        let projections = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
        for (index, projection) in projections.enumerate() {
            let Some(wanted) = &projection.service_account_token else { continue };
            let place = (volume.name.clone(), index);
            let fresh = {
                let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
                tokens.get(&place).is_some_and(|token| token.renew_at > Timestamp::now())
            };
            if !fresh {
                let token = token::request(&self.sandbox.runner.client, &self.sandbox.pod(), wanted).await?;
                self.tokens.lock().unwrap_or_else(PoisonError::into_inner).insert(place, token);
            }
        }
        Ok(())
    }
}

/// The local paths of the mounts of a container.
pub fn mounts(pod_directory: &Path, spec: &PodSpec, container: &Container) -> Mounts {
    let volumes = spec.volumes.as_deref().unwrap_or_default();
    Mounts::new(container.volume_mounts.iter().flatten().filter_map(|mount| {
        let volume = volumes.iter().find(|volume| volume.name == mount.name)?;
        Some((mount.mount_path.clone(), directory(pod_directory, volume)))
    }))
}

fn directory(pod_directory: &Path, volume: &Volume) -> PathBuf {
    pod_directory.join("volumes").join(&volume.name)
}

fn volume_error(volume: &Volume, error: &anyhow::Error) -> Waiting {
    waiting("ContainerCreating", format!("the volume {:?} could not be written: {error:#}", volume.name))
}
