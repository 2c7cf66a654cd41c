//! The downward API: what a pod may know of itself.

use std::{collections::BTreeMap, net::Ipv4Addr};

use k8s_openapi::api::core::v1::{Container, Pod, ResourceFieldSelector};
use kube::ResourceExt;

use super::{
    quantity,
    runner::{HOST_IP, NODE_NAME},
};

/// The value of a `fieldRef`, or why there is none.
pub fn field(pod: &Pod, address: Ipv4Addr, path: &str) -> Result<String, String> {
    let spec = pod.spec.as_ref();
    if let Some(key) = subscript(path, "metadata.labels") {
        return Ok(pod.labels().get(key).cloned().unwrap_or_default());
    }
    if let Some(key) = subscript(path, "metadata.annotations") {
        return Ok(pod.annotations().get(key).cloned().unwrap_or_default());
    }
    Ok(match path {
        "metadata.name" => pod.name_any(),
        "metadata.namespace" => pod.namespace().unwrap_or_default(),
        "metadata.uid" => pod.uid().unwrap_or_default(),
        "metadata.labels" => lines(pod.labels()),
        "metadata.annotations" => lines(pod.annotations()),
        "spec.nodeName" => NODE_NAME.to_owned(),
        "spec.serviceAccountName" => {
            spec.and_then(|spec| spec.service_account_name.clone()).unwrap_or_default()
        }
        "status.podIP" | "status.podIPs" => address.to_string(),
        "status.hostIP" | "status.hostIPs" => HOST_IP.to_owned(),
        other => return Err(format!("the host runner does not know the field {other:?}")),
    })
}

/// The value of a `resourceFieldRef`; a limit that is not set is the node's.
pub fn resource(
    pod: &Pod,
    own: Option<&Container>,
    selector: &ResourceFieldSelector,
) -> Result<String, String> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let container = match &selector.container_name {
        Some(name) => containers.into_iter().find(|container| container.name == *name),
        None => own,
    };
    let container = container.ok_or("resourceFieldRef names no container")?;
    let (kind, resource) = selector.resource.split_once('.').ok_or("odd resource")?;
    let resources = container.resources.as_ref();
    let limits = resources.and_then(|resources| resources.limits.as_ref());
    let requests = resources.and_then(|resources| resources.requests.as_ref());
    let set = match kind {
        "limits" => limits,
        _ => requests.or(limits),
    };
    let of_the_node = if resource == "cpu" { "1000" } else { "4Ti" };
    let value = set.and_then(|set| set.get(resource)).map_or(of_the_node, |quantity| quantity.0.as_str());
    let divisor = selector.divisor.as_ref().map(|divisor| divisor.0.as_str());
    quantity::divide(value, divisor).ok_or_else(|| format!("{value:?} is no quantity"))
}

/// The key in `metadata.labels['key']`.
fn subscript<'a>(path: &'a str, map: &str) -> Option<&'a str> {
    path.strip_prefix(map)?.strip_prefix("['")?.strip_suffix("']")
}

/// The format of labels and annotations in a downwardAPI volume.
fn lines(map: &BTreeMap<String, String>) -> String {
    let lines: Vec<String> = map.iter().map(|(key, value)| format!("{key}={value:?}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_learns_its_names_labels_and_address() {
        let pod: Pod = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"a/b": "c", "d": "\"e\""}},
            "spec": {"serviceAccountName": "s", "containers": []},
        }))
        .unwrap();
        let address = Ipv4Addr::new(127, 64, 0, 9);
        for (path, expected) in [
            ("metadata.name", "p"),
            ("metadata.namespace", "n"),
            ("metadata.uid", "u"),
            ("metadata.labels['a/b']", "c"),
            ("metadata.annotations['none']", ""),
            ("metadata.labels", "a/b=\"c\"\nd=\"\\\"e\\\"\""),
            ("spec.serviceAccountName", "s"),
            ("spec.nodeName", NODE_NAME),
            ("status.podIP", "127.64.0.9"),
        ] {
            assert_eq!(field(&pod, address, path).as_deref(), Ok(expected), "{path}");
        }
        assert!(field(&pod, address, "status.phase").is_err());
    }
}
