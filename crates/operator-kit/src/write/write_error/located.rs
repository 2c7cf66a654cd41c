use super::{WriteCause, WriteError};
use crate::render::{Subject, Templates, field_path};

/// Maximum number of fields whose values are added to a message.
const MAX_FIELDS: usize = 3;

impl WriteError {
    /// Adds details to an error, if the server rejects a rendered object: the values of the fields that it names, or for
    /// an unknown field the template that sets it.
    #[must_use]
    pub fn located(
        mut self,
        templates: &Templates,
        name: &str,
        subject: &Subject<'_>,
        api_version: &str,
        kind: &str,
    ) -> Self {
        let is_unknown = self.cause.is_unknown_field();
        let WriteCause::Invalid { message, fields } = &mut self.cause else { return self };
        let Ok(rendered) = templates.render_object(name, subject, &[(api_version, kind)]) else {
            return self;
        };
        if is_unknown {
            let is_set = !field_path::named("", fields, &rendered).is_empty();
            return if is_set { self.set_by(&format!("the template {name:?}")) } else { self };
        }
        for place in field_path::named(message, fields, &rendered).into_iter().take(MAX_FIELDS) {
            let value = rendered.pointer(&place.pointer).and_then(field_path::text);
            if let Some(value) = value.filter(|_| !message.contains(&place.path)) {
                *message = format!("{message}; {} is {}", place.path, field_path::shown(&value));
            }
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
