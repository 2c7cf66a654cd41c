//! The parameters that an author sets and a template does not read.

use std::sync::Arc;

use super::{More, Parameters, Subject, Templates, declared::meant};

impl Templates {
    /// The parameters of a subject that a template without declarations does not read, each with the name that was
    /// probably meant. None if the template cannot be rendered.
    #[must_use]
    pub fn unread(&self, name: &str, subject: &Subject<'_>) -> Vec<String> {
        // Each pass asks: nothing is rendered where nothing can be found.
        if subject.parameters.is_empty() || self.declared.contains_key(name) {
            return Vec::new();
        }
        let given = Arc::new(Parameters::given(subject.parameters));
        if self.fill(self.input(name, subject, &given, &More::new())).is_err() {
            return Vec::new();
        }
        let read = given.read();
        if subject.parameters.keys().all(|name| read.contains(name)) {
            return Vec::new();
        }
        // A part that was left out mentions more names than were read.
        let mentioned = self.mentioned(name);
        let unread =
            subject.parameters.keys().filter(|name| !read.contains(*name) && !mentioned.contains(name));
        let described = unread.map(|name| match meant(name, mentioned.iter().map(String::as_str)) {
            Some(meant) => format!("spec.parameters.{name} (did you mean {meant}?)"),
            None => format!("spec.parameters.{name}"),
        });
        described.collect()
    }

    /// The names of the parameters that a template mentions, for templates without declarations. It may read more.
    pub(super) fn mentioned(&self, name: &str) -> Vec<String> {
        let Ok(template) = self.environment.get_template(name) else { return Vec::new() };
        let variables = template.undeclared_variables(true);
        let names = variables.iter().filter_map(|variable| variable.strip_prefix("parameters."));
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort_unstable();
        names
    }
}
