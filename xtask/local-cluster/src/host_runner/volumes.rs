//! The volumes of one pod, as directories that are updated with their sources: `ConfigMaps`, the pod itself, and tokens of its
//! ServiceAccount.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::{
    authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec},
    core::v1::{
        ConfigMap, Container, ContainerStateWaiting as Waiting, KeyToPath, Pod, PodSpec, ServiceAccount,
        ServiceAccountTokenProjection, Volume, VolumeProjection,
    },
};
use kube::{
    Api, Client, ResourceExt,
    api::PostParams,
    runtime::{WatchStreamExt, watcher::watch_object},
};
use tokio::{sync::watch, task::JoinSet, time::timeout};

use super::{
    atomic_directory::{self, Payload},
    environment,
    mounts::Mounts,
    pod::Sandbox,
    status::waiting,
};
use crate::explain::note;

/// Time between checks of tokens and retries of failed writes.
const TICK: Duration = Duration::from_secs(10);
/// The same as long as a container waits for its volumes.
const QUICK_TICK: Duration = Duration::from_secs(1);

/// The lifetime of a token, unless the pod says another one.
const TOKEN_SECONDS: i64 = 3600;

/// The reason of a pod that its author has to correct.
const CONFIG_ERROR: &str = "CreateContainerConfigError";

/// The watched `ConfigMaps` by name, as far as they are known; `None` for one that does not exist.
type ConfigMaps = BTreeMap<String, Option<Payload>>;
/// The tokens by volume and position in its projections.
type Tokens = BTreeMap<(String, usize), Token>;

/// A token of the pod's ServiceAccount.
struct Token {
    text: String,
    /// When to ask for the next one.
    renew_at: Timestamp,
}

/// The volumes, kept current as long as [`Volumes::keep_current`] runs.
pub struct Volumes<'a> {
    sandbox: &'a Sandbox,
    declared: Vec<Volume>,
    config_maps: watch::Receiver<ConfigMaps>,
    tokens: Tokens,
    _watches: JoinSet<()>,
}

impl<'a> Volumes<'a> {
    /// Starts one watch for each ConfigMap that a volume refers to; nothing is written yet.
    pub fn new(sandbox: &'a Sandbox, spec: &PodSpec) -> Self {
        let declared = spec.volumes.clone().unwrap_or_default();
        let api =
            Api::namespaced(sandbox.runner.client.clone(), &sandbox.pod().namespace().unwrap_or_default());
        let (seen, config_maps) = watch::channel(ConfigMaps::new());
        let names: BTreeSet<&String> = declared.iter().flat_map(referenced).collect();
        let watches = names.into_iter().map(|name| follow(api.clone(), name.clone(), seen.clone())).collect();
        Self { sandbox, declared, config_maps, tokens: Tokens::new(), _watches: watches }
    }

    /// Writes every volume; an error is the reason why a container has to wait.
    pub async fn write_all(&mut self) -> Result<(), Waiting> {
        for volume in self.declared.clone() {
            self.write(&volume).await?;
        }
        Ok(())
    }

    /// Waits until writing again may help.
    pub async fn changed(&mut self) {
        self.changed_within(QUICK_TICK).await;
    }

    /// Follows each ConfigMap, and the tokens' expiry.
    pub async fn keep_current(&mut self) {
        loop {
            self.changed_within(TICK).await;
            for volume in self.declared.clone() {
                // As with a kubelet, the files stay while their source is gone.
                if let Err(problem) = self.write(&volume).await
                    && problem.reason.as_deref() != Some(CONFIG_ERROR)
                {
                    let message = problem.message.unwrap_or_default();
                    note(&format!("volume {} of {}: {message}", volume.name, self.sandbox.title()));
                }
            }
        }
    }

    async fn changed_within(&mut self, longest: Duration) {
        let changed = async {
            // Without a ConfigMap, nobody tells of changes.
            if self.config_maps.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        timeout(longest, changed).await.ok();
    }

    async fn write(&mut self, volume: &Volume) -> Result<(), Waiting> {
        let unwritten = |error: anyhow::Error| {
            let message = format!("the volume {:?} could not be written: {error:#}", volume.name);
            waiting("ContainerCreating", message)
        };
        let pod = self.sandbox.pod();
        for (index, projection) in projections(volume).enumerate() {
            let Some(wanted) = &projection.service_account_token else { continue };
            let place = (volume.name.clone(), index);
            if self.tokens.get(&place).is_none_or(|token| token.renew_at <= Timestamp::now()) {
                let token = request_token(&self.sandbox.runner.client, &pod, wanted).await;
                self.tokens.insert(place, token.map_err(unwritten)?);
            }
        }
        let sources = Sources {
            pod: &pod,
            address: self.sandbox.address,
            config_maps: &self.config_maps.borrow(),
            tokens: &self.tokens,
        };
        atomic_directory::write(&directory(&self.sandbox.directory, volume), &payload(volume, &sources)?)
            .map_err(unwritten)?;
        Ok(())
    }
}

async fn follow(api: Api<ConfigMap>, name: String, seen: watch::Sender<ConfigMaps>) {
    let mut states = std::pin::pin!(watch_object(api, &name).default_backoff());
    while let Some(state) = states.next().await {
        // The stream retries by itself after an error; until then, the last known state applies.
        let Ok(state) = state else { continue };
        let state = state.map(entries);
        seen.send_if_modified(|seen| seen.insert(name.clone(), state.clone()).as_ref() != Some(&state));
    }
}

fn entries(map: ConfigMap) -> Payload {
    let texts = map.data.into_iter().flatten().map(|(key, text)| (key, text.into_bytes()));
    texts.chain(map.binary_data.into_iter().flatten().map(|(key, bytes)| (key, bytes.0))).collect()
}

fn referenced(volume: &Volume) -> impl Iterator<Item = &String> {
    let projected = projections(volume).filter_map(|projection| projection.config_map.as_ref());
    volume.config_map.iter().map(|map| &map.name).chain(projected.map(|map| &map.name))
}

fn projections(volume: &Volume) -> impl Iterator<Item = &VolumeProjection> {
    volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten())
}

/// Asks for a token that is bound to the pod.
async fn request_token(client: &Client, pod: &Pod, wanted: &ServiceAccountTokenProjection) -> Result<Token> {
    let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref());
    let account = account.filter(|name| !name.is_empty()).unwrap_or("default");
    let seconds = wanted.expiration_seconds.unwrap_or(TOKEN_SECONDS);
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            audiences: wanted.audience.clone().map(|audience| vec![audience]),
            expiration_seconds: Some(seconds),
            bound_object_ref: Some(BoundObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                name: Some(pod.name_any()),
                uid: pod.uid(),
            }),
            ..TokenRequestSpec::default()
        }),
        ..TokenRequest::default()
    };
    let namespace = pod.namespace().unwrap_or_default();
    let answer = Api::<ServiceAccount>::namespaced(client.clone(), &namespace)
        .create_token_request(account, &PostParams::default(), &request)
        .await
        .with_context(|| format!("could not get a token of the ServiceAccount {namespace}/{account}"))?;
    let text = answer.status.and_then(|status| status.token);
    let text = text.context("the answer to a token request holds no token")?;
    // A kubelet renews at 80 % of the lifetime; a token may live longer than requested.
    let lifetime = u64::try_from(seconds).unwrap_or_default();
    let renew_at = Timestamp::now() + Duration::from_secs(lifetime * 8 / 10);
    Ok(Token { text, renew_at })
}

/// What the files of a volume are made of.
struct Sources<'a> {
    pod: &'a Pod,
    address: Ipv4Addr,
    config_maps: &'a ConfigMaps,
    tokens: &'a Tokens,
}

/// The files of a volume.
fn payload(volume: &Volume, sources: &Sources<'_>) -> Result<Payload, Waiting> {
    let mut payload = Payload::new();
    if let Some(map) = &volume.config_map {
        payload.extend(config_map(sources, &map.name, None)?);
    }
    for (index, projection) in projections(volume).enumerate() {
        if let Some(token) = &projection.service_account_token {
            let Token { text, .. } = sources
                .tokens
                .get(&(volume.name.clone(), index))
                .ok_or_else(|| waiting("ContainerCreating", "waiting for the ServiceAccount's token"))?;
            payload.insert(token.path.clone(), text.clone().into_bytes());
        }
        if let Some(map) = &projection.config_map {
            payload.extend(config_map(sources, &map.name, map.items.as_deref())?);
        }
        for item in projection.downward_api.iter().flat_map(|downward| downward.items.iter().flatten()) {
            let path = item.field_ref.as_ref().map(|field| field.field_path.as_str()).unwrap_or_default();
            let value = environment::field(sources.pod, sources.address, path)?;
            payload.insert(item.path.clone(), value.into_bytes());
        }
    }
    Ok(payload)
}

/// All entries of a ConfigMap under their keys, or the chosen ones under their paths.
fn config_map(sources: &Sources<'_>, name: &str, items: Option<&[KeyToPath]>) -> Result<Payload, Waiting> {
    let known = sources.config_maps.get(name);
    let known =
        known.ok_or_else(|| waiting("ContainerCreating", format!("waiting for configmap {name:?}")))?;
    let entries =
        known.as_ref().ok_or_else(|| waiting(CONFIG_ERROR, format!("configmap {name:?} not found")))?;
    let Some(items) = items.filter(|items| !items.is_empty()) else { return Ok(entries.clone()) };
    let chosen = |item: &KeyToPath| {
        let missing = || waiting(CONFIG_ERROR, format!("configmap {name:?} has no key {:?}", item.key));
        Ok((item.path.clone(), entries.get(&item.key).ok_or_else(missing)?.clone()))
    };
    items.iter().map(chosen).collect()
}

/// The local paths of the mounts of a container.
pub fn mounts(pod_directory: &Path, spec: &PodSpec, container: &Container) -> Mounts {
    let volumes = spec.volumes.as_deref().unwrap_or_default();
    Mounts::new(container.volume_mounts.iter().flatten().filter_map(|mount| {
        let volume = volumes.iter().find(|volume| volume.name == mount.name)?;
        Some((mount.mount_path.clone(), directory(pod_directory, volume)))
    }))
}

fn directory(pod_directory: &Path, volume: &Volume) -> PathBuf {
    pod_directory.join("volumes").join(&volume.name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(volume: serde_json::Value) -> Result<Payload, Waiting> {
        let volume: Volume = serde_json::from_value(volume).unwrap();
        let pod = serde_json::from_value(json!({"metadata": {"name": "p"}})).unwrap();
        let there = [("a".to_owned(), b"1".to_vec()), ("b".to_owned(), b"2".to_vec())].into();
        let config_maps = [("there".to_owned(), Some(there)), ("gone".to_owned(), None)].into();
        let token = Token { text: "token".to_owned(), renew_at: Timestamp::MAX };
        let tokens = [(("v".to_owned(), 0), token)].into();
        let address = Ipv4Addr::LOCALHOST;
        payload(&volume, &Sources { pod: &pod, address, config_maps: &config_maps, tokens: &tokens })
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
        assert_eq!(problem, waiting(CONFIG_ERROR, "configmap \"gone\" not found"));
        let items = json!([{"key": "c", "path": "c"}]);
        let problem = of(projection(&json!({"configMap": {"name": "there", "items": items}}))).unwrap_err();
        assert_eq!(problem, waiting(CONFIG_ERROR, "configmap \"there\" has no key \"c\""));
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
