//! The expressions of a kind, by the names of their fields.

use operator_templates::Expression;

/// A part of the description of a kind.
pub(crate) struct Fields<'v> {
    /// Its name in messages.
    pub name: String,
    /// The variables of its expressions.
    variables: &'v [&'v str],
}

impl Fields<'_> {
    pub fn of_kind(id: &str) -> Self {
        Self { name: format!("kinds[{id}]"), variables: &["object"] }
    }

    /// A part of this one, with these variables.
    pub fn within<'v>(&self, part: &str, variables: &'v [&'v str]) -> Fields<'v> {
        Fields { name: self.of(part), variables }
    }

    /// The name of a field of it.
    fn of(&self, field: &str) -> String {
        format!("{}.{field}", self.name)
    }

    /// A problem with a field of it.
    pub fn problem(&self, field: &str, problem: &str) -> String {
        format!("{}: {problem}", self.of(field))
    }

    /// # Errors
    /// The problem with a field, unless that is right.
    pub fn check(&self, is_right: bool, field: &str, problem: &str) -> Result<(), String> {
        if is_right { Ok(()) } else { Err(self.problem(field, problem)) }
    }

    /// # Errors
    /// The field, and the mistake in its expression.
    pub fn compile(&self, field: &str, text: &str) -> Result<Expression, String> {
        Expression::compile(self.of(field), text, self.variables).map_err(|error| error.to_string())
    }

    /// # Errors
    /// The field, and the mistake in its expression.
    pub fn optional(&self, field: &str, text: Option<&String>) -> Result<Option<Expression>, String> {
        text.map(|text| self.compile(field, text)).transpose()
    }
}
