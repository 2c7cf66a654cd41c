//! In which version backups are read and created: that of the settings, or another one where that is not served. All
//! versions of a kind are of the same objects, so that none of them is missed for the version it is asked for in.

use kube::{
    Client,
    core::{GroupVersion, GroupVersionKind},
    discovery::ApiResource,
};
use operator_kit::watch::{ReadError, ServedKinds};
use serde_json::Value;

use super::Survey;
use crate::{
    live::{self, Answer},
    metadata,
    settings::Backup,
};

impl Survey<'_> {
    /// What stands under the name of a backup, which is given the version that it is looked for in.
    pub(super) async fn look_up(&self, backup: &mut Value) -> Result<Option<Value>, ReadError> {
        let wanted = &self.kind.backup.resource;
        let mut answer = read(self.client, wanted, backup).await?;
        if !answer.is_served
            && let Some(other) = other_version(self.served_kinds, &self.kind.backup, wanted).await?
        {
            backup["apiVersion"] = other.api_version.as_str().into();
            answer = read(self.client, &other, backup).await?;
        }
        Ok(answer.object.map(|object| object.value))
    }
}

async fn read(client: &Client, kind: &ApiResource, backup: &Value) -> Result<Answer, ReadError> {
    let (namespace, name) = (metadata::text(backup, "namespace"), metadata::text(backup, "name"));
    live::read(client, kind, namespace, name).await
}

/// The kind of a backup in the version that the backup is written in.
pub fn written_as(kind: &Backup, backup: &Value) -> ApiResource {
    let wanted = &kind.resource;
    let version = backup["apiVersion"].as_str().and_then(|version| version.parse().ok());
    let Some(GroupVersion { version, .. }) = version else { return wanted.clone() };
    let written = GroupVersionKind { group: wanted.group.clone(), version, kind: wanted.kind.clone() };
    ApiResource::from_gvk_with_plural(&written, &wanted.plural)
}

/// Where a backup is to be created instead, after `tried` was answered as for a kind that is not served. None where that
/// is a refusal: no version is served, or the namespace is missing.
pub async fn instead(
    client: &Client,
    served_kinds: &ServedKinds,
    kind: &Backup,
    tried: &ApiResource,
    backup: &Value,
) -> Result<Option<ApiResource>, ReadError> {
    let Some(found) = served_kinds.find_now(&kind.resource).await? else { return Ok(None) };
    if found.resource.version != tried.version {
        return Ok(Some(found.resource));
    }
    if read(client, tried, backup).await?.is_served {
        return Ok(None);
    }
    // What is listed follows what is served, and may be behind.
    Err(ReadError::Unanswered {
        kind: tried.kind.clone(),
        name: metadata::text(backup, "name").to_owned(),
        message: format!("the cluster lists {} and does not serve it", tried.api_version),
    })
}

/// The version that a kind is served in now, after `tried` was answered as one that is not served: such an answer says
/// nothing of a backup. None if there is no other.
async fn other_version(
    served_kinds: &ServedKinds,
    kind: &Backup,
    tried: &ApiResource,
) -> Result<Option<ApiResource>, ReadError> {
    let found = served_kinds.find_now(&kind.resource).await?.map(|found| found.resource);
    Ok(found.filter(|found| found.version != tried.version))
}
