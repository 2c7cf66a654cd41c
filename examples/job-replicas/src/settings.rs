//! What can be configured.

use operator_kit::run::Validate;
use serde::Deserialize;

/// The settings.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Number of Jobs that may exist in addition during a replacement.
    #[serde(default = "one")]
    pub surge: usize,
}

fn one() -> usize {
    1
}

impl Validate for Settings {
    fn validate(&self) -> Result<(), Vec<String>> {
        if self.surge == 0 {
            return Err(vec!["surge: is 0, so that no Job could ever be replaced; use 1 or more".into()]);
        }
        Ok(())
    }
}
