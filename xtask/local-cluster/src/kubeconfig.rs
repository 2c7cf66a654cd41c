//! Kubeconfigs, and clients that use them.

use std::path::Path;

use anyhow::{Context, Result};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

use crate::files;

/// A kubeconfig by which a local process acts as its pod's ServiceAccount.
pub fn for_pod(server: &str, ca: &Path, token: &Path, namespace: &str) -> Value {
    let cluster = json!({ "server": server, "certificate-authority": ca });
    document("in-cluster", &cluster, &json!({ "tokenFile": token }), namespace)
}

/// A kubeconfig of one cluster, one user and one context, all called `name`.
pub fn document(name: &str, cluster: &Value, user: &Value, namespace: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": name, "cluster": cluster }],
        "users": [{ "name": name, "user": user }],
        "contexts": [{ "name": name, "context": { "cluster": name, "user": name, "namespace": namespace } }],
        "current-context": name,
    })
}

/// Writes a kubeconfig that only its owner may read.
pub fn write(path: &Path, document: &Value) -> Result<()> {
    files::write_private(path, &serde_saphyr::to_string(document)?)
}

/// A client that uses the kubeconfig at `path`.
pub async fn client(path: &Path) -> Result<Client> {
    client_as(path, None).await
}

/// A client that uses the kubeconfig at `path` and acts in the name of `user`.
pub async fn client_as(path: &Path, user: Option<&str>) -> Result<Client> {
    let mut config = config(path).await?;
    config.auth_info.impersonate = user.map(str::to_owned);
    Client::try_from(config).context("could not make a Kubernetes client")
}

async fn config(path: &Path) -> Result<Config> {
    let kubeconfig = Kubeconfig::read_from(path)
        .with_context(|| format!("could not read the kubeconfig {}", path.display()))?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .with_context(|| format!("could not use the kubeconfig {}", path.display()))?;
    // The cluster is on this machine, which means another one to a proxy.
    config.proxy_url = None;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_cluster_on_this_machine_is_reached_without_a_proxy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        let cluster = json!({"server": "http://127.0.0.1:1", "proxy-url": "http://127.0.0.1:2"});
        write(&path, &document("local", &cluster, &json!({}), "default")).unwrap();
        assert_eq!(config(&path).await.unwrap().proxy_url, None);
    }
}
