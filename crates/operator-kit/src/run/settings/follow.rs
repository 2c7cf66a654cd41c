//! Takes changed settings into force, together with the rights that they need.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::anyhow;
use kube::Client;
use operator_templates::sha256;
use serde::de::DeserializeOwned;
use tokio::{
    fs::read_to_string,
    sync::watch,
    time::{Instant, sleep},
};

use super::{Current, LiveSettings, Validate, parse, rights};
use crate::report::settings_status::{Problem, SettingsStatus};

/// Time between checks of the file. A kubelet takes about a minute to deliver a changed `ConfigMap` anyway.
pub(super) const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Delay of the second look for missing rights; it doubles each time.
const FIRST_DELAY: Duration = Duration::from_secs(2);
/// Maximum delay of the next look for missing rights.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// The file beside the settings that lists the rights that they need. Without it, settings are taken as they come.
const RIGHTS: &str = "rights.yaml";

/// A file with settings, as it was read.
#[derive(PartialEq, Eq)]
pub(crate) struct SettingsFile {
    path: PathBuf,
    settings: String,
    /// The rights that the settings need.
    rights: Option<String>,
}

impl SettingsFile {
    /// Reads the file.
    pub async fn read(path: &Path) -> anyhow::Result<Self> {
        let settings = read_to_string(path).await.map_err(|error| {
            anyhow!(
                "cannot read the settings file {}: {error}; check --settings and that its ConfigMap is mounted",
                path.display()
            )
        })?;
        let rights = read_to_string(path.with_file_name(RIGHTS)).await.ok();
        Ok(Self { path: path.to_owned(), settings, rights })
    }

    /// The sha256 of the settings' text. White space around it does not count, so that a chart can compute the same version
    /// from its values.
    pub fn version(&self) -> String {
        sha256(self.settings.trim())
    }

    /// The settings.
    ///
    /// # Errors
    /// When they cannot be used.
    pub fn parse<S: DeserializeOwned + Validate>(&self) -> anyhow::Result<S> {
        parse(&self.path, &self.settings)
    }

    /// The file, if it has changed since.
    async fn changed(&self) -> Option<Self> {
        // While a kubelet swaps the volume, the file may be missing for a moment, and both have to be of one version.
        let now = Self::read(&self.path).await.ok()?;
        let is_whole = now != *self && read_to_string(&self.path).await.ok()? == now.settings;
        is_whole.then_some(now)
    }
}

impl<S: DeserializeOwned + Validate + Send + Sync + 'static> LiveSettings<S> {
    /// The settings of a file, which are updated with it. The rights for the first ones are not checked: there are no
    /// former settings to keep, and watches without rights are reported by themselves.
    pub(crate) fn follow(
        file: SettingsFile,
        settings: S,
        client: Client,
        status: Arc<SettingsStatus>,
    ) -> Self {
        warn(&settings);
        let (sender, receiver) = watch::channel(Current { version: 1, settings: Arc::new(settings) });
        tokio::spawn(follow(file, client, status, sender));
        Self(receiver)
    }
}

/// Settings that are not in force.
struct Newer<S> {
    /// The mistake in them, if they are not valid.
    settings: anyhow::Result<S>,
    /// The time of the next look for missing rights.
    next_look: Instant,
    delay: Duration,
}

async fn follow<S: DeserializeOwned + Validate>(
    mut file: SettingsFile,
    client: Client,
    status: Arc<SettingsStatus>,
    sender: watch::Sender<Current<S>>,
) {
    let mut newer = None::<Newer<S>>;
    while !sender.is_closed() {
        sleep(POLL_INTERVAL).await;
        if let Some(changed) = file.changed().await {
            file = changed;
            newer = Some(Newer { settings: file.parse(), next_look: Instant::now(), delay: FIRST_DELAY });
        }
        let Some(Newer { settings, next_look, delay }) = &mut newer else { continue };
        if let Err(mistake) = settings {
            status.kept_out(&file.version(), Problem::Mistake(mistake.to_string()));
            continue;
        }
        if *next_look > Instant::now() {
            continue;
        }
        if let Some(missing) = missing_rights(&client, &file).await {
            // Helm writes the roles right after the ConfigMap, so that the first look may come in between.
            if *delay > FIRST_DELAY {
                status.kept_out(&file.version(), Problem::Rights(missing));
            }
            *next_look = Instant::now() + *delay;
            *delay = (2 * *delay).min(LONGEST_DELAY);
        } else if let Some(Ok(settings)) = newer.take().map(|newer| newer.settings) {
            warn(&settings);
            status.taken(&file.version());
            let version = sender.borrow().version + 1;
            sender.send_replace(Current { version, settings: Arc::new(settings) });
        }
    }
}

/// The rights that settings need and the controller lacks; the reason, if that is not known.
async fn missing_rights(client: &Client, file: &SettingsFile) -> Option<String> {
    match rights::missing(client, file.rights.as_deref()?).await {
        Ok(missing) => missing.map(|missing| format!(
            "the new settings wait for rights that the controller does not have: {missing}; if an upgrade failed, repeat it \
             or roll it back"
        )),
        Err(error) => Some(format!(
            "the new settings wait until the API server tells whether the controller has the rights for them: {error:#}"
        )),
    }
}

fn warn(settings: &impl Validate) {
    for warning in settings.warnings() {
        tracing::warn!("{warning}");
    }
}
