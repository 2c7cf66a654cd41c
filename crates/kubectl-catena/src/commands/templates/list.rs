//! `kubectl catena templates list`

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use clap::Args;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, api::ListParams};
use operator_kit::render::{Declarations, Templates};
use serde::{Deserialize, Serialize};

use crate::{
    connection::Options,
    errors::read_failure,
    output::Output,
    pages,
    paint::{Paint, Tone},
    table::{Cell, Table},
};

/// The controllers with templates for `spec.template`, and the kind of the objects that name them.
const CONTROLLERS: [(&str, &str); 2] =
    [("basic-deployment-controller", "BasicDeployment"), ("basic-replicaset-controller", "BasicReplicaSet")];

/// The format of the list.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    output: Output,
}

/// The part of a controller's settings that the list shows.
#[derive(Deserialize)]
struct Settings {
    templates: BTreeMap<String, String>,
    #[serde(default)]
    parameters: Declarations,
}

#[derive(Debug, Serialize)]
struct Shown {
    items: Vec<Template>,
}

/// A template.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Template {
    /// The kind whose `spec.template` names it.
    of: &'static str,
    name: String,
    /// Whether it declares its parameters. One that does not may read more than it mentions.
    declares: bool,
    parameters: Vec<Parameter>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Parameter {
    name: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    required: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pattern: Option<String>,
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty")]
    one_of: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
}

/// Lists the templates.
pub async fn run(options: &Options, arguments: &Arguments) -> Result<()> {
    let cluster = options.connect().await?;
    let mut items = Vec::new();
    for (controller, kind) in CONTROLLERS {
        let labels = format!("app.kubernetes.io/part-of=catena,app.kubernetes.io/component={controller}");
        let found = Api::<ConfigMap>::all(cluster.client.clone());
        let found = pages::all(&found, ListParams::default().labels(&labels)).await.map_err(|error| {
            anyhow!("the settings of {controller} cannot be read: {}", read_failure(&error))
        })?;
        for text in found.into_iter().filter_map(|map| map.data?.remove("settings.yaml")) {
            items.extend(templates_in(&text, kind)?);
        }
    }
    let shown = Shown { items };
    arguments.output.print(&shown, || text(&shown, Paint::for_stdout()))
}

fn templates_in(settings: &str, of: &'static str) -> Result<Vec<Template>> {
    let Settings { templates, mut parameters } = serde_saphyr::from_str(settings)
        .map_err(|error| anyhow!("the settings of the controller of {of} cannot be parsed: {error}"))?;
    let compiled = Templates::compile(&templates);
    let template = |name: String| {
        let declaration = parameters.remove(&name);
        let is_declared = declaration.is_some();
        let stated = declaration.into_iter().flatten().map(|parameter| Parameter {
            name: parameter.name,
            required: parameter.required,
            default: parameter.default,
            pattern: parameter.pattern,
            one_of: parameter.one_of,
            description: parameter.description,
        });
        let mentioned = compiled.mentioned(&name).into_iter().filter(|_| !is_declared);
        let mentioned = mentioned.map(|name| Parameter { name, ..Parameter::default() });
        Template { of, name, declares: is_declared, parameters: stated.chain(mentioned).collect() }
    };
    Ok(templates.into_keys().map(template).collect())
}

fn text(shown: &Shown, paint: Paint) -> String {
    let mut table = Table::of(["OF", "TEMPLATE", "PARAMETER", "DEFAULT", "ALLOWED", "DESCRIPTION"]);
    for Template { of, name, declares, parameters } in &shown.items {
        let place = || [(*of).into(), name.as_str().into()];
        if parameters.is_empty() {
            let [of, name] = place();
            let note = if *declares { "it has no parameters" } else { "it mentions no single parameter" };
            table.push([of, name, "".into(), "".into(), "".into(), Cell::toned(Tone::Quiet, note)]);
        }
        for parameter in parameters {
            let [of, name] = place();
            let default = if parameter.required {
                "(required)"
            } else {
                parameter.default.as_deref().unwrap_or_default()
            };
            let allowed = match &parameter.pattern {
                Some(pattern) => pattern.clone(),
                None => parameter.one_of.join(", "),
            };
            let note = if *declares { &*parameter.description } else { "mentioned, not declared" };
            table.push([
                of,
                name,
                parameter.name.as_str().into(),
                default.into(),
                allowed.into(),
                Cell::toned(Tone::Quiet, note),
            ]);
        }
    }
    table.render(paint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_listed_with_declared_or_mentioned_parameters() {
        let settings = r#"
templates:
  default: "{apiVersion: v1, image: {{ parameters.image }}, size: {{ parameters.size }}}"
  open: "{image: {{ parameters.image }}}"
  whole: "{spec: {{ parameters }}}"
parameters:
  default: [{name: image, required: true, description: the image to run}, {name: size, default: small, enum: [small, big]}]
"#;
        let items = templates_in(settings, "BasicReplicaSet").unwrap();
        insta::assert_snapshot!(text(&Shown { items }, Paint::OFF), @r"
        OF                TEMPLATE   PARAMETER   DEFAULT      ALLOWED      DESCRIPTION
        BasicReplicaSet   default    image       (required)                the image to run
        BasicReplicaSet   default    size        small        small, big
        BasicReplicaSet   open       image                                 mentioned, not declared
        BasicReplicaSet   whole                                            it mentions no single parameter
        ");
    }
}
