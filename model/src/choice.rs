//! The models that `--only` chooses.

/// Chooses the models whose name contains a text, or all.
pub struct Choice(pub Option<String>);

impl Choice {
    /// Whether a model is chosen.
    pub fn includes(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|part| name.contains(part.as_str()))
    }

    /// The reason why nothing would be searched, which would pass.
    pub fn problem(&self, names: &[&str]) -> Option<String> {
        let part = self.0.as_ref().filter(|_| !names.iter().any(|name| self.includes(name)))?;
        Some(format!("no model has {part:?} in its name; there are:\n  {}", names.join("\n  ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_of_no_model_names_those_that_there_are() {
        let problem = |part: Option<&str>| Choice(part.map(str::to_owned)).problem(&["one kind", "deletion"]);
        let said = problem(Some("nonsense")).unwrap();
        assert!(
            said.contains("nonsense") && said.contains("one kind") && said.contains("deletion"),
            "{said}"
        );
        assert_eq!(problem(Some("kind")), None);
        assert_eq!(problem(None), None);
    }
}
