//! The tree of an expression, before it is evaluated for the first time.

use std::mem;

use kube_cel::cel::{
    ExecutionError, Value,
    common::{
        ast::{
            CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, SelectExpr,
            operators::{INDEX, LOGICAL_AND, OPT_INDEX, OPT_SELECT},
        },
        types::CelString,
    },
};

use super::{FUNCTIONS, budget};

/// Maximum nesting of loops: the text that an inner one builds is an input of the outer one.
const LOOPS: usize = 2;

/// The variable for the first argument of a function. No user can write such a name.
const FIRST_ARGUMENT: &str = "@argument";

const NO_MESSAGES: &str = "it constructs a message, but only maps are supported";

/// Maximum nesting of an expression: an evaluation recurses into each level, on the stack of any thread. Without
/// optimization, a level takes up to 40 KB of its 2 MiB.
const DEEPEST: usize = 32;

/// Rejects unknown names, makes each loop check the budget before each step, and turns field accesses into map
/// accesses: the interpreter returns `false` for a field of a value without fields, and an error for a missing optional
/// field. It also replaces any error in the first argument of a function, so that this is evaluated before.
pub(super) fn prepare(program: &mut IdedExpr, variables: &[&str]) -> Result<(), String> {
    let names = variables.iter().map(|&name| name.to_owned()).collect();
    Scope { names, depth: 0, loops: 0 }.visit(program)
}

/// Whether a prepared expression is a variable or a field of one.
pub(super) fn is_path(program: &IdedExpr) -> bool {
    match &program.expr {
        Expr::Ident(_) => true,
        Expr::Call(CallExpr { func_name, target: None, args }) if func_name == INDEX => match &args[..] {
            [operand, key] => matches!(key.expr, Expr::Literal(LiteralValue::String(_))) && is_path(operand),
            _ => false,
        },
        _ => false,
    }
}

/// The names and depths at one part of the expression.
struct Scope {
    names: Vec<String>,
    depth: usize,
    loops: usize,
}

impl Scope {
    fn visit(&mut self, node: &mut IdedExpr) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("its parts are nested more than {DEEPEST} levels deep"));
        }
        match &mut node.expr {
            Expr::Unspecified => return Err("it has an empty part".into()),
            Expr::Literal(_) => {}
            Expr::Ident(name) => self.visit_name(name)?,
            Expr::Call(call) => {
                if self.visit_call(call)? {
                    node.expr = after_its_first_argument(mem::take(call));
                }
            }
            Expr::List(list) => list.elements.iter_mut().try_for_each(|element| self.visit(element))?,
            Expr::Map(map) => {
                for entry in &mut map.entries {
                    let EntryExpr::MapEntry(entry) = &mut entry.expr else { return Err(NO_MESSAGES.into()) };
                    self.visit(&mut entry.key)?;
                    self.visit(&mut entry.value)?;
                }
            }
            Expr::Struct(_) => return Err(NO_MESSAGES.into()),
            Expr::Select(select) => {
                self.visit(&mut select.operand)?;
                if !select.test {
                    node.expr = as_entry(mem::take(select));
                }
            }
            Expr::Comprehension(comprehension) => self.visit_loop(comprehension)?,
        }
        self.depth -= 1;
        Ok(())
    }

    fn visit_name(&self, name: &String) -> Result<(), String> {
        if name.starts_with('@') || self.names.contains(name) {
            return Ok(());
        }
        let known: Vec<_> =
            self.names.iter().map(String::as_str).filter(|name| !name.starts_with('@')).collect();
        Err(format!("there is no variable {name}; existing ones: {}", known.join(", ")))
    }

    /// True for a function without a target.
    fn visit_call(&mut self, call: &mut CallExpr) -> Result<bool, String> {
        if call.func_name == OPT_SELECT {
            OPT_INDEX.clone_into(&mut call.func_name);
        }
        let has_target = match call.target.as_mut() {
            // `math.greatest(…)`: `math` is a part of the function's name.
            Some(target)
                if matches!(&target.expr, Expr::Ident(prefix) if !self.names.contains(prefix)
                    && is_function(&format!("{prefix}.{}", call.func_name))) =>
            {
                false
            }
            _ if !is_function(&call.func_name) => {
                return Err(format!("there is no function {}", call.func_name));
            }
            Some(target) => {
                self.visit(target)?;
                true
            }
            None => false,
        };
        let is_plain = !has_target && !is_operator(&call.func_name);
        // The evaluation of the first argument is a level of its own.
        self.depth += usize::from(is_plain);
        call.args.iter_mut().try_for_each(|argument| self.visit(argument))?;
        self.depth -= usize::from(is_plain);
        Ok(is_plain)
    }

    fn visit_loop(&mut self, comprehension: &mut ComprehensionExpr) -> Result<(), String> {
        self.visit(&mut comprehension.iter_range)?;
        self.visit(&mut comprehension.accu_init)?;
        self.loops += 1;
        if self.loops > LOOPS {
            return Err(format!("its loops are nested more than {LOOPS} levels deep"));
        }
        let outer = self.names.len();
        self.names.push(comprehension.accu_var.clone());
        self.names.push(comprehension.iter_var.clone());
        self.names.extend(comprehension.iter_var2.clone());
        self.visit(&mut comprehension.loop_cond)?;
        self.visit(&mut comprehension.loop_step)?;
        self.visit(&mut comprehension.result)?;
        self.names.truncate(outer);
        self.loops -= 1;
        comprehension.loop_cond = asking_the_budget(mem::take(&mut comprehension.loop_cond));
        Ok(())
    }
}

fn asking_the_budget(condition: IdedExpr) -> IdedExpr {
    let budget = IdedExpr { id: 0, expr: Expr::Ident(budget::VARIABLE.to_owned()) };
    let args = vec![budget, condition];
    IdedExpr { id: 0, expr: Expr::Call(CallExpr { func_name: LOGICAL_AND.to_owned(), target: None, args }) }
}

/// A call after the evaluation of its first argument, like `cel.bind`: a loop over nothing.
fn after_its_first_argument(mut call: CallExpr) -> Expr {
    let Some(argument) = call.args.first_mut() else { return Expr::Call(call) };
    let variable = IdedExpr { id: 0, expr: Expr::Ident(FIRST_ARGUMENT.to_owned()) };
    let argument = mem::replace(argument, variable);
    Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: IdedExpr { id: 0, expr: Expr::List(ListExpr::default()) },
        accu_var: FIRST_ARGUMENT.to_owned(),
        accu_init: argument,
        result: IdedExpr { id: 0, expr: Expr::Call(call) },
        ..ComprehensionExpr::default()
    }))
}

/// Whether the name is an operator. No user can write one, and the parser creates no others.
fn is_operator(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_alphabetic())
}

/// Whether the name is a function or an operator.
fn is_function(name: &str) -> bool {
    if is_operator(name) {
        return true;
    }
    let call = CallExpr { func_name: name.to_owned(), target: None, args: Vec::new() };
    let call = IdedExpr { id: 0, expr: Expr::Call(call) };
    !matches!(Value::resolve(&call, &FUNCTIONS), Err(ExecutionError::UndeclaredReference(_)))
}

fn as_entry(select: SelectExpr) -> Expr {
    let key = Expr::Literal(LiteralValue::String(CelString::from(select.field.as_str())));
    let key = IdedExpr { id: 0, expr: key };
    Expr::Call(CallExpr { func_name: INDEX.to_owned(), target: None, args: vec![*select.operand, key] })
}
