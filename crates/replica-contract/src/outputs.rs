//! The outputs of a child: the values that its kind has under the names of the replica contract.

use catena_api::{
    BlockedBy,
    contract::{Computed, FieldPath, Output, ReplicaContract},
};
use operator_kit::report::Conditions;
use operator_templates::{Expression, ExpressionError};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

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
    available: Option<Source>,
    terminating: Option<Source>,
    blocked_by: Source,
    stalled: Option<Source>,
    paused: Option<Source>,
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
    /// Whether all its replicas have the current template and token, and serve, and no older one is counted.
    pub ready: bool,
    /// The number of its replicas with the current template and token, if it reports that.
    pub updated: Option<i32>,
    /// The number of its serving replicas that have been ready for as long as they have to; if it does not tell them apart, of all
    /// that serve.
    pub available: i32,
    /// The number of its replicas that are being deleted and not gone, if it reports that.
    pub terminating: Option<i32>,
    /// The reason why it cannot proceed by itself, if it cannot.
    pub stalled: Option<Stalled>,
    /// The pause in which it waits on purpose, if it reports one.
    pub paused: Option<Pause>,
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
    #[serde(default = "stalled")]
    pub reason: String,
    /// For people.
    #[serde(default)]
    pub message: String,
}

/// A pause of a child.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Pause {
    /// One word.
    pub reason: String,
    /// For people.
    #[serde(default)]
    pub message: String,
}

/// The reason of a stall that is told without one.
fn stalled() -> String {
    Conditions::STALLED.to_owned()
}

impl TryFrom<ReplicaContract> for Mapping {
    type Error = ExpressionError;

    fn try_from(contract: ReplicaContract) -> Result<Self, ExpressionError> {
        let optional =
            |name, output: Option<&Output>| output.map(|output| Source::of(name, output)).transpose();
        Ok(Self {
            active: Source::of("active", &contract.active)?,
            observed_generation: Source::of("observedGeneration", &contract.observed_generation)?,
            ready: optional("ready", contract.ready.as_ref())?,
            updated: Source::of("updated", &contract.updated)?,
            available: optional("available", contract.available.as_ref())?,
            terminating: optional("terminating", contract.terminating.as_ref())?,
            blocked_by: Source::of("blockedBy", &contract.blocked_by)?,
            stalled: optional("stalled", contract.stalled.as_ref())?,
            paused: optional("paused", contract.paused.as_ref())?,
            selector: Source::of("selector", &contract.selector)?,
            pods: optional("pods.selector", contract.pods.as_ref().map(|pods| &pods.selector))?,
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
        let mut reading = Reading { child, problem: None };
        let active = reading.count(&self.active).unwrap_or(0);
        let observed_generation = reading.generation(&self.observed_generation, generation);
        let updated = reading.count(&self.updated);
        let available = self.available.as_ref().and_then(|source| reading.count(source));
        let terminating = self.terminating.as_ref().and_then(|source| reading.count(source));
        let selector = reading.text(&self.selector);
        let pods = self.pods.as_ref().and_then(|source| reading.text(source));
        let blocked_by = reading.map(&self.blocked_by, &["apiVersion", "kind", "name", "reason", "message"]);
        let of_type = |type_| condition(&self.contract.conditions, child, generation, type_);
        let is_true = |found: &&Value| found["status"] == "True";
        let ready = match &self.ready {
            Some(source) => reading.is_true(source),
            None => reading.noted(of_type(Conditions::READY)).as_ref().is_some_and(is_true),
        };
        let stalled = if let Some(source) = &self.stalled {
            reading.map(source, &["reason", "message"])
        } else {
            let told = reading.noted(of_type(Conditions::STALLED)).filter(is_true);
            told.and_then(|told| serde_json::from_value(told.clone()).ok())
        };
        let paused = self.paused.as_ref().and_then(|source| reading.map(source, &["reason", "message"]));
        Outputs {
            active,
            observed_generation,
            ready: ready && reading.problem.is_none(),
            updated,
            available: available.map_or(active, |available| available.min(active)),
            terminating,
            stalled,
            paused,
            blocked_by,
            selector,
            pods,
            problem: reading.problem,
        }
    }
}

/// Reads the outputs of a child, and notes the first one that has no usable value.
struct Reading<'v> {
    child: &'v Value,
    problem: Option<String>,
}

impl Reading<'_> {
    fn noted<T>(&mut self, found: Result<Option<T>, String>) -> Option<T> {
        found.unwrap_or_else(|why| {
            self.problem.get_or_insert(why);
            None
        })
    }

    fn text(&mut self, source: &Source) -> Option<String> {
        let text = self.noted(source.get(self.child, Type::Text))?;
        text.as_str().map(str::to_owned)
    }

    fn is_true(&mut self, source: &Source) -> bool {
        self.noted(source.get(self.child, Type::Boolean)) == Some(Value::Bool(true))
    }

    fn integer(&mut self, source: &Source) -> Option<i64> {
        self.noted(source.get(self.child, Type::Integer))?.as_i64()
    }

    /// A number of replicas.
    fn count(&mut self, source: &Source) -> Option<i32> {
        let number = self.integer(source)?;
        let count = i32::try_from(number).ok().filter(|count| *count >= 0);
        self.noted(count.map(Some).ok_or_else(|| {
            format!("{} is {number}, but a number of replicas is from 0 to {}", source.place(), i32::MAX)
        }))
    }

    /// The generation that the child has seen. Nobody can have seen a later one than the present one.
    fn generation(&mut self, source: &Source, present: i64) -> Option<i64> {
        let seen = self.integer(source)?;
        self.noted(if seen <= present {
            Ok(Some(seen))
        } else {
            Err(format!("{} is {seen}, but metadata.generation is only {present}", source.place()))
        })
    }

    /// A map with these texts. An empty one says nothing.
    fn map<T: DeserializeOwned>(&mut self, source: &Source, texts: &[&str]) -> Option<T> {
        let map = self.noted(source.get(self.child, Type::Map))?;
        if map.as_object().is_some_and(Map::is_empty) {
            return None;
        }
        let place = source.place();
        let read =
            all_texts(&map, texts).and_then(|()| T::deserialize(map).map_err(|error| error.to_string()));
        self.noted(read.map(Some).map_err(|why| format!("{place}: {why}")))
    }
}

/// Checks that fields are texts if they are set.
fn all_texts(map: &Value, texts: &[&str]) -> Result<(), String> {
    let mut set = texts.iter().filter_map(|field| Some((field, map.get(field)?)));
    set.find(|(_, value)| !value.is_string()).map_or(Ok(()), |(field, value)| {
        Err(format!("{field} is {}, but must be {}", described(value), Type::Text.name()))
    })
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

    /// The output and its path or expression, for messages.
    fn place(&self) -> String {
        match self {
            Self::Field(name, path) => format!("contract.{name}: {path}"),
            Self::Computed(expression) => format!("{expression:?}"),
        }
    }

    /// The value, or why it has no usable one. A field that is missing has not been reported yet.
    fn get(&self, child: &Value, wanted: Type) -> Result<Option<Value>, String> {
        let found = match self {
            Self::Field(_, path) => path.get(child).cloned(),
            Self::Computed(expression) => match expression.optional_json(&[(OBJECT, child)]) {
                Ok(value) => value,
                Err(error) if error.missing().is_some() => return Ok(None),
                Err(error) => return Err(error.to_string()),
            },
        };
        match found {
            Some(value) if !wanted.has(&value) => {
                Err(format!("{} is {}, but must be {}", self.place(), described(&value), wanted.name()))
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
) -> Result<Option<&'v Value>, String> {
    let Some(found) = conditions.get(child).filter(|found| !found.is_null()) else { return Ok(None) };
    let broken = |problem: String| format!("contract.conditions: {conditions}{problem}");
    let Some(all) = found.as_array() else {
        return Err(broken(format!(" is {}, but must be a list", described(found))));
    };
    let Some(found) = all.iter().find(|condition| condition["type"] == type_) else { return Ok(None) };
    all_texts(found, &["status", "reason", "message"])
        .map_err(|why| broken(format!(", condition {type_}: {why}")))?;
    let seen = &found["observedGeneration"];
    if !seen.is_null() && !seen.is_i64() {
        let seen = described(seen);
        let why = format!(", condition {type_}: observedGeneration is {seen}, but must be an integer");
        return Err(broken(why));
    }
    Ok((seen.is_null() || *seen == generation).then_some(found))
}

#[cfg(test)]
mod tests;
