//! A container's environment variables, and the facts about its pod that it may ask for: the downward API.

use std::{collections::BTreeMap, net::Ipv4Addr};

use k8s_openapi::api::core::v1::{Container, ContainerStateWaiting as Waiting, Pod};
use kube::ResourceExt;

use super::status::waiting;

type Values = BTreeMap<String, String>;

/// Adds the container's variables to the given ones, expanded in the order of Kubernetes.
pub fn resolve(
    pod: &Pod,
    container: &Container,
    address: Ipv4Addr,
    given: Values,
) -> Result<Values, Waiting> {
    let mut variables = given;
    for variable in container.env.iter().flatten() {
        let value = match variable.value_from.as_ref().and_then(|from| from.field_ref.as_ref()) {
            Some(of_pod) => field(pod, address, &of_pod.field_path)?,
            // A variable without value and source is empty.
            None => expand(variable.value.as_deref().unwrap_or_default(), &variables),
        };
        variables.insert(variable.name.clone(), value);
    }
    Ok(variables)
}

/// The value of a `fieldRef`.
pub fn field(pod: &Pod, address: Ipv4Addr, path: &str) -> Result<String, Waiting> {
    match path {
        "metadata.name" => Ok(pod.name_any()),
        "metadata.namespace" => Ok(pod.namespace().unwrap_or_default()),
        "status.podIP" => Ok(address.to_string()),
        other => Err(waiting(
            "CreateContainerConfigError",
            format!("the host runner does not know the field {other:?}"),
        )),
    }
}

/// Replaces `$(NAME)` by its value; undefined names stay unchanged; `$$` is one dollar.
pub fn expand(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        expanded.push_str(&rest[..dollar]);
        let after = &rest[dollar + 1..];
        if let Some(after) = after.strip_prefix('$') {
            expanded.push('$');
            rest = after;
        } else if let Some((name, after)) = after.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
            match variables.get(name) {
                Some(value) => expanded.push_str(value),
                None => expanded.extend(["$(", name, ")"]),
            }
            rest = after;
        } else {
            expanded.push('$');
            rest = after;
        }
    }
    expanded.push_str(rest);
    expanded
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
        let problem = resolved(json!([{"name": "A", "valueFrom": field("status.phase")}])).unwrap_err();
        assert!(problem.message.unwrap().contains("status.phase"));
    }

    /// The cases of Kubernetes' own `third_party/forked/golang/expansion`.
    #[test]
    fn expansion_agrees_with_kubernetes() {
        let variables: BTreeMap<String, String> =
            [("VAR_A", "A"), ("VAR_B", "B"), ("VAR_REF", "$(VAR_A)"), ("VAR_EMPTY", "")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into();
        for (input, expected) in [
            ("$(VAR_A)", "A"),
            ("___$(VAR_B)___", "___B___"),
            ("$(VAR_A)-$(VAR_B)", "A-B"),
            ("$(VAR_REF)", "$(VAR_A)"),
            ("foo$(VAR_EMPTY)bar", "foobar"),
            ("$$(VAR_A)", "$(VAR_A)"),
            ("$$$(VAR_A)", "$A"),
            ("$$$$(VAR_A)", "$$(VAR_A)"),
            ("$(MISSING)", "$(MISSING)"),
            ("$VAR_A", "$VAR_A"),
            ("$(VAR_A", "$(VAR_A"),
            ("f000-$$VAR_A", "f000-$VAR_A"),
            ("$", "$"),
            ("a$", "a$"),
            ("\n$(VAR_A)\n", "\nA\n"),
            ("", ""),
        ] {
            assert_eq!(expand(input, &variables), expected, "{input}");
        }
    }
}
