//! The table of a chart's values, for its README: each value with a comment that begins with `# --`.

use anyhow::{Context, Result};
use serde_json::Value;

/// Maximum length of a default in the table, in characters; longer ones are only in values.yaml.
const LONGEST_DEFAULT: usize = 80;

/// The rows for the text of a values.yaml, as Markdown.
pub fn of(values: &str) -> Result<String> {
    let defaults: Value = serde_saphyr::from_str(values)?;
    let mut rows = vec!["| value | default | |\n|---|---|---|".to_owned()];
    for (path, description) in described(values) {
        let default = defaults
            .pointer(&format!("/{}", path.join("/")))
            .with_context(|| format!("there is no value {}", path.join(".")))?;
        let cells = [format!("`{}`", path.join(".")), shown(default), description];
        rows.push(format!("| {} |", cells.map(|cell| cell.replace('|', "\\|")).join(" | ")));
    }
    Ok(rows.join("\n"))
}

fn shown(default: &Value) -> String {
    let text = default.to_string();
    if text.chars().count() > LONGEST_DEFAULT { "see values.yaml".to_owned() } else { format!("`{text}`") }
}

/// The path and the description of each value that has one. A description ends before an empty or indented comment
/// line.
fn described(values: &str) -> Vec<(Vec<&str>, String)> {
    let mut described = Vec::new();
    let mut path: Vec<(usize, &str)> = Vec::new();
    let mut description: Option<String> = None;
    let mut goes_on = false;
    for line in values.lines() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if let Some(start) = text.strip_prefix("# -- ") {
            (description, goes_on) = (Some(start.to_owned()), true);
        } else if let Some(more) = text.strip_prefix('#') {
            let more = more.strip_prefix(' ').filter(|more| !more.starts_with([' ', '@']));
            goes_on &= more.is_some();
            if let (true, Some(description), Some(more)) = (goes_on, &mut description, more) {
                *description += " ";
                *description += more;
            }
        } else if let Some((key, _)) = text.split_once(':') {
            path.retain(|(outer, _)| *outer < indent);
            path.push((indent, key));
            if let Some(description) = description.take() {
                described.push((path.iter().map(|(_, key)| *key).collect(), description));
            }
        }
    }
    described
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: &str = "# Values of it.

# -- What it works on: a
# list. `|` parts names.
#
# An entry has
#   id   its name
kinds:
  # The fields of an entry.
  # @ignored
  - id: one

log:
  # -- A level.
  level: info
  # -- Whether it is JSON.
  json: true
service:
  # -- Its annotations.
  annotations: {}
";

    #[test]
    fn each_described_value_has_a_row_with_its_default() {
        assert_eq!(
            of(VALUES).unwrap(),
            r#"| value | default | |
|---|---|---|
| `kinds` | `[{"id":"one"}]` | What it works on: a list. `\|` parts names. |
| `log.level` | `"info"` | A level. |
| `log.json` | `true` | Whether it is JSON. |
| `service.annotations` | `{}` | Its annotations. |"#
        );
    }

    #[test]
    fn a_long_default_is_left_to_values_yaml() {
        let values = format!("# -- Text.\ntext: {}\n", "x".repeat(100));
        assert!(of(&values).unwrap().ends_with("| `text` | see values.yaml | Text. |"));
    }
}
