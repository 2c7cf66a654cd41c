//! The version in which backups are read and created: that of the settings, or another one if that is not served. All
//! versions of a kind show the same objects, so no backup is missed because of its version.

use backup_controller::{error::Missing, metadata, settings::Backup};
use kube::{Client, discovery::ApiResource};
use operator_kit::watch::{ReadError, ServedKinds};
use serde_json::Value;

use super::live::{self, Answer};
use crate::memory::Unplaced;

/// The object that has the name of a backup. The backup gets the version of the look-up.
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

/// The missing object after the creation of a backup was answered with "not found".
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

/// The kind for another try, after `tried` was answered as if it were not served. `None` if that is a refusal: no
/// version is served, or the namespace is missing.
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
    // The list of kinds may lag behind the served ones.
    let doubt = format!("the cluster lists {}, but does not serve it", tried.api_version);
    Err(ReadError::unanswered(&tried.kind, name, doubt))
}

/// The served version of a kind, after `tried` was answered as if it were not served, which says nothing about a
/// backup. `None` if there is no other one.
async fn other_version(
    served_kinds: &ServedKinds,
    kind: &Backup,
    tried: &ApiResource,
) -> Result<Option<ApiResource>, ReadError> {
    let found = served_kinds.find_now(&kind.resource).await?.map(|found| found.resource);
    Ok(found.filter(|found| found.version != tried.version))
}
