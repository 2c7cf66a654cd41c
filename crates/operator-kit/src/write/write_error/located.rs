use super::{WriteCause, WriteError};
use crate::render::{Subject, Templates};

impl WriteError {
    /// Adds details to an error, if the server rejects a rendered object: the values of the fields that it names, and
    /// the parameters that they come from, or for an unknown field the template that sets it.
    #[must_use]
    pub fn located(
        mut self,
        templates: &Templates,
        name: &str,
        subject: &Subject<'_>,
        api_version: &str,
        kind: &str,
    ) -> Self {
        let Self { cause, .. } = &mut self;
        let is_unknown = cause.is_unknown_field();
        let WriteCause::Invalid { message, fields } = cause else { return self };
        if !is_unknown {
            for culprit in templates.culprits((message, fields), name, subject, api_version, kind) {
                message.push_str("; ");
                message.push_str(&culprit);
            }
        } else if templates.sets(fields, name, subject, api_version, kind) {
            return self.set_by(&format!("the template {name:?}"));
        }
        self
    }

    /// Adds the source of a field that the server does not know.
    #[must_use]
    pub fn set_by(mut self, template: &str) -> Self {
        let is_unknown = self.cause.is_unknown_field();
        if let WriteCause::Invalid { message, .. } = &mut self.cause
            && is_unknown
        {
            *message = format!("{message}; {template} sets it");
        }
        self
    }
}
