use anyhow::Result;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
};

use crate::{ClusterWide, cleanup::clean_up};

/// The former state of a cluster-wide object, which is restored when this is dropped.
pub struct Undo<K: ClusterWide + Send + 'static> {
    before: K,
}

impl<K: ClusterWide + Send + 'static> Undo<K> {
    /// Saves the present state of an object.
    pub async fn keep(api: &Api<K>, name: &str) -> Result<Self> {
        let mut before = api.get(name).await?;
        let metadata = before.meta_mut();
        metadata.managed_fields = None;
        metadata.resource_version = None;
        metadata.uid = None;
        metadata.creation_timestamp = None;
        Ok(Self { before })
    }

    /// Restores it now.
    pub async fn now(&self, client: Client) -> Result<()> {
        put_back(client, &self.before).await
    }
}

/// Replaces the present object, or creates it again.
async fn put_back<K: ClusterWide>(client: Client, before: &K) -> Result<()> {
    let mut object = serde_json::to_value(before)?;
    object["apiVersion"] = K::api_version(&()).into();
    object["kind"] = K::kind(&()).into();
    // With helm's field manager, so that the next upgrade meets no field of another manager.
    let params = PatchParams::apply("helm").force();
    Api::<K>::all(client).patch(&before.name_any(), &params, &Patch::Apply(object)).await?;
    Ok(())
}

impl<K: ClusterWide + Send + 'static> Drop for Undo<K> {
    fn drop(&mut self) {
        let before = self.before.clone();
        clean_up("putting an object back", async move |client| put_back(client, &before).await);
    }
}
