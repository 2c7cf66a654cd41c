//! Reading a list page by page, so that no answer is huge.

use std::fmt::Debug;

use kube::{Api, api::ListParams};
use serde::de::DeserializeOwned;

/// How many objects a page has.
const PAGE: u32 = 500;

/// What the first pages of a list hold, and whether that is all.
pub async fn first<K>(pages: usize, api: &Api<K>, params: ListParams) -> kube::Result<(Vec<K>, bool)>
where
    K: Clone + Debug + DeserializeOwned,
{
    let mut params = params.limit(PAGE);
    let (mut objects, mut more) = (Vec::new(), None);
    for _ in 0..pages {
        let page = api.list(&params).await?;
        objects.extend(page.items);
        more = page.metadata.continue_.filter(|token| !token.is_empty());
        let Some(token) = &more else { break };
        params = params.continue_token(token);
    }
    Ok((objects, more.is_none()))
}

/// All that a list holds.
pub async fn all<K>(api: &Api<K>, params: ListParams) -> kube::Result<Vec<K>>
where
    K: Clone + Debug + DeserializeOwned,
{
    Ok(first(usize::MAX, api, params).await?.0)
}
