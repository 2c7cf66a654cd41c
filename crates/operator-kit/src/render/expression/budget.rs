use std::sync::atomic::{AtomicU32, Ordering};

use kube_cel::cel::{Value, context::VariableResolver};

/// Steps that all loops of one evaluation may take together. Lists of Kubernetes objects are short, and the result of a
/// loop is copied at each step.
pub(super) const STEPS: u32 = 2000;

/// The variable that each loop reads before each step. No user can write such a name.
pub(super) const VARIABLE: &str = "@budget";

/// The remaining steps of one evaluation.
pub(super) struct Budget(AtomicU32);

impl Budget {
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(STEPS + 1))
    }

    pub(super) fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

impl VariableResolver for Budget {
    fn resolve(&self, variable: &str) -> Option<Value> {
        if variable != VARIABLE {
            return None;
        }
        let left = self.0.load(Ordering::Relaxed).saturating_sub(1);
        self.0.store(left, Ordering::Relaxed);
        Some(Value::Bool(left > 0))
    }
}
