//! What stands in a volume, from what is known of its sources.

use k8s_openapi::api::core::v1::{DownwardAPIVolumeFile, KeyToPath, Pod, Volume, VolumeProjection};

use super::{
    atomic_directory::Payload,
    board::Trouble,
    downward,
    sources::{Entries, Seen, Source},
};

/// What a payload is made from.
pub struct Known<'a> {
    pub pod: &'a Pod,
    pub address: std::net::Ipv4Addr,
    pub source: &'a dyn Fn(&Source) -> Seen,
    /// The token for the n-th projection of the volume.
    pub token: &'a dyn Fn(usize) -> Option<String>,
}

/// The files of a volume; None when it is a plain directory.
pub fn payload(volume: &Volume, known: &Known<'_>) -> Result<Option<Payload>, Trouble> {
    let mut payload = Payload::new();
    if let Some(map) = &volume.config_map {
        let source = Source::ConfigMap(map.name.clone());
        add(&mut payload, known, &source, map.items.as_deref(), map.optional)?;
    } else if let Some(secret) = &volume.secret {
        let source = Source::Secret(secret.secret_name.clone().unwrap_or_default());
        add(&mut payload, known, &source, secret.items.as_deref(), secret.optional)?;
    } else if let Some(downward) = &volume.downward_api {
        add_downward(&mut payload, known, downward.items.as_deref())?;
    } else if let Some(projected) = &volume.projected {
        for (index, projection) in projected.sources.iter().flatten().enumerate() {
            add_projection(&mut payload, known, index, projection)?;
        }
    } else if volume.empty_dir.is_some()
        || volume.persistent_volume_claim.is_some()
        || volume.ephemeral.is_some()
        || volume.host_path.is_some()
    {
        return Ok(None);
    } else {
        return Err(config_error(format!(
            "the host runner does not know the type of the volume {:?}",
            volume.name
        )));
    }
    Ok(Some(payload))
}

fn add_projection(
    payload: &mut Payload,
    known: &Known<'_>,
    index: usize,
    projection: &VolumeProjection,
) -> Result<(), Trouble> {
    if let Some(token) = &projection.service_account_token {
        let text = (known.token)(index)
            .ok_or_else(|| Trouble::new("ContainerCreating", "waiting for the ServiceAccount's token"))?;
        payload.insert(token.path.clone(), text.into_bytes());
    } else if let Some(map) = &projection.config_map {
        let source = Source::ConfigMap(map.name.clone());
        add(payload, known, &source, map.items.as_deref(), map.optional)?;
    } else if let Some(secret) = &projection.secret {
        let source = Source::Secret(secret.name.clone());
        add(payload, known, &source, secret.items.as_deref(), secret.optional)?;
    } else if let Some(downward) = &projection.downward_api {
        add_downward(payload, known, downward.items.as_deref())?;
    } else {
        return Err(config_error("the host runner does not know a source of a projected volume"));
    }
    Ok(())
}

fn add(
    payload: &mut Payload,
    known: &Known<'_>,
    source: &Source,
    items: Option<&[KeyToPath]>,
    optional: Option<bool>,
) -> Result<(), Trouble> {
    let optional = optional.unwrap_or_default();
    match (known.source)(source) {
        Seen::Present(entries) => {
            payload.extend(
                select(&entries, items, optional)
                    .map_err(|key| config_error(format!("{source} has no key {key:?}")))?,
            );
            Ok(())
        }
        Seen::Missing if optional => Ok(()),
        Seen::Missing => Err(config_error(format!("{source} not found"))),
        Seen::NotYet => Err(Trouble::new("ContainerCreating", format!("waiting for {source}"))),
    }
}

/// All entries under their keys, or the chosen ones under their paths; an error is the key that is missing.
fn select(entries: &Entries, items: Option<&[KeyToPath]>, optional: bool) -> Result<Payload, String> {
    let Some(items) = items.filter(|items| !items.is_empty()) else { return Ok(entries.clone()) };
    let mut payload = Payload::new();
    for item in items {
        match entries.get(&item.key) {
            Some(content) => {
                payload.insert(item.path.clone(), content.clone());
            }
            None if optional => {}
            None => return Err(item.key.clone()),
        }
    }
    Ok(payload)
}

fn add_downward(
    payload: &mut Payload,
    known: &Known<'_>,
    items: Option<&[DownwardAPIVolumeFile]>,
) -> Result<(), Trouble> {
    for item in items.unwrap_or_default() {
        let value = match (&item.field_ref, &item.resource_field_ref) {
            (Some(field), _) => downward::field(known.pod, known.address, &field.field_path),
            (None, Some(resource)) => downward::resource(known.pod, None, resource),
            (None, None) => Err(format!("the file {:?} has no source", item.path)),
        };
        payload.insert(item.path.clone(), value.map_err(config_error)?.into_bytes());
    }
    Ok(())
}

fn config_error(message: impl Into<String>) -> Trouble {
    Trouble::new("CreateContainerConfigError", message)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use serde_json::json;

    use super::*;

    fn of(volume: serde_json::Value) -> Result<Option<Payload>, Trouble> {
        let volume: Volume = serde_json::from_value(volume).unwrap();
        let pod = serde_json::from_value(json!({"metadata": {"name": "p"}})).unwrap();
        let source = |source: &Source| match source {
            Source::ConfigMap(name) if name == "there" => {
                Seen::Present([("a".to_owned(), b"1".to_vec()), ("b".to_owned(), b"2".to_vec())].into())
            }
            _ => Seen::Missing,
        };
        let token = |index: usize| (index == 0).then(|| "token".to_owned());
        payload(&volume, &Known { pod: &pod, address: Ipv4Addr::LOCALHOST, source: &source, token: &token })
    }

    #[test]
    fn items_choose_keys_and_paths() {
        let all = of(json!({"name": "v", "configMap": {"name": "there"}})).unwrap().unwrap();
        assert_eq!(all.keys().collect::<Vec<_>>(), ["a", "b"]);
        let items = json!([{"key": "b", "path": "x/y"}]);
        let chosen =
            of(json!({"name": "v", "configMap": {"name": "there", "items": items}})).unwrap().unwrap();
        assert_eq!(chosen, Payload::from([("x/y".to_owned(), b"2".to_vec())]));
    }

    #[test]
    fn what_is_missing_is_named_unless_it_is_optional() {
        let trouble = of(json!({"name": "v", "configMap": {"name": "gone"}})).unwrap_err();
        assert_eq!(trouble, config_error("configmap \"gone\" not found"));
        let optional = of(json!({"name": "v", "secret": {"secretName": "gone", "optional": true}}));
        assert_eq!(optional, Ok(Some(Payload::new())));
    }

    #[test]
    fn the_volume_of_the_service_account_holds_token_ca_and_namespace() {
        let payload = of(json!({"name": "v", "projected": {"sources": [
            {"serviceAccountToken": {"path": "token"}},
            {"configMap": {"name": "there", "items": [{"key": "a", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        ]}}));
        let payload = payload.unwrap().unwrap();
        assert_eq!(payload["token"], b"token");
        assert_eq!(payload["ca.crt"], b"1");
        assert_eq!(payload["name"], b"p");
        assert_eq!(of(json!({"name": "v", "emptyDir": {}})), Ok(None));
    }
}
