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

/// Largest exponent of a quantity, and digits after its point.
const MOST_DIGITS_AFTER: u32 = 9;
/// 2^63, and how much larger a binary suffix is than the decimal one, at most.
const TWO_TO_63: f64 = 9.223_372_036_854_776e18;
const BINARY_IS_MORE: f64 = 1.16;

/// Made once; an evaluation adds its variables in a scope of its own.
pub(super) static FUNCTIONS: LazyLock<Context<'static>> = LazyLock::new(|| {
    let mut functions = Context::default().with_all();
    functions.add_function("lists.range", range);
    functions.add_function("format", format);
    functions.add_function("quantity", quantity);
    functions
});

static UNBOUNDED: LazyLock<Context<'static>> = LazyLock::new(|| Context::default().with_all());

/// A quantity that can be compared with any other one in 38 digits: Kubernetes knows none above 2^63, and none below 10^-9.
fn quantity(text: Arc<String>) -> ResolveResult {
    let failed = |problem: String| ExecutionError::function_error("quantity", problem);
    if !is_comparable(&text) {
        return Err(failed(format!("{text:?} is too large or too precise")));
    }
    unbounded("quantity", "quantity(text)", [("text", Value::String(text))])
}

/// Whether a text is less than 2^63, with at most nine digits after the point. What is no quantity is told as such later.
fn is_comparable(text: &str) -> bool {
    let end = text.find(|part: char| !(part.is_ascii_digit() || ".+-".contains(part))).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let digits = number.split_once('.').map_or(0, |(_, after)| after.len());
    let exponent = match suffix.strip_prefix(['e', 'E']).map(str::parse::<i32>) {
        Some(Ok(exponent)) => Some(exponent).filter(|exponent| exponent.unsigned_abs() <= MOST_DIGITS_AFTER),
        // 1E is 10^18, and 1Ei is 2^60.
        Some(Err(_)) | None => match suffix {
            "n" => Some(-9),
            "u" => Some(-6),
            "m" => Some(-3),
            "k" | "Ki" => Some(3),
            "M" | "Mi" => Some(6),
            "G" | "Gi" => Some(9),
            "T" | "Ti" => Some(12),
            "P" | "Pi" => Some(15),
            "E" | "Ei" => Some(18),
            _ => Some(0),
        },
    };
    let value = number.parse::<f64>().unwrap_or_default().abs();
    exponent.is_some_and(|exponent| {
        u32::try_from(digits).is_ok_and(|digits| digits <= MOST_DIGITS_AFTER)
            && value * 10f64.powi(exponent) * BINARY_IS_MORE < TWO_TO_63
    })
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
    unbounded("format", "text.format(values)", [("text", Value::String(text)), ("values", values)])
}

/// What Kubernetes' own function of this name gives.
fn unbounded<const N: usize>(name: &str, call: &str, arguments: [(&str, Value); N]) -> ResolveResult {
    let program =
        Program::compile(call).map_err(|error| ExecutionError::function_error(name, error.to_string()))?;
    let mut scope = UNBOUNDED.new_inner_scope();
    for (argument, value) in arguments {
        scope.add_variable_from_value(argument, value);
    }
    program.execute(&scope)
}

/// Whether what follows a `%.` begins with too large a number.
fn asks_for_too_much(rest: &str) -> bool {
    let end = rest.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(rest.len());
    end > 0 && rest[..end].parse().map_or(true, |digits: usize| digits > MOST_DIGITS)
}
