//! `kubectl catena run`

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Map, Value, json};

use crate::{
    connection::Options,
    issue::{Issuing, Order},
};

/// The command, and its target.
#[derive(Args)]
pub struct Arguments {
    /// The kind of the command, in any form that kubectl accepts
    kind: String,
    /// The name of its target
    target: String,
    /// Set a field, for example `spec.toRevision=3` or `reason=upgrade` (spec. may be omitted); numbers, true,
    /// false and JSON keep their type
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// The path of the target's name in the kind
    #[arg(long, default_value = "spec.targetRef.name", value_name = "PATH")]
    target_path: String,
    #[command(flatten)]
    issuing: Issuing,
}

/// Issues a command of any kind.
pub async fn run(options: &Options, arguments: &Arguments) -> Result<ExitCode> {
    let mut spec = json!({});
    set(&mut spec, &arguments.target_path, Value::String(arguments.target.clone()))?;
    for assignment in &arguments.set {
        let Some((path, value)) = assignment.split_once('=') else {
            bail!("--set {assignment:?} has no value: write PATH=VALUE, for example spec.toRevision=3");
        };
        set(&mut spec, path, typed(value))?;
    }
    let singular = arguments.kind.split('.').next().unwrap_or_default().to_lowercase();
    let order = Order {
        kind: &arguments.kind,
        verb: &singular,
        // The kind of the target is up to the kind of the command, and its existence to the binder.
        target_kind: "",
        target: &arguments.target,
        spec,
    };
    arguments.issuing.issue(options, &order).await
}

/// Sets a field of the spec, creating the objects on the way to it.
fn set(spec: &mut Value, path: &str, value: Value) -> Result<()> {
    let path = path.strip_prefix("spec.").unwrap_or(path);
    let mut place = spec;
    for name in path.split('.') {
        if name.is_empty() {
            bail!("{path:?} is not a field: write names separated by dots, for example spec.targetRef.name");
        }
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[name];
    }
    *place = value;
    Ok(())
}

/// JSON where it is JSON, else text.
fn typed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_set_by_their_paths() {
        let mut spec = json!({});
        for (path, value) in
            [("spec.targetRef.name", "web"), ("toRevision", "3"), ("dry", "true"), ("note", "a b")]
        {
            set(&mut spec, path, typed(value)).unwrap();
        }
        assert_eq!(spec, json!({"targetRef": {"name": "web"}, "toRevision": 3, "dry": true, "note": "a b"}));
        assert!(set(&mut spec, "a..b", Value::Null).is_err());
    }
}
