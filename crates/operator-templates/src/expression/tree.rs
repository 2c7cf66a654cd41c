//! What is checked in the tree of an expression before it is evaluated for the first time.

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators as operator,
};

use super::differences;

/// Maximum number of loops in each other, or over the results of each other: what one builds is an input of the next one.
const LOOPS: usize = 3;

/// Maximum nesting of an expression: an evaluation recurses into each level, on the stack of any thread.
const DEEPEST: usize = 32;

/// Rejects unknown names and what is not evaluated as in the API server. Returns the names of the fields that it reads.
pub(super) fn check(program: &IdedExpr, variables: &[&str]) -> Result<Vec<String>, String> {
    let names = variables.iter().map(|&name| name.to_owned()).collect();
    let mut scope = Scope { names, fields: Vec::new(), depth: 0, loops: 0 };
    scope.visit(program)?;
    Ok(scope.fields)
}

/// The names and depths at one part of the expression, and the fields that the parts before it read.
struct Scope {
    names: Vec<String>,
    fields: Vec<String>,
    depth: usize,
    loops: usize,
}

impl Scope {
    fn visit(&mut self, node: &IdedExpr) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("its parts are nested more than {DEEPEST} levels deep"));
        }
        match &node.expr {
            // What is empty is a mistake for the parser.
            Expr::Unspecified | Expr::Struct(_) => return Err("only maps are supported, no messages".into()),
            Expr::Literal(_) => {}
            Expr::Ident(name) => self.visit_name(name)?,
            Expr::Call(call) => self.visit_call(call)?,
            Expr::List(list) => list.elements.iter().try_for_each(|element| self.visit(element))?,
            Expr::Map(map) => {
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
                    self.visit(&entry.key)?;
                    self.visit(&entry.value)?;
                }
            }
            Expr::Select(select) => {
                self.reads(&select.operand, &select.field);
                self.visit(&select.operand)?;
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

    fn visit_call(&mut self, call: &CallExpr) -> Result<(), String> {
        call.target.as_deref().map_or(Ok(()), |target| self.visit(target))?;
        if is_function(&call.func_name) {
            differences::check_function(&call.func_name, call.target.is_some(), call.args.len())?;
        }
        let names_field = [operator::INDEX, operator::OPT_INDEX, operator::OPT_SELECT];
        if names_field.contains(&call.func_name.as_str())
            && let [of, name] = &*call.args
            && let Expr::Literal(LiteralValue::String(name)) = &name.expr
        {
            self.reads(of, name.inner());
        }
        call.args.iter().try_for_each(|argument| self.visit(argument))
    }

    fn reads(&mut self, of: &IdedExpr, field: &str) {
        self.fields.push(field.to_owned());
        if let Expr::Ident(name) = &of.expr {
            self.fields.push(format!("{name}.{field}"));
        }
    }

    fn visit_loop(&mut self, comprehension: &ComprehensionExpr) -> Result<(), String> {
        self.loops += 1;
        if self.loops > LOOPS {
            return Err(format!("its loops are nested more than {LOOPS} levels deep"));
        }
        self.visit(&comprehension.iter_range)?;
        self.visit(&comprehension.accu_init)?;
        let outer = self.names.len();
        self.names.push(comprehension.accu_var.clone());
        self.names.push(comprehension.iter_var.clone());
        self.visit(&comprehension.loop_cond)?;
        self.visit(&comprehension.loop_step)?;
        self.visit(&comprehension.result)?;
        self.names.truncate(outer);
        self.loops -= 1;
        Ok(())
    }
}

/// Whether the name is not that of an operator. No user can write one, and the parser creates no others.
fn is_function(name: &str) -> bool {
    name.chars().all(|part| part.is_ascii_alphanumeric() || part == '_' || part == '.')
}
