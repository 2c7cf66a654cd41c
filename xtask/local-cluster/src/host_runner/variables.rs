//! `$(VAR)` in arguments and values, as Kubernetes expands it.

use std::collections::BTreeMap;

/// Replaces `$(NAME)` by its value; undefined names stay unchanged; `$$` is one dollar.
pub fn expand(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        expanded.push_str(&rest[..dollar]);
        let after = &rest[dollar + 1..];
        if let Some(after) = after.strip_prefix('$') {
            expanded.push('$');
            rest = after;
        } else if let Some((name, after)) = after.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
            match variables.get(name) {
                Some(value) => expanded.push_str(value),
                None => expanded.extend(["$(", name, ")"]),
            }
            rest = after;
        } else {
            expanded.push('$');
            rest = after;
        }
    }
    expanded.push_str(rest);
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases of Kubernetes' own `third_party/forked/golang/expansion`.
    #[test]
    fn expansion_agrees_with_kubernetes() {
        let variables: BTreeMap<String, String> =
            [("VAR_A", "A"), ("VAR_B", "B"), ("VAR_REF", "$(VAR_A)"), ("VAR_EMPTY", "")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into();
        for (input, expected) in [
            ("$(VAR_A)", "A"),
            ("___$(VAR_B)___", "___B___"),
            ("$(VAR_A)-$(VAR_B)", "A-B"),
            ("$(VAR_REF)", "$(VAR_A)"),
            ("foo$(VAR_EMPTY)bar", "foobar"),
            ("$$(VAR_A)", "$(VAR_A)"),
            ("$$$(VAR_A)", "$A"),
            ("$$$$(VAR_A)", "$$(VAR_A)"),
            ("$(MISSING)", "$(MISSING)"),
            ("$VAR_A", "$VAR_A"),
            ("$(VAR_A", "$(VAR_A"),
            ("f000-$$VAR_A", "f000-$VAR_A"),
            ("$", "$"),
            ("a$", "a$"),
            ("\n$(VAR_A)\n", "\nA\n"),
            ("", ""),
        ] {
            assert_eq!(expand(input, &variables), expected, "{input}");
        }
    }
}
