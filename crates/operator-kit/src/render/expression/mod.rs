//! CEL over objects of kinds that are unknown at compile time.

mod budget;
mod error;
mod functions;
mod tree;
mod values;

#[cfg(test)]
mod tests;

use std::{
    fmt::{self, Debug},
    sync::Arc,
    thread,
};

use jiff::Timestamp;
use kube_cel::cel::{self, ExecutionError, parser::Parser};
use serde_json::Value;

use budget::Budget;
pub use error::ExpressionError;
use functions::FUNCTIONS;

/// Maximum length of an expression, in bytes.
const LONGEST: usize = 2048;

/// Stack size in bytes, enough for any expression of maximum length. Only the used part costs memory, and only during a
/// compilation.
const PARSER_STACK: usize = 256 << 20;

/// A CEL expression of the settings, with Kubernetes' functions and optional fields
/// (`object.spec.?datacenter.?name.orValue('')`).
///
/// It cannot hang the process: it has no recursion, and both the text of an expression and the steps of its
/// loops are bounded.
#[derive(Clone)]
pub struct Expression {
    field: Arc<str>,
    source: Arc<str>,
    program: Arc<cel::parser::Expression>,
}

impl Expression {
    /// Compiles the expression in `field` of the settings, which may read `variables`.
    pub fn compile(
        field: impl Into<Arc<str>>,
        source: &str,
        variables: &[&str],
    ) -> Result<Self, ExpressionError> {
        let (field, source) = (field.into(), Arc::from(source));
        match compile(&source, variables) {
            Ok(program) => Ok(Self { field, source, program: Arc::new(program) }),
            Err(problem) => Err(ExpressionError::Compile { field, expression: source, problem }),
        }
    }

    /// The source text.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether it only names a field, such as `object.metadata.labels['a']`. Where that field is missing, it counts as
    /// not set; any other expression that reads a missing field has no value.
    #[must_use]
    pub fn is_path(&self) -> bool {
        tree::is_path(&self.program)
    }

    /// The value as a boolean.
    pub fn bool(&self, variables: &[(&str, &Value)]) -> Result<bool, ExpressionError> {
        match self.evaluate(variables)? {
            Some(cel::Value::Bool(value)) => Ok(value),
            other => Err(self.wrong("a boolean", other.as_ref())),
        }
    }

    /// The value as text; `None` for null and for an optional without a value.
    pub fn optional_text(&self, variables: &[(&str, &Value)]) -> Result<Option<String>, ExpressionError> {
        match self.evaluate(variables)? {
            None => Ok(None),
            Some(cel::Value::String(text)) => Ok(Some(Arc::unwrap_or_clone(text))),
            other => Err(self.wrong("a string", other.as_ref())),
        }
    }

    /// The value as a whole number; `None` for null and for an optional without a value.
    pub fn optional_int(&self, variables: &[(&str, &Value)]) -> Result<Option<i64>, ExpressionError> {
        let value = self.evaluate(variables)?;
        match &value {
            None => Ok(None),
            Some(cel::Value::Int(number)) => Ok(Some(*number)),
            Some(cel::Value::UInt(number)) => {
                i64::try_from(*number).map(Some).map_err(|_| self.wrong("a whole number", value.as_ref()))
            }
            other => Err(self.wrong("a whole number", other.as_ref())),
        }
    }

    /// The value as a point in time: a `timestamp(…)`, or a string in the format of RFC 3339; `None` for null and for an
    /// optional without a value.
    pub fn optional_timestamp(
        &self,
        variables: &[(&str, &Value)],
    ) -> Result<Option<Timestamp>, ExpressionError> {
        let value = self.evaluate(variables)?;
        match &value {
            None => Ok(None),
            Some(cel::Value::Timestamp(time)) => {
                // The two libraries agree on RFC 3339.
                let time = time.to_rfc3339().parse();
                time.map(Some).map_err(|_| self.wrong("a timestamp", value.as_ref()))
            }
            Some(cel::Value::String(text)) => {
                text.parse().map(Some).map_err(|_| self.wrong("a timestamp", value.as_ref()))
            }
            other => Err(self.wrong("a timestamp", other.as_ref())),
        }
    }

    /// The value as JSON; `None` for null and for an optional without a value.
    pub fn optional_json(&self, variables: &[(&str, &Value)]) -> Result<Option<Value>, ExpressionError> {
        let Some(value) = self.evaluate(variables)? else { return Ok(None) };
        values::json(&value).map(Some).ok_or_else(|| self.wrong("a value of JSON", Some(&value)))
    }

    /// `None` for null and for an optional without a value.
    fn evaluate(&self, variables: &[(&str, &Value)]) -> Result<Option<cel::Value>, ExpressionError> {
        let budget = Budget::new();
        let mut scope = FUNCTIONS.new_inner_scope();
        scope.set_variable_resolver(&budget);
        for (name, value) in variables {
            scope.add_variable_from_value(*name, values::of(value));
        }
        let result = cel::Value::resolve(&self.program, &scope);
        if budget.is_spent() {
            return Err(ExpressionError::TooCostly {
                field: self.field.clone(),
                expression: self.source.clone(),
                steps: budget::STEPS,
            });
        }
        Ok(values::present(result.map_err(|error| self.failed(&error))?))
    }

    fn failed(&self, error: &ExecutionError) -> ExpressionError {
        let (field, expression) = (self.field.clone(), self.source.clone());
        match error {
            ExecutionError::NoSuchKey(key) => {
                ExpressionError::Missing { field, expression, key: key.to_string() }
            }
            other => ExpressionError::Failed { field, expression, problem: error::clip(&other.to_string()) },
        }
    }

    fn wrong(&self, wanted: &'static str, got: Option<&cel::Value>) -> ExpressionError {
        let got = got.map_or_else(|| "nothing".to_owned(), values::described);
        ExpressionError::WrongType { field: self.field.clone(), expression: self.source.clone(), wanted, got }
    }
}

/// Compiles on a separate stack, because the parser recurses into each nested part of an arbitrary text.
fn compile(source: &str, variables: &[&str]) -> Result<cel::parser::Expression, String> {
    if source.trim().is_empty() {
        return Err("it is empty".into());
    }
    if source.len() > LONGEST {
        return Err(format!("it has {} bytes, but at most {LONGEST} are allowed", source.len()));
    }
    let parse = || {
        let parser = Parser::new().enable_optional_syntax(true);
        let mut program = parser.parse(source).map_err(|errors| error::clip(&errors.to_string()))?;
        tree::prepare(&mut program, variables)?;
        Ok(program)
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(PARSER_STACK).spawn_scoped(scope, parse);
        let thread = thread.map_err(|error| format!("cannot start a thread to parse it: {error}"))?;
        thread.join().unwrap_or_else(|_| Err("the parser crashed".into()))
    })
}

impl Debug for Expression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.field, self.source)
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        (&self.field, &self.source) == (&other.field, &other.source)
    }
}

impl Eq for Expression {}
