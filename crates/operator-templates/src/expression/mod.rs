//! CEL over objects of kinds that are unknown at compile time.

mod differences;
mod error;
mod evaluation;
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

use cel::{Value, common::ast::IdedExpr, parser::Parser};
use jiff::Timestamp;
use serde_json::Value as Json;

pub use error::ExpressionError;
use error::Problem;
use evaluation::{Evaluation, STEPS};

/// Maximum length of an expression, in bytes.
const LONGEST: usize = 2048;

/// Stack size in bytes, enough for any expression of maximum length. Only the used part costs memory, and only during a
/// compilation.
const PARSER_STACK: usize = 256 << 20;

type Variables<'v> = [(&'v str, &'v Json)];

/// A CEL expression of the settings, with Kubernetes' functions and optional fields
/// (`object.spec.?datacenter.?name.orValue('')`).
///
/// Its value is the one that it has in a policy of the API server, or it has none: `docs/expressions.md` has the differences.
/// It cannot hang the process: it has no recursion, and both the text of an expression and the steps of its loops are bounded.
#[derive(Clone, PartialEq)]
pub struct Expression {
    field: Arc<str>,
    source: Arc<str>,
    program: Arc<Program>,
}

/// A compiled expression.
#[derive(PartialEq)]
struct Program {
    root: IdedExpr,
    fields: Vec<String>,
}

impl Expression {
    /// Compiles the expression in `field` of the settings, which may read `variables`.
    pub fn compile(
        field: impl Into<Arc<str>>,
        source: &str,
        variables: &[&str],
    ) -> Result<Self, ExpressionError> {
        let (field, source) = (field.into(), Arc::from(source));
        match compile(&source, variables).map_err(Problem::Compile) {
            Ok(program) => Ok(Self { field, source, program: Arc::new(program) }),
            Err(problem) => Err(ExpressionError { field, expression: source, problem }),
        }
    }

    /// The source text.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The names of the fields that it reads, such as `metadata` and `name`, and those of variables also as `object.metadata`, in no
    /// order.
    #[must_use]
    pub fn fields(&self) -> &[String] {
        &self.program.fields
    }

    /// Whether it only names a field, such as `object.metadata.labels['a']`. Where that field is missing, it counts as
    /// not set; any other expression that reads a missing field has no value.
    #[must_use]
    pub fn is_path(&self) -> bool {
        functions::is(functions::PATH, &self.source)
    }

    /// The value as a boolean.
    pub fn bool(&self, variables: &Variables) -> Result<bool, ExpressionError> {
        let value = self.read(variables, "a boolean", |value| values::json(value)?.as_bool())?;
        value.ok_or_else(|| self.error(Problem::WrongType { wanted: "a boolean", got: "nothing".to_owned() }))
    }

    /// The value as text; `None` for null and for an optional without a value.
    pub fn optional_text(&self, variables: &Variables) -> Result<Option<String>, ExpressionError> {
        self.read(variables, "a string", |value| values::json(value)?.as_str().map(str::to_owned))
    }

    /// The value as a whole number; `None` for null and for an optional without a value.
    pub fn optional_int(&self, variables: &Variables) -> Result<Option<i64>, ExpressionError> {
        self.read(variables, "a whole number", |value| values::json(value)?.as_i64())
    }

    /// The value as a point in time: a `timestamp(…)`, or a string in the format of RFC 3339; `None` for null and for an
    /// optional without a value. One after the last that can be represented, such as `9999-12-31T23:59:59Z`, is the last.
    pub fn optional_timestamp(&self, variables: &Variables) -> Result<Option<Timestamp>, ExpressionError> {
        self.read(variables, "a timestamp", |value| {
            let read = if let Value::String(text) = value { functions::time(text) } else { None };
            let Value::Timestamp(time) = read.as_ref().unwrap_or(value) else { return None };
            // The two libraries agree on RFC 3339.
            Some(time.to_rfc3339().parse().unwrap_or(Timestamp::MAX))
        })
    }

    /// The value as JSON; `None` for null and for an optional without a value.
    pub fn optional_json(&self, variables: &Variables) -> Result<Option<Json>, ExpressionError> {
        self.read(variables, "a value of JSON", values::json)
    }

    /// `None` for null and for an optional without a value.
    fn read<T>(
        &self,
        variables: &Variables,
        wanted: &'static str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, ExpressionError> {
        let variables = variables.iter().map(|(name, value)| (*name, Ok(values::of(value)))).collect();
        let mut evaluation = Evaluation { variables, steps: 0 };
        let mut value = evaluation.value(&self.program.root);
        if evaluation.steps > STEPS {
            value = Err(Problem::TooCostly);
        }
        let value = value.map_err(|problem| self.error(problem))?;
        let Some(value) = values::present(value) else { return Ok(None) };
        let wrong = || Problem::WrongType { wanted, got: values::described(&value) };
        read(&value).map(Some).ok_or_else(|| self.error(wrong()))
    }

    fn error(&self, problem: Problem) -> ExpressionError {
        ExpressionError { field: self.field.clone(), expression: self.source.clone(), problem }
    }
}

/// Compiles on a separate stack, because the parser recurses into each nested part of an arbitrary text.
fn compile(source: &str, variables: &[&str]) -> Result<Program, String> {
    if source.trim().is_empty() {
        return Err("it is empty".into());
    }
    if source.len() > LONGEST {
        return Err(format!("it has {} bytes, but at most {LONGEST} are allowed", source.len()));
    }
    differences::check_source(source)?;
    let parse = || {
        let parser = Parser::new().enable_optional_syntax(true);
        let root = parser.parse(source).map_err(|errors| error::clip(&errors.to_string()))?;
        let fields = tree::check(&root, variables)?;
        Ok(Program { root, fields })
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

impl Eq for Expression {}
