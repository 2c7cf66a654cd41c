use super::{WriteCause, WriteError};
use crate::render::{Subject, Templates};

impl WriteError {
    /// Adds details to an error, if the server rejects a rendered object: the values of the fields that it names, and
    /// the parameters that they come from.
    #[must_use]
    pub fn located(
        mut self,
        templates: &Templates,
        name: &str,
        subject: &Subject<'_>,
        api_version: &str,
        kind: &str,
    ) -> Self {
        if let WriteCause::Invalid { message, fields } = &mut self.cause {
            for culprit in templates.culprits((message, fields), name, subject, api_version, kind) {
                message.push_str("; ");
                message.push_str(&culprit);
            }
        }
        self
    }
}
