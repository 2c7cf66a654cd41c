//! The selector selects the replicas, and nothing else.

use kube::core::{Expression, Selector, SelectorExt};

use crate::contract::live::{requirement::Requirement, run::Run};

/// Applies the selector to the pods of the namespace.
pub fn selects(run: &Run<'_>) {
    let child = run.scene.child(run.good.name());
    let Some(text) = child.and_then(|child| child.outputs.selector) else {
        run.ledger.fail(
            Requirement::Selector,
            "it is not reported, so that a HorizontalPodAutoscaler finds no pods",
        );
        return;
    };
    let Some(selector) = parsed(&text) else {
        run.ledger.fail(Requirement::Selector, format!("{text:?} is no list of labels with values"));
        return;
    };
    let replicas = run.scene.replicas();
    let missed =
        replicas.iter().filter(|replica| replica.is_alive && !selector.matches(&replica.labels)).count();
    if missed == 0 {
        run.ledger.pass(Requirement::Selector, text);
    } else {
        run.ledger.fail(Requirement::Selector, format!("{text} misses {missed} pods"));
    }
}

/// Labels with values, the form in which selectors of pods are reported.
pub fn parsed(text: &str) -> Option<Selector> {
    let of_label = |part: &str| {
        let (key, value) = part.split_once('=')?;
        Some(Expression::Equal(key.to_owned(), value.trim_start_matches('=').to_owned()))
    };
    let labels: Option<Vec<Expression>> = text.split(',').map(of_label).collect();
    labels.map(Selector::from_iter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_a_list_of_labels_with_values() {
        let labels = [("app".to_owned(), "web".to_owned()), ("tier".to_owned(), "gold".to_owned())].into();
        assert!(parsed("app=web,tier==gold").unwrap().matches(&labels));
        assert!(!parsed("app=shop").unwrap().matches(&labels));
        assert!(parsed("app").is_none());
    }
}
