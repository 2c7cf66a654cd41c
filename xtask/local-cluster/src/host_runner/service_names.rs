//! Replaces the names of Services by addresses, because this machine has no cluster DNS and no load balancing.

use k8s_openapi::api::core::v1::{Pod, Service, ServiceSpec};
use kube::{Api, Client, api::ListParams};

use super::status::is_ready;

const SUFFIX: &str = ".svc";

/// The text with every `NAME.NAMESPACE.svc` replaced by the address of a pod of that Service. The name of a Service
/// without a pod stays, and does not resolve.
pub async fn resolve(client: &Client, text: String) -> kube::Result<String> {
    let mut resolved = text.clone();
    for (host, name, namespace) in names(&text) {
        if let Some(address) = address(client, namespace, name).await? {
            resolved = resolved.replace(host, &address);
        }
    }
    Ok(resolved)
}

/// Each whole host name, the Service's name and the namespace.
fn names(text: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    let is_of_host = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.');
    text.split(move |letter| !is_of_host(letter)).filter_map(|host| {
        let (name, namespace) = host.strip_suffix(SUFFIX)?.split_once('.')?;
        (!name.is_empty() && !namespace.is_empty() && !namespace.contains('.'))
            .then_some((host, name, namespace))
    })
}

async fn address(client: &Client, namespace: &str, name: &str) -> kube::Result<Option<String>> {
    let services = Api::<Service>::namespaced(client.clone(), namespace);
    let Some(spec) = services.get_opt(name).await?.and_then(|service| service.spec) else { return Ok(None) };
    let Some(selector) = selector(&spec) else { return Ok(None) };
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    let pods = pods.list(&ListParams::default().labels(&selector)).await?.items;
    let stays = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none();
    let of_any = spec.publish_not_ready_addresses.unwrap_or_default();
    let ready = pods.iter().filter(stays).find(|pod| is_ready(pod));
    let pod = ready.or_else(|| pods.iter().find(stays).filter(|_| of_any));
    Ok(pod.and_then(|pod| pod.status.as_ref()?.pod_ip.clone()))
}

/// None for a Service that selects no pods.
fn selector(spec: &ServiceSpec) -> Option<String> {
    let pairs: Vec<String> =
        spec.selector.iter().flatten().map(|(key, value)| format!("{key}={value}")).collect();
    (!pairs.is_empty()).then(|| pairs.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_named_by_its_name_its_namespace_and_svc() {
        let found =
            |text| names(text).map(|(_, name, namespace)| format!("{namespace}/{name}")).collect::<Vec<_>>();
        assert_eq!(found("--probe=http://web.team-a.svc:8080/readyz"), ["team-a/web"]);
        assert_eq!(found("a.x.svc,b.y.svc"), ["x/a", "y/b"]);
        for other in ["web", "web.svc", "/etc/web.svc", "a.b.c.svc", "web.team.svcs", "http://127.0.0.1:1"] {
            assert_eq!(found(other), [""; 0], "{other}");
        }
    }
}
