//! The parameters that an author sets and a template does not read.

use super::{Subject, Templates, declared::meant};

impl Templates {
    /// The parameters of a subject that a template without declarations does not read, each with the name that was
    /// probably meant. None if the template cannot be rendered.
    #[must_use]
    pub fn unread(&self, name: &str, subject: &Subject<'_>) -> Vec<String> {
        // Each pass asks: nothing is rendered where nothing can be found.
        if subject.parameters.is_empty() || self.declared.contains_key(name) {
            return Vec::new();
        }
        let Ok(input) = self.input(name, subject) else { return Vec::new() };
        if self.fill(name, &input).is_err() {
            return Vec::new();
        }
        let read = input.parameters.read();
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
        let variables = self.reads(name, true);
        let names = variables.iter().filter_map(|variable| variable.strip_prefix("parameters."));
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort_unstable();
        names
    }
}
