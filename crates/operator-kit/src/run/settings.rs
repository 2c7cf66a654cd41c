//! The settings in force, which follow their file.

mod rights;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::anyhow;
use kube::{Client, discovery::ApiResource};
use operator_templates::{Digest, Templates};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use tokio::{
    fs::read_to_string,
    sync::watch,
    time::{Instant, sleep},
};

use crate::report::{
    failures::{SETTINGS_REFUSED, SETTINGS_WAIT_FOR_RIGHTS},
    settings_status::SettingsStatus,
};

/// The validation of a controller's settings.
pub trait Validate {
    /// # Errors
    /// One line for each mistake, with the field, the problem and the remedy.
    fn validate(&self) -> Result<(), Vec<String>>;

    /// Mistakes that do not keep the controller from running, for the log.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Objects that the templates render with sample values, for a trial on the API server.
    fn samples(&self) -> Vec<TemplateSample> {
        Vec::new()
    }
}

/// No settings: whatever stands in the file is not read.
impl Validate for IgnoredAny {
    fn validate(&self) -> Result<(), Vec<String>> {
        Ok(())
    }
}

/// An object that a template renders with sample values.
#[derive(Clone, Debug)]
pub struct TemplateSample {
    /// The name of the template.
    pub template: String,
    /// The kind of the object.
    pub resource: ApiResource,
    /// The namespace of the template's objects: empty for a cluster-scoped kind, and that of the controller if it
    /// follows from another object.
    pub namespace: Option<String>,
    /// The object.
    pub object: Value,
}

impl TemplateSample {
    /// The samples of one template, which renders objects of these kinds and can use the values in `extra`; none if it
    /// renders none.
    #[must_use]
    pub fn of(templates: &Templates, template: &str, extra: &[&str], kinds: &[ApiResource]) -> Vec<Self> {
        let names: Vec<_> = kinds.iter().map(|kind| (&*kind.api_version, &*kind.kind)).collect();
        let objects = templates.samples(template, &BTreeMap::new(), extra, &names).unwrap_or_default();
        let sample = |object: Value| {
            let is_its = |kind: &&ApiResource| {
                object["apiVersion"] == *kind.api_version && object["kind"] == *kind.kind
            };
            let resource = kinds.iter().find(is_its)?.clone();
            Some(Self { template: template.to_owned(), resource, namespace: None, object })
        };
        objects.into_iter().filter_map(sample).collect()
    }

    /// The samples of all templates.
    #[must_use]
    pub fn of_all(templates: &Templates, kinds: &[ApiResource]) -> Vec<Self> {
        templates.names().flat_map(|template| Self::of(templates, template, &[], kinds)).collect()
    }
}

/// Settings that are updated with their file: a change takes effect without a restart, as soon as the controller has the
/// rights that it needs. After a mistake, the last good settings stay in force.
pub struct SettingsHandle<S>(pub(crate) watch::Receiver<Current<S>>);

pub(crate) struct Current<S> {
    pub version: u64,
    pub settings: Arc<S>,
}

impl<S> Clone for SettingsHandle<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S> SettingsHandle<S> {
    /// The settings in force.
    #[must_use]
    pub fn current(&self) -> Arc<S> {
        self.0.borrow().settings.clone()
    }

    /// A number that rises with each change.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.0.borrow().version
    }

    /// Waits for the next change; forever once the process stops.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Time between checks of the file. A kubelet takes about a minute to deliver a changed `ConfigMap` anyway.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Delay of the second check for missing rights; it doubles each time.
const FIRST_DELAY: Duration = Duration::from_secs(2);
/// Maximum delay of the next check for missing rights.
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
        Digest::sha256(self.settings.trim())
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

impl<S: DeserializeOwned + Validate + Send + Sync + 'static> SettingsHandle<S> {
    /// The settings of a file, which are updated with it; `epoch` rises with each change. The rights for the first ones are not
    /// checked: there are no former settings to keep, and watches without rights are reported by themselves.
    pub(crate) fn follow(
        file: SettingsFile,
        settings: S,
        client: Client,
        status: Arc<SettingsStatus>,
        epoch: watch::Sender<u64>,
    ) -> Self {
        warn(&settings);
        let (sender, receiver) = watch::channel(Current { version: 1, settings: Arc::new(settings) });
        tokio::spawn(follow(file, client, status, sender, epoch));
        Self(receiver)
    }
}

/// Settings that are not in force.
struct Newer<S> {
    /// The mistake in them, if they are not valid.
    settings: anyhow::Result<S>,
    /// The time of the next check for missing rights.
    next_check: Instant,
    delay: Duration,
}

async fn follow<S: DeserializeOwned + Validate>(
    mut file: SettingsFile,
    client: Client,
    status: Arc<SettingsStatus>,
    sender: watch::Sender<Current<S>>,
    epoch: watch::Sender<u64>,
) {
    let mut newer = None::<Newer<S>>;
    while !sender.is_closed() {
        sleep(POLL_INTERVAL).await;
        if let Some(changed) = file.changed().await {
            file = changed;
            newer = Some(Newer { settings: file.parse(), next_check: Instant::now(), delay: FIRST_DELAY });
        }
        let Some(Newer { settings, next_check, delay }) = &mut newer else { continue };
        if let Err(mistake) = settings {
            status.kept_out(&file.version(), SETTINGS_REFUSED, mistake.to_string());
            continue;
        }
        if *next_check > Instant::now() {
            continue;
        }
        if let Some(missing) = missing_rights(&client, &file).await {
            // Helm writes the roles right after the ConfigMap, so that the first check may come in between.
            if *delay > FIRST_DELAY {
                status.kept_out(&file.version(), SETTINGS_WAIT_FOR_RIGHTS, missing);
            }
            *next_check = Instant::now() + *delay;
            *delay = (2 * *delay).min(LONGEST_DELAY);
        } else if let Some(Ok(settings)) = newer.take().map(|newer| newer.settings) {
            warn(&settings);
            status.taken(&file.version());
            let version = sender.borrow().version + 1;
            sender.send_replace(Current { version, settings: Arc::new(settings) });
            epoch.send_modify(|epoch| *epoch += 1);
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

/// The settings of the text in a file.
///
/// # Errors
/// When it cannot be parsed as settings, or they contradict themselves.
pub(crate) fn parse<S: DeserializeOwned + Validate>(path: &Path, text: &str) -> anyhow::Result<S> {
    let path = path.display();
    let settings: S = serde_saphyr::from_str(text)
        .map_err(|error| anyhow!("the settings file {path} cannot be parsed: {error}"))?;
    match settings.validate() {
        Ok(()) => Ok(settings),
        Err(problems) => Err(anyhow!("the settings in {path} are not valid: {}", problems.join("; "))),
    }
}

#[cfg(test)]
mod tests;
