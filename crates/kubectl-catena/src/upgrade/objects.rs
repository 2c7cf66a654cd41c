//! The objects of a definition: all of them in one version, and one of them in another version.

use anyhow::Result;
use catena_cluster::{Cluster, Kind, ObjectName};
use futures::{StreamExt, stream};
use kube::api::ListParams;
use serde_json::Value;

use super::{Definition, trial};
use crate::screen::Progress;

/// Objects that are worked on at the same time.
const MAX_CONCURRENT: usize = 32;
/// Objects per page: their largest size times this fits into the memory of the charts' Job.
const PAGE_SIZE: u32 = 100;

/// Does something with each object as it is in a version, and hands over what came of it. `doing` is shown as progress.
///
/// # Errors
/// When the objects cannot be listed.
pub async fn each<T>(
    cluster: &Cluster,
    definition: &Definition,
    version: &str,
    doing: &str,
    work: impl AsyncFn(Value) -> T,
    mut done: impl FnMut(ObjectName, T),
) -> Result<()> {
    let params = ListParams::default().limit(PAGE_SIZE);
    let mut pages = cluster.pages(&definition.kind(version), None, params);
    let progress = Progress::new(&format!("{doing} {}", definition.name()));
    while let Some(page) = pages.next::<Value>().await.map_err(|error| definition.refused_list(error))? {
        progress.expect(page.len() as u64 + pages.remaining.unwrap_or(0));
        let results = stream::iter(page).map(async |object| {
            let place = ObjectName::of(&object);
            let result = work(object).await;
            progress.advance();
            (place, result)
        });
        let results: Vec<_> = results.buffered(MAX_CONCURRENT).collect().await;
        for (place, result) in results {
            done(place, result);
        }
    }
    progress.clear();
    Ok(())
}

/// An object in another version; `None` if it is gone.
pub async fn read(cluster: &Cluster, kind: &Kind, object: &Value) -> kube::Result<Option<Value>> {
    let ObjectName { namespace, name } = ObjectName::of(object);
    let found =
        trial::retried(async || cluster.at(kind, namespace.as_deref(), &name).read::<Value>().await).await?;
    Ok(found.filter(|found| found["metadata"]["uid"] == object["metadata"]["uid"]))
}
