//! In which version backups are read and created: that of the settings, or another one where that is not served. All
//! versions of a kind are of the same objects, so that none of them is missed for the version it is asked for in.

use backup_controller::{error::Missing, metadata, settings::Backup};
use kube::{Client, discovery::ApiResource};
use operator_kit::watch::{ReadError, ServedKinds};
use serde_json::Value;

use super::live::{self, Answer};
use crate::memory::Unplaced;

/// What stands under the name of a backup, which is given the version that it is looked for in.
pub async fn look_up(
    client: &Client,
    served_kinds: &ServedKinds,
    kind: &Backup,
    backup: &mut Value,
) -> Result<Option<Value>, ReadError> {
    let wanted = &kind.resource;
    let mut answer = read(client, wanted, backup).await?;
    if !answer.is_served
        && let Some(other) = other_version(served_kinds, kind, wanted).await?
    {
        backup["apiVersion"] = other.api_version.as_str().into();
        answer = read(client, &other, backup).await?;
    }
    Ok(answer.object.map(|object| object.value))
}

async fn read(client: &Client, kind: &ApiResource, backup: &Value) -> Result<Answer, ReadError> {
    let (namespace, name) = (metadata::text(backup, "namespace"), metadata::text(backup, "name"));
    live::read(client, kind, namespace, name).await
}

/// What was missing when a backup was to be created and that was answered as of something that is not there.
pub async fn missing(
    client: &Client,
    served_kinds: &ServedKinds,
    kind: &Backup,
    unplaced: &Unplaced,
) -> Missing {
    let Unplaced { tried, namespace, name } = unplaced;
    match instead(client, served_kinds, kind, unplaced).await {
        Err(error) => Missing::Unclear(error),
        Ok(Some(served)) => Missing::OtherVersion {
            backup: kind.name.clone(),
            kind: tried.kind.clone(),
            name: name.clone(),
            tried: tried.api_version.clone(),
            served: served.api_version,
        },
        Ok(None) => {
            Missing::NotServed { kind: tried.kind.clone(), name: name.clone(), namespace: namespace.clone() }
        }
    }
}

/// Where a backup is to be created instead, after `tried` was answered as for a kind that is not served. None where that
/// is a refusal: no version is served, or the namespace is missing.
async fn instead(
    client: &Client,
    served_kinds: &ServedKinds,
    kind: &Backup,
    Unplaced { tried, namespace, name }: &Unplaced,
) -> Result<Option<ApiResource>, ReadError> {
    let Some(found) = served_kinds.find_now(&kind.resource).await? else { return Ok(None) };
    if found.resource.version != tried.version {
        return Ok(Some(found.resource));
    }
    if live::read(client, tried, namespace, name).await?.is_served {
        return Ok(None);
    }
    // What is listed follows what is served, and may be behind.
    let doubt = format!("the cluster lists {}, but does not serve it", tried.api_version);
    Err(ReadError::unanswered(&tried.kind, name, doubt))
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
