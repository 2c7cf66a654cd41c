//! Creates the missing definitions of a backup, before the objects of their kinds.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::{
    create::{Live, handed_over},
    manifest::Manifest,
    rebind::Uids,
};
use crate::{
    connection::Cluster,
    kinds::{Kind, Kinds},
};

/// The server takes a moment to serve a new kind.
const SERVED_TIMEOUT: Duration = Duration::from_secs(30);
const SERVED_INTERVAL: Duration = Duration::from_millis(200);

/// Creates missing definitions, and learns their kinds. Returns the names of the created ones.
pub async fn create_missing(cluster: &mut Cluster, definitions: &[Manifest]) -> Result<Vec<String>> {
    let kind = cluster.kinds.find("customresourcedefinitions.apiextensions.k8s.io")?.clone();
    let mut created = Vec::new();
    for definition in definitions {
        let name = definition.identity().name;
        if is_served(&cluster.kinds, definition) {
            continue;
        }
        let live = Live { cluster, kind: &kind, namespace: None, name: &name };
        let failed = |verb: &str, error| cluster.refused(&kind, &name, verb, error);
        if live.get().await.map_err(|error| failed("get", error))?.is_none() {
            let object = Uids::default().bound(definition, &[]);
            live.create(&object, &definition.identity().uid)
                .await
                .map_err(|error| failed("create", error))?;
            created.push(name.clone());
        }
    }
    let until_served = async {
        loop {
            cluster.kinds = Kinds::discover(&cluster.client).await.context("the kinds of the server")?;
            if definitions.iter().all(|definition| is_served(&cluster.kinds, definition)) {
                return anyhow::Ok(());
            }
            tokio::time::sleep(SERVED_INTERVAL).await;
        }
    };
    if tokio::time::timeout(SERVED_TIMEOUT, until_served).await.ok().transpose()?.is_none() {
        let missing = definitions.iter().filter(|definition| !is_served(&cluster.kinds, definition));
        let missing: Vec<String> = missing.map(|definition| definition.identity().name).collect();
        bail!(
            "the server does not serve {} after {} s: `kubectl describe customresourcedefinition` says why",
            missing.join(", "),
            SERVED_TIMEOUT.as_secs()
        );
    }
    Ok(created)
}

fn is_served(kinds: &Kinds, definition: &Manifest) -> bool {
    let text =
        |pointer: &str| definition.object().pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let found: Option<&Kind> = kinds.named(text("/spec/group"), text("/spec/names/plural"));
    found.is_some()
}
