//! The templates in the values of a chart.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use catena_api::{backup::VALUES, keys::GROUP};
use operator_templates::{Templates, Yaml};
use serde_json::{Map, Value};

/// A template of the values.
pub struct Source {
    /// Its field in the values.
    pub field: String,
    /// Its name.
    pub name: String,
    /// It alone.
    pub templates: Templates,
    /// The mistakes in the declarations of its parameters.
    pub mistakes: Vec<String>,
    /// API versions and kinds of the objects that it may render.
    pub kinds: Vec<(String, String)>,
    /// The variables that it can use beside those of all templates.
    pub variables: &'static [&'static str],
}

/// Reads values as helm does: maps are merged, and a null removes a value.
pub fn read(files: &[String]) -> Result<Value> {
    let mut values = Value::Object(Map::new());
    for file in files {
        let text = if file == "-" {
            std::io::read_to_string(std::io::stdin()).context("the standard input cannot be read")?
        } else {
            std::fs::read_to_string(file)
                .with_context(|| format!("{file} cannot be read; give a file with the values of a chart"))?
        };
        add(&mut values, file, &text)?;
    }
    Ok(values)
}

/// Adds the values of a file. One of comments alone changes nothing.
fn add(values: &mut Value, file: &str, text: &str) -> Result<()> {
    let more = Yaml::read(text).with_context(|| format!("{file} is not YAML"))?;
    ensure!(more.is_object() || more.is_null(), "{file} holds no values: it must be a map, as for helm");
    if more.is_object() {
        json_patch::merge(values, &more);
    }
    Ok(())
}

/// The templates of values.
///
/// # Errors
/// When there is none, or one is not a text.
pub fn sources(values: &Value) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for (name, template) in entries(values, "templates")? {
        let mut source = source(format!("templates.{name}"), name, template)?;
        source.kinds = kinds(values);
        if let Some(declared) = values["parameters"].get(name) {
            let declared = serde_json::from_value(declared.clone());
            let declared =
                declared.with_context(|| format!("parameters.{name}: is no list of parameters"))?;
            source.mistakes = source.templates.declare(BTreeMap::from([(name.clone(), declared)]));
        }
        sources.push(source);
    }
    for (name, backup) in entries(values, "backups")? {
        let field = format!("backups.{name}");
        let text = |key: &str| {
            let found = backup[key].as_str().filter(|text| !text.is_empty());
            found.map(str::to_owned).with_context(|| format!("{field}.{key}: is missing; set it"))
        };
        let kinds = vec![(text("apiVersion")?, text("kind")?)];
        let source = source(format!("{field}.template"), name, &backup["template"])?;
        sources.push(Source { kinds, variables: &VALUES, ..source });
    }
    if sources.is_empty() {
        bail!(
            "there is neither a template under templates nor one under backups: give the values of basic-deployment-controller, basic-replicaset-controller or backup-controller"
        );
    }
    Ok(sources)
}

fn entries<'v>(values: &'v Value, key: &str) -> Result<Vec<(&'v String, &'v Value)>> {
    match &values[key] {
        Value::Null => Ok(Vec::new()),
        Value::Object(entries) => Ok(entries.iter().collect()),
        _ => bail!("{key}: must be a map of names"),
    }
}

/// The kinds that the templates under `templates` may render: the children of basic-deployment-controller, or, in values
/// without any, pods of basic-replicaset-controller or the child by default.
fn kinds(values: &Value) -> Vec<(String, String)> {
    let of = |entry: &Value| Some((entry["apiVersion"].as_str()?.into(), entry["kind"].as_str()?.into()));
    let listed = values["children"].as_array().into_iter().flatten();
    let kinds: Vec<_> = listed.filter_map(of).collect();
    if !kinds.is_empty() {
        return kinds;
    }
    let usual = [("v1", "Pod"), ("catena.dev/v1alpha1", "BasicReplicaSet")];
    usual.map(|(version, kind)| (version.into(), kind.into())).into()
}

fn source(field: String, name: &str, template: &Value) -> Result<Source> {
    let text = template.as_str().with_context(|| format!("{field}: must be a text, the template"))?;
    let templates = Templates::compile(&BTreeMap::from([(name.to_owned(), text.to_owned())]), GROUP);
    let (name, mistakes, kinds) = (name.to_owned(), Vec::new(), Vec::new());
    Ok(Source { field, name, templates, mistakes, kinds, variables: &[] })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(values: &Value) -> Vec<(String, Vec<String>)> {
        let kinds = |source: &Source| source.kinds.iter().map(|(_, kind)| kind.clone()).collect();
        sources(values).unwrap().iter().map(|source| (source.field.clone(), kinds(source))).collect()
    }

    #[test]
    fn the_templates_of_each_chart_are_found_with_the_kinds_that_they_may_render() {
        let templates = json!({"templates": {"default": "x"}});
        let expected = ["Pod", "BasicReplicaSet"].map(str::to_owned).to_vec();
        assert_eq!(found(&templates), [("templates.default".to_owned(), expected)]);
        let children = json!({
            "children": [{"apiVersion": "apps/v1", "kind": "Deployment"}, {"apiVersion": "apps/v1", "kind": "StatefulSet"}],
            "templates": {"default": "x"},
        });
        let expected = ["Deployment", "StatefulSet"].map(str::to_owned).to_vec();
        assert_eq!(found(&children), [("templates.default".to_owned(), expected)]);
        let backups =
            json!({"backups": {"dump": {"apiVersion": "batch/v1", "kind": "Job", "template": "x"}}});
        assert_eq!(found(&backups), [("backups.dump.template".to_owned(), vec!["Job".to_owned()])]);
    }

    #[test]
    fn a_template_that_reads_an_undeclared_parameter_is_a_mistake() {
        let values = json!({
            "templates": {"default": "{{ parameters.image }} {{ parameters.port }}", "free": "{{ parameters.x }}"},
            "parameters": {"default": [{"name": "image"}]},
        });
        let mistakes: Vec<_> =
            sources(&values).unwrap().into_iter().flat_map(|source| source.mistakes).collect();
        assert!(
            matches!(&mistakes[..], [only] if only.contains("parameters.default") && only.contains("parameters.port; declare it")),
            "{mistakes:?}"
        );
    }

    #[test]
    fn values_that_cannot_be_read_name_the_field() {
        let error = |values: Value| sources(&values).err().map(|error| error.to_string()).unwrap_or_default();
        for (values, field) in [
            (json!({}), "under templates nor one under backups"),
            (json!({"templates": ["x"]}), "templates: must be a map"),
            (json!({"templates": {"default": 1}}), "templates.default: must be a text"),
            (json!({"backups": {"dump": {"kind": "Job", "template": "x"}}}), "backups.dump.apiVersion"),
            (
                json!({"templates": {"a": "x"}, "parameters": {"a": [{"nam": "x"}]}}),
                "parameters.a: is no list",
            ),
        ] {
            let error = error(values);
            assert!(error.contains(field), "{field} is not in: {error}");
        }
    }

    #[test]
    fn later_values_override_earlier_ones_as_in_helm() {
        let mut values = json!({});
        for text in [
            "{templates: {default: x, old: y}, log: {level: info}}",
            "# nothing",
            "{templates: {default: z, old: null}, log: {format: text}}",
        ] {
            add(&mut values, "values.yaml", text).unwrap();
        }
        assert_eq!(
            values,
            json!({"templates": {"default": "z"}, "log": {"level": "info", "format": "text"}})
        );
    }
}
