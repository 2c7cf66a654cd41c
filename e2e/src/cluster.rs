use std::{fmt::Debug, path::PathBuf};

use anyhow::{Context, Result};
use k8s_openapi::{ClusterResourceScope, api::core::v1::Namespace as CoreNamespace};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, PostParams},
};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::{Namespace, PATIENCE, eventually};

/// Test files run one after another, so that a lock within the process is enough.
static IN_USE: RwLock<()> = RwLock::const_new(());

/// The cluster that is tested, in use until this is dropped.
pub struct Cluster {
    /// As administrator.
    pub client: Client,
    _in_use: InUse,
}

#[expect(dead_code, reason = "held for their drop")]
enum InUse {
    Shared(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

impl Cluster {
    /// The cluster, while other tests use it too.
    pub async fn shared() -> Result<Self> {
        Self::connect(InUse::Shared(IN_USE.read().await)).await
    }

    /// The cluster without any other test: for what disturbs everybody, or is disturbed by everybody.
    pub async fn alone() -> Result<Self> {
        Self::connect(InUse::Alone(IN_USE.write().await)).await
    }

    async fn connect(in_use: InUse) -> Result<Self> {
        let client = Client::try_default()
            .await
            .context("no cluster: run the suite with `cargo xtask test --only e2e`, or set KUBECONFIG")?;
        Ok(Self { client, _in_use: in_use })
    }

    /// Makes a namespace for a test. It is deleted when it is dropped.
    pub async fn namespace(&self, what: &str) -> Result<Namespace> {
        let namespace = serde_json::from_value(json!({
            "metadata": {
                "generateName": format!("e2e-{what}-"),
                "labels": { "pod-security.kubernetes.io/enforce": "restricted" },
            },
        }))?;
        let created = self.all::<CoreNamespace>().create(&PostParams::default(), &namespace).await?;
        Ok(Namespace::new(self.client.clone(), created.name_any()))
    }

    /// All objects of a cluster-wide kind.
    #[must_use]
    pub fn all<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + DeserializeOwned + Debug,
    {
        Api::all(self.client.clone())
    }

    /// Waits until the namespaces of other tests are gone with all that was in them.
    pub async fn without_others(&self) {
        eventually("the namespaces of other tests are gone", 2 * PATIENCE, async || {
            let all = self.all::<CoreNamespace>().list(&ListParams::default()).await;
            let left: Vec<_> = all
                .map_err(|error| vec![error.to_string()])?
                .iter()
                .map(ResourceExt::name_any)
                .filter(|name| name.starts_with("e2e-"))
                .collect();
            if left.is_empty() { Ok(()) } else { Err(left) }
        })
        .await;
    }
}

/// A path that `cargo xtask test` gives in a variable.
pub(crate) fn path_from(variable: &str) -> Result<PathBuf> {
    std::env::var_os(variable)
        .map(PathBuf::from)
        .with_context(|| format!("{variable} is not set: run the suite with `cargo xtask test --only e2e`"))
}
