//! A container's environment variables.

use std::{collections::BTreeMap, net::Ipv4Addr};

use k8s_openapi::api::core::v1::{Container, EnvVar, Pod};

use super::{board::Trouble, downward, variables::expand};

type Values = BTreeMap<String, String>;

/// Adds the container's variables to the given ones, expanded in the order of Kubernetes.
pub fn resolve(
    pod: &Pod,
    container: &Container,
    address: Ipv4Addr,
    given: Values,
) -> Result<Values, Trouble> {
    let mut variables = given;
    for variable in container.env.iter().flatten() {
        let value = value(pod, address, variable, &variables)?;
        variables.insert(variable.name.clone(), value);
    }
    Ok(variables)
}

fn value(pod: &Pod, address: Ipv4Addr, variable: &EnvVar, before: &Values) -> Result<String, Trouble> {
    match variable.value_from.as_ref().and_then(|from| from.field_ref.as_ref()) {
        Some(field) => downward::field(pod, address, &field.field_path),
        // A variable without value and source is empty.
        None => Ok(expand(variable.value.as_deref().unwrap_or_default(), before)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_variable_may_hold_a_field_of_the_pod_and_those_before_it() {
        let pod = serde_json::from_value(json!({"metadata": {"name": "p", "namespace": "n"}})).unwrap();
        let field = |path: &str| json!({"fieldRef": {"fieldPath": path}});
        let resolved = |env: serde_json::Value| {
            let container = serde_json::from_value(json!({"name": "c", "env": env})).unwrap();
            resolve(&pod, &container, Ipv4Addr::LOCALHOST, [("HOME".to_owned(), "/h".to_owned())].into())
        };
        let variables = resolved(json!([
            {"name": "IP", "valueFrom": field("status.podIP")},
            {"name": "URL", "value": "http://$(IP)$(HOME)"},
            {"name": "EMPTY"},
        ]))
        .unwrap();
        assert_eq!(variables["URL"], "http://127.0.0.1/h");
        assert_eq!(variables["EMPTY"], "");
        let trouble = resolved(json!([{"name": "A", "valueFrom": field("status.phase")}])).unwrap_err();
        assert!(trouble.message.contains("status.phase"), "{trouble:?}");
    }
}
