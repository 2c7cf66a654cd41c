/// Whether a text is safe in the path of a URL as the name of an object or a namespace. The client does not escape
/// names in URLs: a GET of an empty name is a list, and a GET of `?watch=true` never ends.
#[must_use]
pub fn is_object_name(text: &str) -> bool {
    let may_stand = |character: char| character.is_ascii_alphanumeric() || "-._:@~+=".contains(character);
    !matches!(text, "" | "." | "..") && text.len() <= 253 && text.chars().all(may_stand)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_another_request_is_no_name() {
        for name in ["web", "web-1.shop", "system:node", "a@b", "A_b"] {
            assert!(is_object_name(name), "{name}");
        }
        let too_long = "a".repeat(254);
        for text in [
            "",
            ".",
            "..",
            "?watch=true",
            "a?b",
            "a#b",
            "a/b",
            "../x",
            "%2e%2e",
            "a b",
            "a\nb",
            "ü",
            &too_long,
        ] {
            assert!(!is_object_name(text), "{text:?}");
        }
    }
}
