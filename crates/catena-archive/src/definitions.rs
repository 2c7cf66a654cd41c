//! Creates the missing definitions of a backup, before the objects of their kinds.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use catena_cluster::{Cluster, Identity, Kind, Kinds};
use catena_terminal::until;
use serde_json::{Value, json};

use super::{Manifest, Uids, create};

/// The server takes a moment to serve a new kind.
const SERVED_TIMEOUT: Duration = Duration::from_secs(30);
const SERVED_INTERVAL: Duration = Duration::from_millis(200);

/// Creates missing definitions, and learns their kinds. Returns the names of the created ones.
pub async fn create_missing(cluster: &mut Cluster, definitions: &[Manifest]) -> Result<Vec<String>> {
    let kind = Kind::definitions();
    let mut created = Vec::new();
    for definition in definitions {
        let Identity { name, uid, .. } = definition.identity();
        let place = cluster.at(&kind, None, &name);
        let failed = |verb: &str, error| cluster.refused(&kind, &name, verb, error);
        let found: kube::Result<Option<Value>> = place.read().await;
        let is_cut_short = matches!(&found, Ok(Some(found)) if create::is_incomplete(found, &uid));
        // Who may not read definitions needs none that is there.
        if is_served(&cluster.kinds, definition) && !is_cut_short {
            continue;
        }
        let found = if let Some(found) = found.map_err(|error| failed("get", error))? {
            found
        } else {
            let object = Uids::default().bound(definition, &[], false);
            created.push(name.clone());
            create::create(place, &object, &uid).await.map_err(|error| failed("create", error))?
        };
        if create::is_incomplete(&found, &uid) {
            // The next upgrade of a chart must find its own fields.
            let managed = create::handed_over(&found, &uid, definition.managed_fields().cloned());
            let live_uid = found["metadata"]["uid"].as_str().unwrap_or_default();
            let patch = json!({"metadata": {"managedFields": managed}});
            create::merge(place, "", live_uid, patch).await.map_err(|error| failed("patch", error))?;
        }
    }
    let mut missing = Vec::new();
    let served = until(SERVED_INTERVAL, SERVED_TIMEOUT, async || {
        cluster.kinds = Kinds::discover(&cluster.client).await.context("the kinds of the server")?;
        let unserved = definitions.iter().filter(|definition| !is_served(&cluster.kinds, definition));
        missing = unserved.map(|definition| definition.identity().name).collect();
        Ok(missing.is_empty())
    });
    let seconds = SERVED_TIMEOUT.as_secs();
    ensure!(
        served.await?,
        "the server does not serve {} after {seconds} s: `kubectl describe customresourcedefinition` says why",
        missing.join(", ")
    );
    Ok(created)
}

fn is_served(kinds: &Kinds, definition: &Manifest) -> bool {
    kinds.named(definition.text("/spec/group"), definition.text("/spec/names/plural")).is_some()
}
