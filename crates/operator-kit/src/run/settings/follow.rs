//! Takes changed settings into force, together with the rights that they need.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use kube::Client;
use serde::de::DeserializeOwned;
use tokio::{
    fs::read_to_string,
    sync::watch,
    time::{Instant, sleep},
};

use super::{Current, LiveSettings, Validate, parse, rights};
use crate::{
    render::sha256,
    report::settings_status::{Problem, SettingsEvents, SettingsStatus},
};

/// Time between checks of the file. A kubelet takes about a minute to deliver a changed `ConfigMap` anyway.
pub(super) const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Delay of the second look for missing rights; it doubles each time.
const FIRST_DELAY: Duration = Duration::from_secs(2);
/// Maximum delay of the next look for missing rights.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// The file beside the settings that lists the rights that they need. Without it, settings are taken as they come.
const RIGHTS: &str = "rights.yaml";

/// The text of settings and of the rights that they need.
#[derive(PartialEq, Eq)]
struct Texts {
    settings: String,
    rights: Option<String>,
}

async fn read(path: &Path) -> io::Result<Texts> {
    let settings = read_to_string(path).await?;
    Ok(Texts { settings, rights: read_to_string(path.with_file_name(RIGHTS)).await.ok() })
}

/// White space around the text does not count, so that a chart can compute the same version from its values.
fn version(settings: &str) -> String {
    sha256(settings.trim())
}

/// A file with valid settings.
pub(crate) struct SettingsFile<S> {
    path: PathBuf,
    texts: Texts,
    /// The sha256 of the settings' text.
    pub version: String,
    settings: S,
}

impl<S: DeserializeOwned + Validate> SettingsFile<S> {
    /// Reads the file. The rights are not checked: there are no former settings to keep, and watches without rights
    /// are reported by themselves.
    ///
    /// # Errors
    /// When the settings cannot be used.
    pub async fn read(path: PathBuf) -> anyhow::Result<Self> {
        let texts = read(&path).await.map_err(|error| {
            let problem = format!(
                "cannot read the settings file {}: {error}; check --settings and that its ConfigMap is mounted",
                path.display()
            );
            anyhow::Error::new(error).context(problem)
        })?;
        let settings = parse::<S>(&path, &texts.settings)?;
        warn(&settings);
        Ok(Self { version: version(&texts.settings), path, texts, settings })
    }
}

impl<S: DeserializeOwned + Validate + Send + Sync + 'static> LiveSettings<S> {
    /// Keeps following the file.
    pub(crate) fn follow(
        file: SettingsFile<S>,
        client: Client,
        status: Arc<SettingsStatus>,
        events: SettingsEvents,
    ) -> Self {
        let SettingsFile { path, texts, settings, .. } = file;
        let (sender, receiver) = watch::channel(Current { version: 1, settings: Arc::new(settings) });
        let follower = Follower { path, texts, candidate: None, client, status, events, sender };
        tokio::spawn(follower.run());
        Self(receiver)
    }
}

/// Settings that are valid, and not in force yet.
struct Candidate<S> {
    settings: S,
    version: String,
    retry: Instant,
    delay: Duration,
}

struct Follower<S> {
    path: PathBuf,
    texts: Texts,
    candidate: Option<Candidate<S>>,
    client: Client,
    status: Arc<SettingsStatus>,
    events: SettingsEvents,
    sender: watch::Sender<Current<S>>,
}

impl<S: DeserializeOwned + Validate + Send + Sync + 'static> Follower<S> {
    async fn run(mut self) {
        while !self.sender.is_closed() {
            sleep(POLL_INTERVAL).await;
            self.look().await;
            self.status.tell_problem(&self.events);
            let is_due = |candidate: &mut Candidate<S>| candidate.retry <= Instant::now();
            let Some(mut candidate) = self.candidate.take_if(is_due) else { continue };
            match self.missing_rights().await {
                None => self.take(candidate),
                Some(missing) => {
                    // Helm writes the roles right after the ConfigMap, so that the first look may come in between.
                    if candidate.delay > FIRST_DELAY {
                        self.status.kept_out(&candidate.version, Problem::Rights(missing));
                    }
                    candidate.retry = Instant::now() + candidate.delay;
                    candidate.delay = (2 * candidate.delay).min(LONGEST_DELAY);
                    self.candidate = Some(candidate);
                }
            }
        }
    }

    /// Reads the file; valid new settings become the candidate.
    async fn look(&mut self) {
        // While a kubelet swaps the volume, the file may be missing for a moment, and both have to be of one version.
        let Ok(texts) = read(&self.path).await else { return };
        if texts == self.texts || read_to_string(&self.path).await.ok().as_ref() != Some(&texts.settings) {
            return;
        }
        self.texts = texts;
        let version = version(&self.texts.settings);
        self.candidate = match parse::<S>(&self.path, &self.texts.settings) {
            Ok(settings) => Some(Candidate { settings, version, retry: Instant::now(), delay: FIRST_DELAY }),
            Err(error) => {
                self.status.kept_out(&version, Problem::Mistake(error.to_string()));
                None
            }
        };
    }

    /// The rights that the newest settings need and the controller lacks; the reason, if that is not known.
    async fn missing_rights(&self) -> Option<String> {
        let rights = self.texts.rights.as_deref()?;
        match rights::missing(&self.client, rights).await {
            Ok(None) => None,
            Ok(Some(missing)) => Some(format!(
                "the new settings wait for rights that the controller does not have: {missing}; if an upgrade failed, \
                 repeat it or roll it back"
            )),
            Err(error) => Some(format!(
                "the new settings wait until the API server tells whether the controller has the rights for them: {error:#}"
            )),
        }
    }

    fn take(&self, candidate: Candidate<S>) {
        let Candidate { settings, version, .. } = candidate;
        warn(&settings);
        let number = self.sender.borrow().version + 1;
        self.status.taken(&version, &self.events);
        self.sender.send_replace(Current { version: number, settings: Arc::new(settings) });
    }
}

fn warn(settings: &impl Validate) {
    for warning in settings.warnings() {
        tracing::warn!("{warning}");
    }
}
