//! Revisions by their order: a controller that was shown the past may skip a number, and only their order matters.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The places of revisions in their order, by their numbers.
pub(super) struct RevisionOrder(BTreeMap<u64, usize>);

impl RevisionOrder {
    /// The order of the revisions among these objects.
    pub fn of<'v>(objects: impl Iterator<Item = &'v Value>) -> Self {
        let revisions = objects.filter(|object| object["kind"] == "ControllerRevision");
        let numbers: BTreeSet<u64> = revisions.filter_map(|object| object["revision"].as_u64()).collect();
        Self(numbers.into_iter().zip(1..).collect())
    }

    /// Replaces the numbers of revisions, in fields and in messages.
    pub fn put_into(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    match field.as_u64().and_then(|number| self.0.get(&number)) {
                        Some(place) if name == "revision" => *field = (*place).into(),
                        _ => self.put_into(field),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.put_into(item)),
            Value::String(text) => {
                for (number, place) in &self.0 {
                    *text = text.replace(&format!("revision {number} "), &format!("revision {place} "));
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_skipped_number_makes_no_difference_and_another_order_does() {
        let world = |numbers: [u64; 2], live: u64| {
            let revision = |number| json!({"kind": "ControllerRevision", "revision": number});
            let mut objects: Vec<_> = numbers.into_iter().map(revision).collect();
            let message = format!("revision {live} stays until the spec changes");
            objects
                .push(json!({"kind": "BasicDeployment", "status": {"revision": live, "message": message}}));
            let order = RevisionOrder::of(objects.iter());
            for object in &mut objects {
                order.put_into(object);
            }
            objects
        };
        assert_eq!(world([2, 3], 3), world([4, 5], 5));
        assert_ne!(world([2, 3], 3), world([2, 3], 2));
        assert_ne!(world([2, 3], 3), world([3, 2], 3));
    }
}
