//! The outputs of a child: the values that its kind has under the names of the replica contract.

use catena_api::{
    BlockedBy,
    contract::{Computed, FieldPath, Output, ReplicaContract},
};
use operator_kit::{
    render::{Expression, ExpressionError},
    report::conditions::{READY, STALLED},
};
use serde::Deserialize;
use serde_json::Value;

/// The variable for the child in expressions.
const OBJECT: &str = "object";

/// A replica contract with compiled expressions.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "ReplicaContract")]
pub struct Mapping {
    /// The contract as it is written in the settings.
    pub contract: ReplicaContract,
    active: Source,
    observed_generation: Source,
    ready: Option<Source>,
    updated: Source,
    blocked_by: Source,
    stalled: Option<Source>,
    selector: Source,
    pods: Option<Source>,
}

/// An output with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Field(&'static str, FieldPath),
    Computed(Expression),
}

/// The outputs of one child.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outputs {
    /// The number of its serving replicas.
    pub active: i32,
    /// The generation of its spec that the other outputs refer to.
    pub observed_generation: Option<i64>,
    /// Whether all its replicas have the current template and token, and serve, and no older one is left.
    pub ready: bool,
    /// Its own report of progress, in words.
    pub progress: String,
    /// The number of its replicas with the current template and token, if it reports that.
    pub updated: Option<i32>,
    /// The reason why it cannot proceed by itself, if it cannot.
    pub stalled: Option<Stalled>,
    /// Its blocker, if it reports one.
    pub blocked_by: Option<BlockedBy>,
    /// The label selector of its pods, if it reports one.
    pub selector: Option<String>,
    /// The label selector of the pods among which its blocker is looked for, if its kind has one.
    pub pods: Option<String>,
    /// The first output that has no usable value, and why.
    pub problem: Option<String>,
}

/// The reason why a child cannot proceed by itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Stalled {
    /// One word.
    pub reason: String,
    /// For people.
    #[serde(default)]
    pub message: String,
}

impl TryFrom<ReplicaContract> for Mapping {
    type Error = ExpressionError;

    fn try_from(contract: ReplicaContract) -> Result<Self, ExpressionError> {
        let source = |name, output: &Output| Source::of(name, output);
        let optional = |name, output: &Option<Output>| {
            output.as_ref().map(|output| Source::of(name, output)).transpose()
        };
        Ok(Self {
            active: source("active", &contract.active)?,
            observed_generation: source("observedGeneration", &contract.observed_generation)?,
            ready: optional("ready", &contract.ready)?,
            updated: source("updated", &contract.updated)?,
            blocked_by: source("blockedBy", &contract.blocked_by)?,
            stalled: optional("stalled", &contract.stalled)?,
            selector: source("selector", &contract.selector)?,
            pods: contract.pods.as_ref().map(|pods| source("pods.selector", &pods.selector)).transpose()?,
            contract,
        })
    }
}

impl Default for Mapping {
    fn default() -> Self {
        Self::try_from(ReplicaContract::default()).unwrap_or_else(|_| unreachable!("it has no expressions"))
    }
}

impl Mapping {
    /// The outputs of a child. An output without a usable value makes the child not ready.
    #[must_use]
    pub fn outputs(&self, child: &Value, generation: i64) -> Outputs {
        let mut problem = None;
        let mut note = |found: Result<Option<Value>, String>| {
            found.unwrap_or_else(|why| {
                problem.get_or_insert(why);
                None
            })
        };
        let mut get = |source: &Source, wanted: Type| note(source.get(child, wanted));
        let int = |value: Option<Value>| value.and_then(|value| value.as_i64());
        let count = |value: Option<Value>| int(value).and_then(|number| i32::try_from(number).ok());
        let active = count(get(&self.active, Type::Integer)).unwrap_or(0);
        let observed_generation = int(get(&self.observed_generation, Type::Integer));
        let updated = count(get(&self.updated, Type::Integer));
        let selector = get(&self.selector, Type::Text).and_then(|text| text.as_str().map(str::to_owned));
        let pods = self.pods.as_ref().and_then(|source| get(source, Type::Text)?.as_str().map(str::to_owned));
        let blocked_by =
            get(&self.blocked_by, Type::Map).and_then(|value| serde_json::from_value(value).ok());
        let condition = |type_| condition(&self.contract.conditions, child, generation, type_);
        let is_true = |found: &&Value| found["status"] == "True";
        let ready = match &self.ready {
            Some(source) => get(source, Type::Boolean) == Some(Value::Bool(true)),
            None => condition(READY).as_ref().is_some_and(is_true),
        };
        let stalled = match &self.stalled {
            Some(source) => get(source, Type::Map),
            None => condition(STALLED).filter(is_true).cloned(),
        };
        let stalled = stalled.and_then(|value| serde_json::from_value(value).ok());
        let message = condition(READY).and_then(|found| found["message"].as_str());
        Outputs {
            active,
            observed_generation,
            ready: ready && problem.is_none(),
            progress: message.unwrap_or_default().to_owned(),
            updated,
            stalled,
            blocked_by,
            selector,
            pods,
            problem,
        }
    }
}

/// The type of an output.
#[derive(Clone, Copy)]
enum Type {
    Integer,
    Boolean,
    Text,
    Map,
}

impl Type {
    fn has(self, value: &Value) -> bool {
        match self {
            Self::Integer => value.is_i64(),
            Self::Boolean => value.is_boolean(),
            Self::Text => value.is_string(),
            Self::Map => value.is_object(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Integer => "an integer",
            Self::Boolean => "a boolean",
            Self::Text => "a string",
            Self::Map => "a map",
        }
    }
}

impl Source {
    fn of(name: &'static str, output: &Output) -> Result<Self, ExpressionError> {
        match output {
            Output::Field(path) => Ok(Self::Field(name, path.clone())),
            Output::Computed(Computed { cel }) => {
                Expression::compile(format!("contract.{name}"), cel, &[OBJECT]).map(Self::Computed)
            }
        }
    }

    /// The value, or why it has no usable one. A field that is missing has not been reported yet.
    fn get(&self, child: &Value, wanted: Type) -> Result<Option<Value>, String> {
        let (found, source) = match self {
            Self::Field(name, path) => (path.get(child).cloned(), format!("contract.{name}: {path}")),
            Self::Computed(expression) => match expression.optional_json(&[(OBJECT, child)]) {
                Ok(value) => (value, format!("{expression:?}")),
                Err(ExpressionError::Missing { .. }) => return Ok(None),
                Err(error) => return Err(error.to_string()),
            },
        };
        match found {
            Some(value) if !wanted.has(&value) => {
                Err(format!("{source} is {}, but must be {}", described(&value), wanted.name()))
            }
            found => Ok(found),
        }
    }
}

fn described(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => Type::Boolean.name(),
        Value::Number(_) => "a number",
        Value::String(_) => Type::Text.name(),
        Value::Array(_) => "a list",
        Value::Object(_) => Type::Map.name(),
    }
}

/// A condition, if it exists and refers to the current spec.
fn condition<'v>(
    conditions: &FieldPath,
    child: &'v Value,
    generation: i64,
    type_: &str,
) -> Option<&'v Value> {
    let conditions = conditions.get(child)?.as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == type_)?;
    let is_current = found["observedGeneration"].as_i64().is_none_or(|observed| observed == generation);
    is_current.then_some(found)
}

#[cfg(test)]
mod tests;
