use json_patch::jsonptr::PointerBuf;
use serde_json::Value;

/// The superfluous parts of a status: fields, and conditions of `types`. The last condition comes first, so that each
/// index stays valid while the others are removed.
pub fn excess(said: &Value, found: &Value, types: &[&str]) -> Vec<PointerBuf> {
    let mut places = Vec::new();
    collect(&PointerBuf::from_tokens(["status"]), said, found, types, &mut places);
    places
}

fn collect(place: &PointerBuf, said: &Value, found: &Value, types: &[&str], places: &mut Vec<PointerBuf>) {
    for (field, value) in found.as_object().into_iter().flatten() {
        let place = place.with_trailing_token(field.as_str());
        match &said[field.as_str()] {
            said if field == "conditions" => of_conditions(&place, said, value, types, places),
            Value::Null => places.push(place),
            said => collect(&place, said, value, types, places),
        }
    }
}

fn of_conditions(
    place: &PointerBuf,
    said: &Value,
    found: &Value,
    types: &[&str],
    places: &mut Vec<PointerBuf>,
) {
    let items = found.as_array().into_iter().flatten().enumerate();
    let own = items.filter(|(_, item)| item["type"].as_str().is_some_and(|type_| types.contains(&type_)));
    for (index, item) in own.collect::<Vec<_>>().into_iter().rev() {
        let place = place.with_trailing_token(index);
        match said.as_array().into_iter().flatten().find(|said| said["type"] == item["type"]) {
            None => places.push(place),
            Some(said) => collect(&place, said, item, types, places),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn places(said: &Value, found: &Value) -> Vec<String> {
        excess(said, found, &["Ready", "Stalled"]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_said_is_no_excess() {
        let said = json!({"active": 1, "conditions": [{"type": "Ready", "status": "True"}]});
        assert!(places(&said, &said).is_empty());
    }

    #[test]
    fn a_field_that_is_not_said_goes_wherever_it_is() {
        let said = json!({"active": 0, "blockedBy": {"name": "web-x"}});
        let found = json!({"active": 0, "selector": "a=b", "blockedBy": {"name": "web-x", "since": "then"}});
        assert_eq!(places(&said, &found), ["/status/blockedBy/since", "/status/selector"]);
    }

    #[test]
    fn conditions_of_other_types_stay_and_own_ones_go_from_the_last_on() {
        let said = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        let found = json!({"conditions": [
            {"type": "Stalled", "status": "True"},
            {"type": "Theirs", "status": "True"},
            {"type": "Ready", "status": "True", "observedGeneration": 3},
        ]});
        assert_eq!(
            places(&said, &found),
            ["/status/conditions/2/observedGeneration", "/status/conditions/0"]
        );
        assert_eq!(places(&json!({}), &json!({"conditions": [{"type": "Theirs"}]})), [""; 0]);
    }
}
