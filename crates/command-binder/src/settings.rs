//! The settings.

use command_kinds::Kinds;
use operator_kit::run::Validate;
use serde::Deserialize;

/// The settings.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Settings(Kinds);

impl AsRef<Kinds> for Settings {
    fn as_ref(&self) -> &Kinds {
        &self.0
    }
}

impl Validate for Settings {
    fn validate(&self) -> Result<(), Vec<String>> {
        self.0.validate()
    }

    fn warnings(&self) -> Vec<String> {
        self.0.warnings("bound")
    }
}
