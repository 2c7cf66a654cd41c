//! The objects of a definition: all of them in one version, and one of them in another version.

use anyhow::{Result, ensure};
use catena_cluster::{Cluster, Kind, ObjectName};
use catena_terminal::Progress;
use futures::{StreamExt, stream};
use kube::api::ListParams;
use serde_json::Value;

use super::{Definition, trial};

/// Objects that are worked on at the same time.
const MAX_CONCURRENT: usize = 32;
/// Objects per page: their largest size times this fits into the memory of the charts' Job.
const PAGE_SIZE: u32 = 100;

/// Does something with each object as it is in a version, and hands over what came of it. `doing` is shown as progress.
///
/// # Errors
/// When the objects cannot be listed, or one of them cannot be read.
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
    let (name, omitted) = (definition.name(), pages.omitted);
    ensure!(
        omitted == 0,
        "{omitted} of the objects of {name} cannot be read, as the warnings say; correct or delete them, and try again"
    );
    Ok(())
}

/// An object in another version; `None` if it is gone.
pub async fn read(cluster: &Cluster, kind: &Kind, object: &Value) -> kube::Result<Option<Value>> {
    let ObjectName { namespace, name } = ObjectName::of(object);
    let found =
        trial::retried(async || cluster.at(kind, namespace.as_deref(), &name).read::<Value>().await).await?;
    Ok(found.filter(|found| found["metadata"]["uid"] == object["metadata"]["uid"]))
}

#[cfg(test)]
mod tests {
    use catena_cluster::testing::serving;
    use serde_json::json;

    use super::*;
    use crate::definition::tests::definition;

    #[tokio::test]
    async fn an_object_that_cannot_be_read_is_not_passed_over() {
        let deep = (0..200).fold(json!({}), |inner, _| json!({ "a": inner }));
        let items = json!([{"metadata": {"name": "web"}}, {"metadata": {"name": "deep"}, "spec": deep}]);
        let (cluster, _) = serving(move |_| Some(json!({"metadata": {}, "items": items})));
        let definition = Definition::new(definition(&json!({}))).unwrap();
        let mut seen = Vec::new();
        let work = async |object: Value| object;
        let all = each(&cluster, &definition, "v1", "reading", work, |place, _| seen.push(place.name)).await;
        assert!(all.unwrap_err().to_string().starts_with("1 of the objects of"));
        assert_eq!(seen, ["web"]);
    }
}
