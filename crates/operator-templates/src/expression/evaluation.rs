//! The evaluation of an expression, by the rules of cel-go, which evaluates the policies of the API server.

use std::{collections::HashMap, slice, sync::Arc};

use cel::{
    Value,
    common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, operators as operator},
};

use super::{
    error::{Problem, unsuited},
    functions, values,
};

/// Steps that all loops of one evaluation may take together. Lists of Kubernetes objects are short, and the result of a
/// loop is copied at each step.
pub(super) const STEPS: u32 = 2000;

/// The state of one evaluation.
pub(super) struct Evaluation<'e> {
    /// The last one of a name counts. The result of a loop may be an error, which a later step can make irrelevant.
    pub variables: Vec<(&'e str, Result<Value, Problem>)>,
    pub steps: u32,
}

impl<'e> Evaluation<'e> {
    pub(super) fn value(&mut self, node: &'e IdedExpr) -> Result<Value, Problem> {
        match &node.expr {
            Expr::Literal(literal) => {
                Value::try_from(literal.to_val().as_ref()).map_err(|_| unsuited("a literal", &[]))
            }
            Expr::Ident(name) => {
                let found = self.variables.iter().rev().find(|(known, _)| known == name);
                found.map_or_else(|| Err(unsuited(name, &[])), |(_, value)| value.clone())
            }
            Expr::Select(select) => {
                let operand = self.value(&select.operand)?;
                let entry = values::entry(&operand, &unquoted(&select.field), select.test)?;
                if select.test { functions::call("hasValue", &[entry]) } else { Ok(entry) }
            }
            Expr::List(list) => {
                let items = list.elements.iter().map(|element| self.value(element));
                Ok(items.collect::<Result<Vec<_>, _>>()?.into())
            }
            Expr::Map(map) => {
                let mut fields = HashMap::new();
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
                    let key = self.value(&entry.key)?;
                    let Value::String(name) = &key else { return Err(unsuited("a key", &[key])) };
                    fields.insert(name.clone(), self.value(&entry.value)?);
                }
                Ok(fields.into())
            }
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(comprehension) => self.repeat(comprehension),
            Expr::Struct(_) | Expr::Unspecified => Err(unsuited("a message", &[])),
        }
    }

    fn call(&mut self, call: &'e CallExpr) -> Result<Value, Problem> {
        match (call.func_name.as_str(), call.target.as_deref(), &call.args[..]) {
            (operator::LOGICAL_AND, _, [left, right]) => self.decide(left, right, false),
            (operator::LOGICAL_OR, _, [left, right]) => self.decide(left, right, true),
            (operator::CONDITIONAL, _, [condition, yes, no]) => {
                let chosen = if self.holds(condition)? { yes } else { no };
                self.value(chosen)
            }
            (operator::NOT_STRICTLY_FALSE, _, [condition]) => {
                Ok(Value::Bool(!matches!(self.value(condition), Ok(Value::Bool(false)))))
            }
            (name @ (operator::INDEX | operator::OPT_INDEX), _, [operand, key]) => {
                values::entry(&self.value(operand)?, &self.value(key)?, name != operator::INDEX)
            }
            (operator::OPT_SELECT, _, [operand, field]) => match self.value(field)? {
                Value::String(field) => values::entry(&self.value(operand)?, &unquoted(&field), true),
                field => Err(unsuited("a field", &[field])),
            },
            ("orValue", Some(target), [other]) => {
                let target = self.value(target)?;
                let optional = values::as_optional(&target);
                let optional = optional.ok_or_else(|| unsuited("orValue", slice::from_ref(&target)))?;
                optional.value().cloned().map_or_else(|| self.value(other), Ok)
            }
            (name, target, arguments) => {
                let values = target.into_iter().chain(arguments).map(|node| self.value(node));
                functions::call(name, &values.collect::<Result<Vec<_>, _>>()?)
            }
        }
    }

    /// `&&` or `||`: a side that decides counts, even if the other one has no value.
    fn decide(&mut self, left: &'e IdedExpr, right: &'e IdedExpr, decisive: bool) -> Result<Value, Problem> {
        let (left, right) = match self.holds(left) {
            Ok(left) if left == decisive => return Ok(Value::Bool(decisive)),
            left => (left, self.holds(right)),
        };
        if right == Ok(decisive) { Ok(Value::Bool(decisive)) } else { left.and(right).map(Value::Bool) }
    }

    fn holds(&mut self, node: &'e IdedExpr) -> Result<bool, Problem> {
        match self.value(node)? {
            Value::Bool(value) => Ok(value),
            other => Err(unsuited("a condition", &[other])),
        }
    }

    /// The loop of a macro such as `exists`. An error in one step is in the result, and a later step may not need that.
    fn repeat(&mut self, comprehension: &'e ComprehensionExpr) -> Result<Value, Problem> {
        let items = match self.value(&comprehension.iter_range)? {
            Value::List(items) => Arc::unwrap_or_clone(items),
            Value::Map(fields) => fields.map.keys().map(Value::from).collect(),
            other => return Err(unsuited("a loop", &[other])),
        };
        let result = self.variables.len();
        let start = self.value(&comprehension.accu_init);
        self.variables.push((&comprehension.accu_var, start));
        for item in items {
            self.steps += 1;
            if self.steps > STEPS {
                return Err(Problem::TooCostly);
            }
            self.variables.push((&comprehension.iter_var, Ok(item)));
            let is_over = self.value(&comprehension.loop_cond) == Ok(Value::Bool(false));
            let next = (!is_over).then(|| self.value(&comprehension.loop_step));
            self.variables.truncate(result + 1);
            let Some(next) = next else { break };
            self.variables[result].1 = next;
        }
        let value = self.value(&comprehension.result);
        self.variables.truncate(result);
        value
    }
}

/// The name of a field, in which the parser leaves the back quotes.
fn unquoted(field: &str) -> Value {
    field.trim_matches('`').into()
}
