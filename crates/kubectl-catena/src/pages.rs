//! Reads lists page by page, so that no response is huge.

use kube::{
    Api, Resource,
    api::ListParams,
    core::{ListMeta, ObjectMeta, Request},
};
use operator_kit::watch::Trimmed;
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    lenient::{Listed, ObjectName, Unreadable},
    paint::{Paint, sanitized},
};

/// Objects per page.
const PAGE_SIZE: u32 = 500;

#[derive(Deserialize)]
#[serde(bound = "K: DeserializeOwned")]
struct Page<K> {
    #[serde(default)]
    metadata: ListMeta,
    /// Null when there are none.
    items: Option<Vec<Listed<K>>>,
}

/// The requested part of each object.
#[derive(Clone, Copy)]
enum Extent {
    Whole,
    Metadata,
}

/// The objects of the first pages of a list, and whether these are all.
pub async fn first<K>(pages: usize, api: &Api<K>, params: ListParams) -> kube::Result<(Vec<K>, bool)>
where
    K: Resource + Clone + DeserializeOwned + 'static,
{
    read(pages, api, params.limit(PAGE_SIZE), Extent::Whole).await
}

/// All objects of a list.
pub async fn all<K>(api: &Api<K>, params: ListParams) -> kube::Result<Vec<K>>
where
    K: Resource + Clone + DeserializeOwned + 'static,
{
    Ok(first(usize::MAX, api, params).await?.0)
}

/// The metadata of all objects of a list without `managedFields`, in one response unless the parameters limit it.
pub async fn metadata<K: Resource + Clone>(
    api: &Api<K>,
    params: ListParams,
) -> kube::Result<Vec<ObjectMeta>> {
    let (objects, _) = read::<_, Trimmed>(1, api, params, Extent::Metadata).await?;
    Ok(objects.into_iter().map(|object| object.metadata).collect())
}

async fn read<A, K>(
    pages: usize,
    api: &Api<A>,
    mut params: ListParams,
    extent: Extent,
) -> kube::Result<(Vec<K>, bool)>
where
    A: Resource + Clone,
    K: DeserializeOwned + 'static,
{
    let (url, client) = (api.resource_url(), api.clone().into_client());
    let (mut objects, mut more) = (Vec::new(), None);
    for _ in 0..pages {
        let list = Request::new(url);
        let request = match extent {
            Extent::Whole => list.list(&params),
            Extent::Metadata => list.list_metadata(&params),
        };
        let page: Page<K> = client.request(request.map_err(kube::Error::BuildRequest)?).await?;
        for Listed(object) in page.items.into_iter().flatten() {
            match object {
                Ok(object) => objects.push(object),
                Err(unreadable) => warn(url, &unreadable),
            }
        }
        more = page.metadata.continue_.filter(|token| !token.is_empty());
        let Some(token) = &more else { break };
        params = params.continue_token(token);
    }
    Ok((objects, more.is_none()))
}

/// Names an omitted object on standard error.
fn warn(url: &str, Unreadable { object: ObjectName { namespace, name }, error }: &Unreadable) {
    let plural = url.rsplit('/').next().unwrap_or_default();
    let namespace =
        namespace.as_ref().map_or_else(String::new, |namespace| format!(" in namespace {namespace:?}"));
    let said = sanitized(&format!("{plural}/{name}{namespace} cannot be read and is omitted: {error}"));
    eprintln!("{} {said}", Paint::for_stderr().bad("warning:"));
}
