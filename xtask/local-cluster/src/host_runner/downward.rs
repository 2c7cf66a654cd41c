//! The downward API: facts about a pod for its containers.

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::board::Trouble;

/// The value of a `fieldRef`.
pub fn field(pod: &Pod, address: Ipv4Addr, path: &str) -> Result<String, Trouble> {
    match path {
        "metadata.name" => Ok(pod.name_any()),
        "metadata.namespace" => Ok(pod.namespace().unwrap_or_default()),
        "status.podIP" => Ok(address.to_string()),
        other => Err(Trouble::new(
            "CreateContainerConfigError",
            format!("the host runner does not know the field {other:?}"),
        )),
    }
}
