//! The tree of an expression, before it is evaluated for the first time.

use cel::common::{
    ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators::OPT_SELECT},
    types::CelString,
};

use super::differences;

/// Maximum number of loops in each other, or over the results of each other: what one builds is an input of the next one.
const LOOPS: usize = 3;

/// Maximum nesting of an expression: an evaluation recurses into each level, on the stack of any thread.
const DEEPEST: usize = 32;

/// Rejects unknown names and what is not evaluated as in the API server, and takes the quotes off the names of fields.
pub(super) fn prepare(program: &mut IdedExpr, variables: &[&str]) -> Result<(), String> {
    let names = variables.iter().map(|&name| name.to_owned()).collect();
    Scope { names, depth: 0, loops: 0 }.visit(program)
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
            // What is empty is a mistake for the parser.
            Expr::Unspecified | Expr::Struct(_) => return Err("only maps are supported, no messages".into()),
            Expr::Literal(_) => {}
            Expr::Ident(name) => self.visit_name(name)?,
            Expr::Call(call) => self.visit_call(call)?,
            Expr::List(list) => list.elements.iter_mut().try_for_each(|element| self.visit(element))?,
            Expr::Map(map) => {
                for entry in &mut map.entries {
                    let EntryExpr::MapEntry(entry) = &mut entry.expr else { continue };
                    self.visit(&mut entry.key)?;
                    self.visit(&mut entry.value)?;
                }
            }
            Expr::Select(select) => {
                // The parser leaves the quotes in the name.
                select.field = select.field.trim_matches('`').to_owned();
                self.visit(&mut select.operand)?;
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
        let known: Vec<_> = self.names.iter().filter(|name| !name.starts_with('@')).cloned().collect();
        Err(format!("there is no variable {name}; existing ones: {}", known.join(", ")))
    }

    fn visit_call(&mut self, call: &mut CallExpr) -> Result<(), String> {
        call.target.as_deref_mut().map_or(Ok(()), |target| self.visit(target))?;
        let name = call.func_name.as_str();
        if is_function(name) {
            differences::check_function(name, call.target.is_some(), call.args.len())?;
        }
        if let (OPT_SELECT, [_, IdedExpr { expr: Expr::Literal(LiteralValue::String(field)), .. }]) =
            (name, &mut call.args[..])
        {
            *field = CelString::from(field.inner().trim_matches('`').to_owned());
        }
        call.args.iter_mut().try_for_each(|argument| self.visit(argument))
    }

    fn visit_loop(&mut self, comprehension: &mut ComprehensionExpr) -> Result<(), String> {
        self.loops += 1;
        if self.loops > LOOPS {
            return Err(format!("its loops are nested more than {LOOPS} levels deep"));
        }
        self.visit(&mut comprehension.iter_range)?;
        self.visit(&mut comprehension.accu_init)?;
        let outer = self.names.len();
        self.names.push(comprehension.accu_var.clone());
        self.names.push(comprehension.iter_var.clone());
        self.visit(&mut comprehension.loop_cond)?;
        self.visit(&mut comprehension.loop_step)?;
        self.visit(&mut comprehension.result)?;
        self.names.truncate(outer);
        self.loops -= 1;
        Ok(())
    }
}

/// Whether the name is not that of an operator. No user can write one, and the parser creates no others.
fn is_function(name: &str) -> bool {
    name.chars().all(|part| part.is_ascii_alphanumeric() || part == '_' || part == '.')
}
