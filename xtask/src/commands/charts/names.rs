//! The named templates of a chart. A parent chart merges those of all its subcharts, and the last definition of a name
//! applies to all of them: a name that two charts define differently would give one chart the other's objects.

use anyhow::{Result, bail};

/// Fails if a template that `text` defines has a name outside `prefix`.
pub fn begin_with(prefix: &str, text: &str) -> Result<()> {
    let names = text.split("define \"").skip(1).filter_map(|rest| rest.split('"').next());
    for name in names {
        if name.strip_prefix(prefix).is_none_or(|rest| !rest.starts_with('.')) {
            bail!("the named template {name:?} does not begin with \"{prefix}.\": rename it");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_template_begins_with_the_name_of_who_defines_it() {
        let text = "{{- define \"one.labels\" -}}x{{- end }}\n{{ define \"catena.labels\" }}y{{ end }}";
        begin_with("one", "{{ include \"catena.labels\" . }}").unwrap();
        begin_with("one", "{{- define \"one.labels\" -}}").unwrap();
        assert!(begin_with("one", text).unwrap_err().to_string().contains("catena.labels"));
        assert!(begin_with("catena", text).unwrap_err().to_string().contains("one.labels"));
        begin_with("on", "{{- define \"one.labels\" -}}").unwrap_err();
    }
}
