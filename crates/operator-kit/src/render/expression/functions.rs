//! The functions that expressions may call: Kubernetes' own. Two of them would otherwise take as much memory as a number
//! in an object asks for, or end the process, and one would compare a large number as a small one.

use std::sync::{Arc, LazyLock};

use kube_cel::{
    KubeCelExt,
    cel::{Context, ExecutionError, Program, ResolveResult, Value, extractors::This},
};

use super::budget::STEPS;

/// Digits after the point; Rust's own formatting panics above 65,535.
const MOST_DIGITS: usize = 100;

/// Digits of a quantity, those of its exponent included.
const MOST_QUANTITY_DIGITS: usize = 20;

/// Made once; an evaluation adds its variables in a scope of its own.
pub(super) static FUNCTIONS: LazyLock<Context<'static>> = LazyLock::new(|| {
    let mut functions = Context::default().with_all();
    functions.add_function("lists.range", range);
    functions.add_function("format", format);
    functions.add_function("quantity", quantity);
    functions
});

static UNBOUNDED: LazyLock<Context<'static>> = LazyLock::new(|| Context::default().with_all());

/// A quantity whose digits and exponent fit into the numbers that compare it.
fn quantity(text: Arc<String>) -> ResolveResult {
    let failed = |problem: String| ExecutionError::function_error("quantity", problem);
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let exponent = text.split_once(['e', 'E']).and_then(|(_, exponent)| exponent.parse::<i32>().ok());
    if digits > MOST_QUANTITY_DIGITS || exponent.is_some_and(|exponent| exponent.unsigned_abs() > 18) {
        return Err(failed(format!("{text:?} is too large or too precise")));
    }
    let program = Program::compile("quantity(text)").map_err(|error| failed(error.to_string()))?;
    let mut one = UNBOUNDED.new_inner_scope();
    one.add_variable_from_value("text", Value::String(text));
    program.execute(&one)
}

/// A loop over more numbers is given up anyway.
fn range(count: i64) -> ResolveResult {
    if !(0..=i64::from(STEPS)).contains(&count) {
        let problem = format!("{count} is not a number from 0 to {STEPS}");
        return Err(ExecutionError::function_error("lists.range", problem));
    }
    Ok(Value::List(Arc::new((0..count).map(Value::Int).collect())))
}

fn format(This(text): This<Arc<String>>, values: Value) -> ResolveResult {
    let failed = |problem: String| ExecutionError::function_error("format", problem);
    if text.split("%.").skip(1).any(asks_for_too_much) {
        return Err(failed(format!("it asks for more than {MOST_DIGITS} digits")));
    }
    let program = Program::compile("text.format(values)").map_err(|error| failed(error.to_string()))?;
    let mut scope = UNBOUNDED.new_inner_scope();
    scope.add_variable_from_value("text", Value::String(text));
    scope.add_variable_from_value("values", values);
    program.execute(&scope)
}

/// Whether what follows a `%.` begins with too large a number.
fn asks_for_too_much(rest: &str) -> bool {
    let end = rest.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(rest.len());
    end > 0 && rest[..end].parse().map_or(true, |digits: usize| digits > MOST_DIGITS)
}
