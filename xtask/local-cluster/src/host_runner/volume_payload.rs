//! The content of a volume, from its sources.

use k8s_openapi::api::core::v1::{
    ContainerStateWaiting as Waiting, KeyToPath, Pod, Volume, VolumeProjection,
};

use super::{
    atomic_directory::Payload,
    config_maps::{Entries, Watermark},
    environment,
    status::waiting,
};

/// The sources of a payload.
pub struct Known<'a> {
    pub pod: &'a Pod,
    pub address: std::net::Ipv4Addr,
    pub config_map: &'a dyn Fn(&str) -> Watermark,
    /// The token for the n-th projection of the volume.
    pub token: &'a dyn Fn(usize) -> Option<String>,
}

/// The files of a volume.
pub fn payload(volume: &Volume, known: &Known<'_>) -> Result<Payload, Waiting> {
    let mut payload = Payload::new();
    if let Some(map) = &volume.config_map {
        payload.extend(config_map(known, &map.name, None)?);
    }
    let projections = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
    for (index, projection) in projections.enumerate() {
        payload.extend(projected(known, index, projection)?);
    }
    Ok(payload)
}

fn projected(known: &Known<'_>, index: usize, projection: &VolumeProjection) -> Result<Payload, Waiting> {
    let mut payload = Payload::new();
    if let Some(token) = &projection.service_account_token {
        let text = (known.token)(index)
            .ok_or_else(|| waiting("ContainerCreating", "waiting for the ServiceAccount's token"))?;
        payload.insert(token.path.clone(), text.into_bytes());
    }
    if let Some(map) = &projection.config_map {
        payload.extend(config_map(known, &map.name, map.items.as_deref())?);
    }
    for item in projection.downward_api.iter().flat_map(|downward| downward.items.iter().flatten()) {
        let path = item.field_ref.as_ref().map(|field| field.field_path.as_str()).unwrap_or_default();
        let value = environment::field(known.pod, known.address, path)?;
        payload.insert(item.path.clone(), value.into_bytes());
    }
    Ok(payload)
}

fn config_map(known: &Known<'_>, name: &str, items: Option<&[KeyToPath]>) -> Result<Payload, Waiting> {
    match (known.config_map)(name) {
        Watermark::Present(entries) => select(entries, items)
            .map_err(|key| config_error(format!("configmap {name:?} has no key {key:?}"))),
        Watermark::Missing => Err(config_error(format!("configmap {name:?} not found"))),
        Watermark::NotYet => Err(waiting("ContainerCreating", format!("waiting for configmap {name:?}"))),
    }
}

/// All entries under their keys, or the chosen ones under their paths; an error is the missing key.
fn select(entries: Entries, items: Option<&[KeyToPath]>) -> Result<Payload, String> {
    let Some(items) = items.filter(|items| !items.is_empty()) else { return Ok(entries) };
    let chosen = |item: &KeyToPath| {
        let content = entries.get(&item.key).ok_or_else(|| item.key.clone())?;
        Ok((item.path.clone(), content.clone()))
    };
    items.iter().map(chosen).collect()
}

fn config_error(message: String) -> Waiting {
    waiting("CreateContainerConfigError", message)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use serde_json::json;

    use super::*;

    fn of(volume: serde_json::Value) -> Result<Payload, Waiting> {
        let volume: Volume = serde_json::from_value(volume).unwrap();
        let pod = serde_json::from_value(json!({"metadata": {"name": "p"}})).unwrap();
        let config_map = |name: &str| match name {
            "there" => {
                Watermark::Present([("a".to_owned(), b"1".to_vec()), ("b".to_owned(), b"2".to_vec())].into())
            }
            _ => Watermark::Missing,
        };
        let token = |index: usize| (index == 0).then(|| "token".to_owned());
        let address = Ipv4Addr::LOCALHOST;
        payload(&volume, &Known { pod: &pod, address, config_map: &config_map, token: &token })
    }

    fn projection(source: &serde_json::Value) -> serde_json::Value {
        json!({"name": "v", "projected": {"sources": [source]}})
    }

    #[test]
    fn items_choose_keys_and_paths() {
        let all = of(json!({"name": "v", "configMap": {"name": "there"}})).unwrap();
        assert_eq!(all.keys().collect::<Vec<_>>(), ["a", "b"]);
        let items = json!([{"key": "b", "path": "x/y"}]);
        let chosen = of(projection(&json!({"configMap": {"name": "there", "items": items}}))).unwrap();
        assert_eq!(chosen, Payload::from([("x/y".to_owned(), b"2".to_vec())]));
    }

    #[test]
    fn what_is_missing_is_named() {
        let problem = of(json!({"name": "v", "configMap": {"name": "gone"}})).unwrap_err();
        assert_eq!(problem, config_error("configmap \"gone\" not found".to_owned()));
        let items = json!([{"key": "c", "path": "c"}]);
        let problem = of(projection(&json!({"configMap": {"name": "there", "items": items}}))).unwrap_err();
        assert_eq!(problem, config_error("configmap \"there\" has no key \"c\"".to_owned()));
    }

    #[test]
    fn the_volume_of_the_service_account_holds_token_ca_and_namespace() {
        let payload = of(json!({"name": "v", "projected": {"sources": [
            {"serviceAccountToken": {"path": "token"}},
            {"configMap": {"name": "there", "items": [{"key": "a", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        ]}}))
        .unwrap();
        assert_eq!(payload["token"], b"token");
        assert_eq!(payload["ca.crt"], b"1");
        assert_eq!(payload["name"], b"p");
    }
}
