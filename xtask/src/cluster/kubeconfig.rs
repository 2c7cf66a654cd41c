//! Kubeconfigs, for people and for the cluster's own programs.

use std::{
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

use super::{
    certificates::{Authority, Signed},
    home::Home,
    state::Addresses,
};

/// The programs that have a user of their own, so that the audit log tells them apart.
const PROGRAMS: [(&str, &str, Option<&str>); 4] = [
    ("controller-manager", "system:kube-controller-manager", None),
    ("scheduler", "system:kube-scheduler", None),
    ("kwok", "kwok", Some("system:masters")),
    ("host-runner", "host-runner", Some("system:masters")),
];

/// Writes the kubeconfig of the administrator and those of the programs.
pub fn write_all(authority: &Authority, home: &Home, addresses: &Addresses) -> Result<()> {
    let cluster = json!({
        "server": addresses.server(),
        "certificate-authority-data": ByteString(authority.pem().into_bytes()),
    });
    let context = format!("catena-{}", home.name());
    let admin = authority.client("admin", Some("system:masters"))?;
    write(&home.kubeconfig(), &document(&context, &cluster, &certificate_user(&admin), "default"))?;
    for (program, user, group) in PROGRAMS {
        let signed = authority.client(user, group)?;
        let document = document(&context, &cluster, &certificate_user(&signed), "default");
        write(&home.kubeconfig_of(program), &document)?;
    }
    Ok(())
}

/// A kubeconfig with which a local process is its pod's ServiceAccount.
pub fn for_pod(server: &str, ca: &Path, token: &Path, namespace: &str) -> Value {
    let cluster = json!({ "server": server, "certificate-authority": ca });
    document("in-cluster", &cluster, &json!({ "tokenFile": token }), namespace)
}

fn certificate_user(signed: &Signed) -> Value {
    json!({
        "client-certificate-data": ByteString(signed.certificate.clone().into_bytes()),
        "client-key-data": ByteString(signed.key.clone().into_bytes()),
    })
}

fn document(name: &str, cluster: &Value, user: &Value, namespace: &str) -> Value {
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
pub fn write(path: &PathBuf, document: &Value) -> Result<()> {
    let text = serde_saphyr::to_string(document)?;
    std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("could not write {}", path.display()))
}

/// A client that uses the kubeconfig at `path`.
pub async fn client(path: &Path) -> Result<Client> {
    client_as(path, None).await
}

/// A client that uses the kubeconfig at `path` and acts in the name of `user`.
pub async fn client_as(path: &Path, user: Option<&str>) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(path)
        .with_context(|| format!("could not read the kubeconfig {}", path.display()))?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .with_context(|| format!("could not use the kubeconfig {}", path.display()))?;
    config.auth_info.impersonate = user.map(str::to_owned);
    Client::try_from(config).context("could not make a Kubernetes client")
}
