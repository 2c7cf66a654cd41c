//! Paths of fields in schemas.

/// The path of a field of the object at `path`.
pub(super) fn field(path: &str, name: &str) -> String {
    let is_plain =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$'));
    match (is_plain, path.is_empty()) {
        (true, true) => name.to_owned(),
        (true, false) => format!("{path}.{name}"),
        (false, _) => format!("{path}['{name}']"),
    }
}

/// The path of the items of the list at `path`.
pub(super) fn items(path: &str) -> String {
    format!("{path}[]")
}

/// The path of the values of the map at `path`.
pub(super) fn values(path: &str) -> String {
    format!("{path}.*")
}
