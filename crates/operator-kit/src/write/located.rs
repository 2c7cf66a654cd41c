use crate::{
    render::{Subject, Templates, field_path},
    watch::{ApiError, Cause, Verb},
};

/// Maximum number of fields whose values are added to a message.
const MAX_FIELDS: usize = 3;

impl ApiError {
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
        if self.verb != Verb::Write || !matches!(self.cause, Cause::Invalid | Cause::UnknownField) {
            return self;
        }
        let Ok(rendered) = templates.render_object(name, subject, &[(api_version, kind)]) else {
            return self;
        };
        if self.cause == Cause::UnknownField {
            let is_set = !field_path::named("", &self.fields, &rendered).is_empty();
            return if is_set { self.set_by(&format!("the template {name:?}")) } else { self };
        }
        let places = field_path::named(&self.message, &self.fields, &rendered);
        for (path, value) in places.into_iter().take(MAX_FIELDS) {
            if let Some(value) = field_path::text(value).filter(|_| !self.message.contains(&path)) {
                self.message = format!("{}; {path} is {}", self.message, field_path::shown(&value));
            }
        }
        self
    }

    /// Adds the source of a field that the server does not know.
    #[must_use]
    pub fn set_by(mut self, template: &str) -> Self {
        if (self.verb, self.cause) == (Verb::Write, Cause::UnknownField) {
            self.message = format!("{}; {template} sets it", self.message);
        }
        self
    }
}
