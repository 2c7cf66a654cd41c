use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::sync::watch;

use crate::report::metrics::Metrics;

/// Time between checks of the file. A kubelet takes about a minute to deliver a changed `ConfigMap` anyway.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The validation of a controller's settings.
pub trait Validate {
    /// # Errors
    /// One line for each mistake, with the field, the problem and the remedy.
    fn validate(&self) -> Result<(), Vec<String>>;

    /// Mistakes that do not keep the controller from running, for the log.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Unusable settings.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error(
        "cannot read the settings file {path}: {source}; check --settings and that its ConfigMap is mounted"
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file cannot be parsed as settings.
    #[error("the settings file {path} cannot be parsed: {problem}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The problem and its place.
        problem: String,
    },
    /// The settings contradict themselves.
    #[error("the settings in {path} are not valid: {}", problems.join("; "))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// One line for each mistake.
        problems: Vec<String>,
    },
}

/// Settings that are updated with their file: a change takes effect without a restart, and after a mistake the last
/// good settings stay in force.
pub struct Settings<S>(watch::Receiver<Current<S>>);

struct Current<S> {
    version: u64,
    settings: Arc<S>,
}

impl<S> Clone for Settings<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S> Settings<S> {
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

    /// Settings that never change, for tests.
    #[must_use]
    pub fn fixed(settings: S) -> Self {
        Self(watch::channel(Current { version: 1, settings: Arc::new(settings) }).1)
    }
}

impl<S: DeserializeOwned + Validate + Send + Sync + 'static> Settings<S> {
    /// Reads the file, and keeps following it.
    pub(crate) async fn follow(path: PathBuf, metrics: Arc<Metrics>) -> Result<Self, SettingsError> {
        let mut text = read(&path).await?;
        let settings = parse::<S>(&path, &text)?;
        warn(&settings);
        let (sender, receiver) = watch::channel(Current { version: 1, settings: Arc::new(settings) });
        tokio::spawn(async move {
            let mut version = 1;
            while !sender.is_closed() {
                tokio::time::sleep(POLL_INTERVAL).await;
                // While a kubelet swaps the volume, the file may be missing for a moment.
                let Ok(new) = read(&path).await else { continue };
                if new == text {
                    continue;
                }
                text = new;
                match parse::<S>(&path, &text) {
                    Ok(settings) => {
                        version += 1;
                        warn(&settings);
                        tracing::info!(version, "the settings changed");
                        sender.send_replace(Current { version, settings: Arc::new(settings) });
                    }
                    Err(error) => {
                        metrics.settings_refused();
                        tracing::error!(
                            "{error}; the previous settings stay in force until this process ends, and no other one starts with these"
                        );
                    }
                }
            }
        });
        Ok(Self(receiver))
    }
}

async fn read(path: &Path) -> Result<String, SettingsError> {
    tokio::fs::read_to_string(path)
        .await
        .map_err(|source| SettingsError::Unreadable { path: path.to_owned(), source })
}

pub(crate) fn parse<S: DeserializeOwned + Validate>(path: &Path, text: &str) -> Result<S, SettingsError> {
    let settings: S = serde_saphyr::from_str(text)
        .map_err(|error| SettingsError::Malformed { path: path.to_owned(), problem: error.to_string() })?;
    settings.validate().map_err(|problems| SettingsError::Invalid { path: path.to_owned(), problems })?;
    Ok(settings)
}

fn warn(settings: &impl Validate) {
    for warning in settings.warnings() {
        tracing::warn!("{warning}");
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Number {
        number: i32,
    }

    impl Validate for Number {
        fn validate(&self) -> Result<(), Vec<String>> {
            if self.number >= 0 { Ok(()) } else { Err(vec!["number: must not be negative".into()]) }
        }
    }

    async fn follow(path: &Path) -> Result<Settings<Number>, SettingsError> {
        Settings::follow(path.to_owned(), Arc::default()).await
    }

    #[tokio::test]
    async fn a_mistake_at_start_names_the_field() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("settings.yaml");
        let cases =
            [("number: -1", "number: must not be negative"), ("number: x", "number"), ("numbr: 1", "numbr")];
        for (text, expected) in cases {
            std::fs::write(&path, text).unwrap();
            let Err(error) = follow(&path).await else { panic!("{text} was taken") };
            assert!(error.to_string().contains(expected), "{error}");
        }
        std::fs::remove_file(&path).unwrap();
        let Err(error) = follow(&path).await else { panic!("a missing file was taken") };
        assert!(error.to_string().contains("--settings"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_takes_effect_and_a_mistake_does_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("settings.yaml");
        std::fs::write(&path, "number: 1").unwrap();
        let mut settings = follow(&path).await.unwrap();
        std::fs::write(&path, "number: 2").unwrap();
        settings.changed().await;
        assert_eq!((settings.current().number, settings.version()), (2, 2));
        std::fs::write(&path, "number: -2").unwrap();
        assert!(tokio::time::timeout(POLL_INTERVAL * 5, settings.changed()).await.is_err());
        assert_eq!(settings.current().number, 2);
        std::fs::write(&path, "number: 3").unwrap();
        settings.changed().await;
        assert_eq!(settings.current().number, 3);
    }
}
