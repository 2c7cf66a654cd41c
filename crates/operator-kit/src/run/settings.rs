//! The settings in force, which follow their file.

mod follow;
mod rights;

use std::{collections::BTreeMap, path::Path, sync::Arc};

use anyhow::anyhow;
use kube::discovery::ApiResource;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use tokio::sync::watch;

use operator_templates::Templates;

pub(crate) use follow::SettingsFile;

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
    fn samples(&self) -> Vec<Sample> {
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
pub struct Sample {
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

impl Sample {
    /// The samples of one template, which renders objects of these kinds and can use the values in `more`; none if it
    /// renders none.
    #[must_use]
    pub fn of(templates: &Templates, template: &str, more: &[&str], kinds: &[ApiResource]) -> Vec<Self> {
        let names: Vec<_> = kinds.iter().map(|kind| (&*kind.api_version, &*kind.kind)).collect();
        let objects = templates.samples(template, &BTreeMap::new(), more, &names).unwrap_or_default();
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
pub struct LiveSettings<S>(watch::Receiver<Current<S>>);

struct Current<S> {
    version: u64,
    settings: Arc<S>,
}

impl<S> Clone for LiveSettings<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S> LiveSettings<S> {
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
