//! The proxy through which a cluster is reached: the one that kubectl would use.
//!
//! The client library looks for the proxy itself in `NO_PROXY`, not for the server, and knows no exception for this machine.

use std::net::IpAddr;

use anyhow::{Context, Result};
use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// The proxy that a kubeconfig names for the chosen cluster.
pub fn configured(kubeconfig: &Kubeconfig, chosen: &KubeConfigOptions) -> Option<String> {
    let context = chosen.context.as_ref().or(kubeconfig.current_context.as_ref());
    let context = kubeconfig.contexts.iter().find(|known| Some(&known.name) == context);
    let cluster = context.and_then(|context| context.context.as_ref()).map(|context| &context.cluster);
    let cluster = chosen.cluster.as_ref().or(cluster);
    let cluster = kubeconfig.clusters.iter().find(|known| Some(&known.name) == cluster)?;
    cluster.cluster.as_ref()?.proxy_url.clone().filter(|url| !url.is_empty())
}

/// The proxy to a server: the configured one, or else the one of the environment.
///
/// # Errors
/// When it is no URL.
pub fn chosen(configured: Option<String>, server: &Uri) -> Result<Option<Uri>> {
    let proxy = configured.or_else(|| of_environment(server, |name| std::env::var(name).ok()));
    let parse = |proxy: String| {
        proxy.parse::<Uri>().with_context(|| format!("the proxy {proxy:?} is no URL: correct it"))
    };
    proxy.map(parse).transpose()
}

/// The proxy to a server by the variables of the environment, as kubectl reads them: none to this machine itself.
fn of_environment(server: &Uri, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let of = |name: &str| {
        let found = [variable(name), variable(&name.to_lowercase())];
        found.into_iter().flatten().find(|text| !text.is_empty())
    };
    let proxy = of(if server.scheme_str() == Some("http") { "HTTP_PROXY" } else { "HTTPS_PROXY" })?;
    let host = server.host()?.trim_matches(['[', ']']);
    let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let rules = Matcher::builder().all("http://proxy").no(of("NO_PROXY").unwrap_or_default()).build();
    if is_here || rules.intercept(server).is_none() {
        return None;
    }
    Some(if proxy.contains("://") { proxy } else { format!("http://{proxy}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proxy_of_the_environment_is_chosen_as_by_kubectl() {
        let chosen = |server: &str, variables: &[(&str, &str)]| {
            let value = |name: &str| Some(variables.iter().find(|(known, _)| *known == name)?.1.to_owned());
            of_environment(&server.parse().unwrap(), value)
        };
        let server = "https://cluster.example:6443";
        let https = ("HTTPS_PROXY", "http://proxy:3128");
        assert_eq!(chosen(server, &[https]).as_deref(), Some("http://proxy:3128"));
        assert_eq!(chosen(server, &[("https_proxy", "proxy:3128")]).as_deref(), Some("http://proxy:3128"));
        assert_eq!(chosen("http://cluster.example", &[https]), None);
        assert!(chosen("http://cluster.example", &[("HTTP_PROXY", "proxy")]).is_some());
        for no_proxy in ["cluster.example", ".example", "other, example", "*"] {
            assert_eq!(chosen(server, &[https, ("NO_PROXY", no_proxy)]), None, "{no_proxy}");
        }
        // The proxy's own name decides nothing.
        assert!(chosen(server, &[https, ("NO_PROXY", "proxy,10.0.0.0/8")]).is_some());
        assert_eq!(chosen("https://10.0.0.7", &[https, ("no_proxy", "10.0.0.0/8")]), None);
        for here in ["https://localhost:6443", "https://127.0.0.1:6443", "https://[::1]:6443"] {
            assert_eq!(chosen(here, &[https]), None, "{here}");
        }
    }
}
